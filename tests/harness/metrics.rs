//! A reader for metrics pages in Prometheus' text format.

/// Returns the sum of a metric over all its label sets; `None` if the page has no such metric.
pub fn sum(page: &str, name: &str) -> Option<f64> {
    sum_where(page, name, "")
}

/// Returns the sum of a metric over the label sets that contain `label`, written as on the page:
/// `result="ok"`. An empty `label` matches all of them.
pub fn sum_where(page: &str, name: &str, label: &str) -> Option<f64> {
    let samples = page.lines().filter_map(sample);
    let values = samples.filter(|(found, labels, _)| *found == name && labels.contains(label));
    values.map(|(_, _, value)| value).reduce(|sum, value| sum + value)
}

/// Parses a line into name, labels without their braces, and value; `None` for comments and blank
/// lines.
fn sample(line: &str) -> Option<(&str, &str, f64)> {
    if line.starts_with('#') {
        return None;
    }
    // Label values may contain spaces and braces. Only numbers follow the last brace.
    let (name, labels, rest) = match line.split_once('{') {
        Some((name, rest)) => {
            let (labels, rest) = rest.rsplit_once('}')?;
            (name, labels, rest)
        }
        None => {
            let (name, rest) = line.split_once(' ')?;
            (name, "", rest)
        }
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name, labels, value))
}

#[cfg(test)]
mod tests {
    use super::{sum, sum_where};

    const PAGE: &str = "\
# HELP issuer_calls_total Calls, by result.
# TYPE issuer_calls_total counter
issuer_calls_total{result=\"ok\",method=\"Allocate Block\"} 4
issuer_calls_total{result=\"refused } \"} 2.5 1700000000000

issuer_leader 1
issuer_leader_changes_total 7
";

    #[test]
    fn a_metric_is_summed_over_its_label_sets() {
        assert_eq!(sum(PAGE, "issuer_calls_total"), Some(6.5));
        assert_eq!(sum(PAGE, "issuer_leader"), Some(1.0));
        assert_eq!(sum_where(PAGE, "issuer_calls_total", "result=\"ok\""), Some(4.0));
    }

    #[test]
    fn an_unknown_metric_is_none_and_not_zero() {
        assert_eq!(sum(PAGE, "issuer_lead"), None);
        assert_eq!(sum_where(PAGE, "issuer_calls_total", "result=\"lost\""), None);
    }
}
