//! The table of metrics, generated from their descriptions in the source.

use std::{collections::BTreeMap, fmt::Write as _};

const HEAD: &str = "| metric | kind | labels | meaning |\n|---|---|---|---|\n";

/// A metric as the source describes it.
#[derive(Default)]
struct Metric {
    kind: &'static str,
    labels: Vec<String>,
    meaning: String,
}

/// Generates the table of metrics from source files.
pub(super) fn table<'a>(sources: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    for source in sources.clone() {
        for kind in ["counter", "gauge", "histogram"] {
            let calls = [format!("describe_{kind}!("), format!(".{kind}(")];
            for call in calls.iter().flat_map(|call| source.split(call).skip(1)) {
                let Some((name, meaning)) = described(call) else { continue };
                metrics.insert(name.to_owned(), Metric { kind, meaning, ..Metric::default() });
            }
        }
        // The one histogram that is not the library's.
        if let Some((name, meaning)) = constant(source, "NAME").zip(constant(source, "HELP")) {
            let labels = vec!["route".to_owned(), "status".to_owned()];
            metrics
                .insert(name.to_owned(), Metric { kind: "histogram", labels, meaning: meaning.to_owned() });
        }
    }
    for source in sources {
        for (name, metric) in &mut metrics {
            for used in source.split(&format!("\"{name}\"")).skip(1) {
                add_labels(&mut metric.labels, used);
            }
        }
    }
    let mut table = HEAD.to_owned();
    for (name, Metric { kind, labels, meaning }) in metrics {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "| `{name}` | {kind} | {} | {} |",
            labels.join(", "),
            meaning.replace('|', "\\|")
        );
    }
    table
}

/// Returns the name and the meaning in the arguments of a description: its first and last text.
fn described(call: &str) -> Option<(&str, String)> {
    let mut texts = Vec::new();
    let mut rest = call;
    loop {
        let quote = rest.find('"')?;
        // White space stands before the first text of a call; between two, a unit.
        if rest[..quote].contains(')') {
            break;
        }
        let text = &rest[quote + 1..];
        let end = text.find('"')?;
        texts.push(&text[..end]);
        rest = &text[end + 1..];
        if !rest.trim_start().starts_with(',') || rest.trim_start()[1..].trim_start().starts_with(')') {
            break;
        }
    }
    let (name, meaning) = (texts.first()?, texts.last()?);
    let meaning: Vec<&str> = meaning.split('\\').map(str::trim).collect();
    (texts.len() == 2).then(|| (*name, meaning.join(" ")))
}

/// Returns the text of a constant.
fn constant<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let rest = source.split(&format!("const {name}: &str =")).nth(1)?;
    let text = rest.trim_start().strip_prefix('"')?;
    let text = &text[..text.find('"')?];
    (text.starts_with("resolver_") || text.contains(' ')).then_some(text)
}

/// Adds the labels of a use of a metric: `, "label" => value` behind its name.
fn add_labels(labels: &mut Vec<String>, used: &str) {
    let mut rest = used;
    while let Some(next) = rest.trim_start().strip_prefix(',') {
        let Some(text) = next.trim_start().strip_prefix('"') else { return };
        let Some((label, value)) = text.split_once('"') else { return };
        let Some(value) = value.trim_start().strip_prefix("=>") else { return };
        if !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
        let Some(end) = value.find([',', ')', '\n']) else { return };
        rest = &value[end..];
    }
}
