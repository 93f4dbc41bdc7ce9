//! Real user agents, and what they say.

use crate::parser::tests::PARSER;

/// User agents, each followed by a line with its browser, system and kind of device.
const AGENTS: &str = include_str!("real_agents.txt");

#[test]
fn real_agents_are_recognised() {
    let mut lines = AGENTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    while let Some(user_agent) = lines.next() {
        let it = PARSER.parse(user_agent.as_bytes());
        let said = format!("= {}, {}, {}", it.browser, it.os, it.device.as_str());
        assert_eq!(Some(said.as_str()), lines.next(), "{user_agent}");
        assert_eq!(it.bot, said.ends_with(", bot"), "{user_agent}");
        count += 1;
    }
    assert!(count > 50, "{count} agents");
}
