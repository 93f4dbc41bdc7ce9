//! Errors of API calls, formatted for people.

use std::time::Duration;

use daemon::Exit;
use serde_json::Value;

use crate::table::{cut, printable};

/// The maximum width of an error's text, in cells.
pub(super) const TEXT_CELLS: usize = 2_000;

/// The errors of an API call.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server at an address did not answer, or its answer was incomplete: the reason.
    #[error("--server {0}: no answer: {1}")]
    Unreachable(String, String),
    /// The server refused the call: the answer's status, and its reason on one line.
    #[error("the server refused the call: {1}")]
    Refused(u16, String),
    /// The address does not belong to a resolver, or the answer is too large.
    #[error("--server {0}: {1}")]
    Foreign(String, &'static str),
    /// The call cannot be sent as an HTTP request.
    #[error("the call cannot be sent: {0}")]
    Unsendable(String),
}

impl ClientError {
    /// Returns the exit code of the process for this error.
    pub fn exit(&self) -> Exit {
        match self {
            // A later call may succeed.
            Self::Unreachable(..) | Self::Refused(429 | 502..=504, _) => Exit::Unavailable,
            Self::Refused(404, _) => Exit::NotFound,
            // The request or its API key is wrong. 409 means that a name is taken, 412 that the
            // version is outdated.
            Self::Refused(400 | 401 | 403 | 409 | 412 | 422, _) | Self::Unsendable(_) => Exit::Config,
            Self::Refused(..) | Self::Foreign(..) => Exit::Internal,
        }
    }
}

/// An answer, whatever its status.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    /// The pause that the server asks for.
    pub(crate) wait: Option<Duration>,
    /// The number of items in the body, if the server tells it.
    pub(crate) count: Option<u64>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Parses the body as JSON.
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Converts an answer without success to an error.
    pub(super) fn refusal(&self) -> ClientError {
        let mut text = problem_text(self.status, &self.body);
        if let Some(wait) = self.wait {
            text = format!("{text} (try again in {} s)", wait.as_secs());
        }
        ClientError::Refused(self.status, cut(&text, TEXT_CELLS))
    }
}

/// Formats a problem (RFC 9457) on one line: the invalid fields, each with what was
/// expected or why it was refused, or else its detail.
fn problem_text(status: u16, body: &[u8]) -> String {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(title) = problem["title"].as_str() else {
        return format!("{status}: not a Shortmint server? Check --server.");
    };
    let invalid = problem["invalidElements"].as_array().map(Vec::as_slice).unwrap_or_default();
    let fields: Vec<String> = invalid
        .iter()
        .filter_map(Value::as_str)
        .map(|field| match problem["expected"][field].as_str() {
            Some(expected) => format!("{field}: {expected}"),
            None => field.to_owned(),
        })
        .collect();
    let detail = if fields.is_empty() {
        problem["detail"].as_str().unwrap_or_default().to_owned()
    } else {
        fields.join("; ")
    };
    let text = if detail.is_empty() { title.to_owned() } else { format!("{title}: {detail}") };
    format!("{status} {}", printable(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_becomes_one_line_that_names_the_fields() {
        let many = format!(r#"{{"title":"Long","detail":"{}"}}"#, "é".repeat(100_000));
        for (status, body, expected) in [
            (
                400,
                r#"{"title":"Invalid data","detail":"Provided data is not valid","invalidElements":["maxVisits","title"],
                    "expected":{"maxVisits":"expected a whole number from 1, or null","title":"expected\na string"}}"#,
                "400 Invalid data: maxVisits: expected a whole number from 1, or null; title: expected a string",
            ),
            (400, r#"{"title":"Invalid data","invalidElements":["tags", 7]}"#, "400 Invalid data: tags"),
            (400, r#"{"title":"Invalid data","invalidElements":"x","expected":[]}"#, "400 Invalid data"),
            (
                404,
                r#"{"title":"Short URL not found","detail":"No \u001b[2J"}"#,
                "404 Short URL not found: No \u{FFFD}[2J",
            ),
            (500, "<html>", "500: not a Shortmint server? Check --server."),
            (301, "", "301: not a Shortmint server? Check --server."),
            (500, "[1]", "500: not a Shortmint server? Check --server."),
        ] {
            assert_eq!(problem_text(status, body.as_bytes()), expected);
        }
        let wait = Some(Duration::from_secs(7));
        let reply = Reply { status: 429, location: None, wait, count: None, body: many.into_bytes() };
        let text = reply.refusal().to_string();
        assert!(text.chars().count() < TEXT_CELLS + 100 && !text.contains('\n'), "{}", text.len());
        let reply = Reply { body: br#"{"title":"Too Many Requests"}"#.to_vec(), ..reply };
        let expected = "the server refused the call: 429 Too Many Requests (try again in 7 s)";
        assert_eq!(reply.refusal().to_string(), expected);
    }

    #[test]
    fn the_exit_code_says_whether_to_try_again_or_to_ask_otherwise() {
        let refused = |status| ClientError::Refused(status, String::new()).exit();
        for (status, exit) in [
            (400, Exit::Config),
            (401, Exit::Config),
            (409, Exit::Config),
            (422, Exit::Config),
            (403, Exit::Config),
            (404, Exit::NotFound),
            (412, Exit::Config),
            (429, Exit::Unavailable),
            (500, Exit::Internal),
            (503, Exit::Unavailable),
            (507, Exit::Internal),
        ] {
            assert_eq!(refused(status), exit, "{status}");
        }
    }
}
