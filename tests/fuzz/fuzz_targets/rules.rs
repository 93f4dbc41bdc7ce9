//! Redirect rules as JSON.
//!
//! The input is three lines, which a visitor sends: the query, `Accept-Language` and `User-Agent`.
//! The rest is JSON: a list of rules as it is stored, or the body of a request to the API.
//!
//! 1. Rules that are read from their stored form are written back to equal rules, within the limits
//!    of a link.
//! 2. The answer of the API, sent back to it, gives the same rules.
//! 3. A condition is made of the three fields that it shows, none longer than its limit.
//! 4. The chosen rule is the first one whose conditions hold one by one, and a rule without
//!    conditions always matches. Rules with shares are left out, which depend on those before them.
#![no_main]

use std::net::Ipv4Addr;

use codes::LinkId;
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use links::{
    Buckets, CONDITION_TYPES, CONDITIONS_MAX, Condition, Facts, LongUrl, Protocol, RULES_MAX, Rule, Schemes,
    Text, asks_where, choose, excess_share,
};
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.splitn(4, '\n');
    let [query, accept_language, user_agent, json] =
        std::array::from_fn(|_| lines.next().unwrap_or_default());
    let facts = Facts {
        user_agent,
        accept_language,
        query,
        ip: Ipv4Addr::new(192, 0, 2, 7).into(),
        country: Some("DE"),
        city: Some("Berlin"),
        now: Timestamp::UNIX_EPOCH,
        buckets: Buckets::new([7; 16], LinkId::from_stored(1)),
        path: "/v1.30/a",
        scheme: Protocol::Http,
    };
    let stored = Rule::parse_list(json).unwrap_or_default();
    for rules in [stored, of_request(json)] {
        check_limits(&rules);
        check_stored(&rules);
        check_answer(&rules);
        check_choice(&rules, &facts);
    }
});

/// Reads the rules of a request, and leaves out what the API would refuse.
fn of_request(json: &str) -> Vec<Rule> {
    let body: dto::NewRedirectRules = serde_json::from_str(json).unwrap_or_default();
    let rules = body.redirect_rules.unwrap_or_default();
    let rules: Vec<Rule> = rules.into_iter().take(RULES_MAX).filter_map(rule).collect();
    let is_refused = excess_share(&rules).is_some() || rules.iter().any(|rule| rule.second_path().is_some());
    if is_refused { Vec::new() } else { rules }
}

fn rule(value: Value) -> Option<Rule> {
    let rule: dto::NewRedirectRule = serde_json::from_value(value).ok()?;
    let long_url = LongUrl::parse(&rule.long_url?, &[], &Schemes::default()).ok()?;
    let conditions = rule.conditions.unwrap_or_default();
    let conditions = conditions.into_iter().take(CONDITIONS_MAX).filter_map(condition).collect();
    Some(Rule::new(long_url, conditions))
}

fn condition(value: Value) -> Option<Condition> {
    let fields: dto::NewCondition = serde_json::from_value(value).ok()?;
    let (kind, key, value) = (fields.r#type.value()?, fields.match_key.value(), fields.match_value.value());
    let parsed = Condition::parse(&kind, key.as_deref(), value.as_deref());
    if let Err(error) = &parsed {
        assert!(["type", "matchKey", "matchValue"].contains(&error.field));
        assert!(error.to_string().starts_with("expected "), "{error}");
    }
    parsed.ok()
}

fn check_limits(rules: &[Rule]) {
    assert!(rules.len() <= RULES_MAX);
    for rule in rules {
        assert!(rule.conditions.len() <= CONDITIONS_MAX);
        for condition in &rule.conditions {
            let (kind, key, value) = condition.parts();
            assert!(CONDITION_TYPES.contains(&kind));
            for text in [&key, &value].into_iter().flatten() {
                assert!((1..=Text::MAX_LEN).contains(&text.len()) && !text.contains('\0'), "{text:?}");
            }
            assert_eq!(Condition::parse(kind, key, value).as_ref(), Ok(condition));
        }
    }
}

fn check_stored(rules: &[Rule]) {
    let text = serde_json::to_string(rules).expect("rules have only string keys");
    let again = Rule::parse_list(&text).expect("rules read back");
    assert_eq!(again, rules);
    assert_eq!(asks_where(&again), asks_where(rules));
}

/// Sends the API's answer back to the API. Rules whose URL it would not take are left out: the
/// stored form is not checked again.
fn check_answer(rules: &[Rule]) {
    let schemes = Schemes::default();
    let is_valid =
        |rule: &&Rule| LongUrl::parse(rule.long_url.as_str(), &[], &schemes).as_ref() == Ok(&rule.long_url);
    let rules: Vec<Rule> = rules.iter().filter(is_valid).cloned().collect();
    let shown = |condition: &Condition| {
        let (kind, match_key, match_value) = condition.parts();
        let [match_key, match_value] = [match_key, match_value].map(|text| text.map(str::to_owned));
        dto::Condition { r#type: kind.to_owned(), match_key, match_value }
    };
    let answer = dto::RedirectRules {
        default_long_url: "https://to.example/",
        redirect_rules: rules
            .iter()
            .zip(1..)
            .map(|(rule, priority)| dto::RedirectRule {
                long_url: rule.long_url.as_str(),
                priority,
                conditions: rule.conditions.iter().map(shown).collect(),
            })
            .collect(),
    };
    let answer = serde_json::to_value(&answer).expect("an answer has only string keys");
    let body = json!({ "redirectRules": answer["redirectRules"] });
    assert_eq!(of_request(&body.to_string()), rules);
}

fn check_choice(rules: &[Rule], facts: &Facts<'_>) {
    let rules: Vec<Rule> = rules.iter().filter(|rule| rule.share() == 0).cloned().collect();
    let holds = |condition: &Condition| {
        let alone = Rule::new(LongUrl::from_stored("x"), vec![condition.clone()]);
        choose(&[alone], facts, |_, _| {}).is_some()
    };
    let expected = rules.iter().find(|rule| rule.conditions.iter().all(holds));
    assert_eq!(choose(&rules, facts, |_, _| {}), expected);
}
