//! Domains as tables.

use serde_json::Value;

use crate::table::{Column, layout, pairs, printable, text};

/// The fallback targets: their names in tables, and their fields in the API.
const REDIRECTS: [(&str, &str); 3] = [
    ("base URL", "baseUrlRedirect"),
    ("regular 404", "regular404Redirect"),
    ("invalid short URL", "invalidShortUrlRedirect"),
];

/// Formats domains as a table with one line each, none wider than `width` cells.
pub(super) fn list(domains: &[Value], width: usize) -> String {
    if domains.is_empty() {
        return "no domains\n".to_owned();
    }
    let of = |head, read: fn(&Value) -> String| Column::new(head, true, domains.iter().map(read));
    let mut columns = vec![
        of("domain", |domain| text(&domain["domain"])),
        of("default", |domain| if domain["isDefault"] == true { "yes" } else { "" }.to_owned()),
        of("state", |domain| if domain["enabled"] == false { "disabled" } else { "" }.to_owned()),
        of("protocol", |domain| text(&domain["protocol"])),
    ];
    columns.extend(REDIRECTS.map(|(head, field)| {
        Column::new(head, false, domains.iter().map(|domain| text(&domain["redirects"][field])))
    }));
    layout(columns, width)
}

/// Formats a domain as a table of two columns. Fields without a value are left out.
pub(super) fn domain(domain: &Value) -> String {
    let mut rows = vec![
        ("domain", text(&domain["domain"])),
        ("default", text(&domain["isDefault"])),
        ("enabled", text(&domain["enabled"])),
        ("protocol", text(&domain["protocol"])),
    ];
    rows.extend(REDIRECTS.map(|(name, field)| (name, text(&domain["redirects"][field]))));
    pairs(&rows)
}

/// Formats the fallback targets of a domain as a table of two columns. Targets without a value are
/// left out.
pub(super) fn redirects(name: &str, redirects: &Value) -> String {
    let mut rows = vec![("domain", printable(name))];
    rows.extend(REDIRECTS.map(|(name, field)| (name, text(&redirects[field]))));
    pairs(&rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    fn some_domains() -> Vec<Value> {
        let none =
            json!({ "baseUrlRedirect": null, "regular404Redirect": null, "invalidShortUrlRedirect": null });
        let long = format!("https://example.com/{}", "短".repeat(2_000));
        vec![
            json!({ "domain": "sho.rt", "isDefault": true, "redirects": none, "enabled": true, "protocol": null }),
            json!({ "domain": "go.example", "isDefault": false, "redirects": none, "enabled": true, "protocol": null }),
            json!({ "domain": "xn--mnchen-3ya.example:8080", "isDefault": false, "enabled": false, "protocol": "https",
                "redirects": { "baseUrlRedirect": long, "regular404Redirect": "https://example.com/\u{1b}[2J",
                    "invalidShortUrlRedirect": "/lost" } }),
        ]
    }

    #[test]
    fn a_list_says_which_domain_is_the_default_and_leaves_out_columns_that_say_nothing() {
        let plain = list(&some_domains()[..2], 100);
        assert_eq!(plain, "domain      default\nsho.rt      yes\ngo.example\n");
        assert_eq!(list(&[], 100), "no domains\n");
        let odd = list(&[json!(null), json!([]), json!({ "domain": 7, "redirects": "x" })], 100);
        assert_eq!(odd.lines().count(), 4, "{odd}");
    }

    #[test]
    fn no_line_of_a_list_is_wider_than_the_terminal_and_names_are_cut_last() {
        for width in [40, 60, 80, 100, 1_000] {
            let table = list(&some_domains(), width);
            let lines: Vec<&str> = table.lines().collect();
            assert_eq!(lines.len(), 4);
            for line in &lines {
                assert!(line.width() <= width, "{width}: {} in {line}", line.width());
                assert!(!line.contains('\u{1b}'), "{line:?}");
            }
            let place = |line: &str, part: &str| line.find(part).map(|place| line[..place].width());
            let default = place(lines[0], "def");
            assert!(default.is_some() && place(lines[1], "yes") == default, "{table}");
        }
        let wide = list(&some_domains(), 100);
        for part in ["xn--mnchen-3ya.example:8080  ", "  disabled  https  ", "/lost", "…"] {
            assert!(wide.contains(part), "{wide}");
        }
    }

    #[test]
    fn a_domain_is_shown_with_what_is_said_of_it() {
        let shown = domain(&some_domains()[0]);
        assert_eq!(shown, "domain             sho.rt\ndefault            yes\nenabled            yes\n");
        let mut other = some_domains()[2].clone();
        other["redirects"]["baseUrlRedirect"] = json!("https://example.com/");
        let expected = [
            "domain             xn--mnchen-3ya.example:8080",
            "default            no",
            "enabled            no",
            "protocol           https",
            "base URL           https://example.com/",
            "regular 404        https://example.com/\u{FFFD}[2J",
            "invalid short URL  /lost",
        ];
        assert_eq!(domain(&other).lines().collect::<Vec<_>>(), expected);
        let shown = redirects("two\nlines", &other["redirects"]);
        assert_eq!(
            shown.lines().collect::<Vec<_>>(),
            [&["domain             two lines"], &expected[4..]].concat()
        );
    }
}
