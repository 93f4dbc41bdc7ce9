//! What can be wrong with a call, as a person is told.

use std::time::Duration;

use daemon::Exit;
use serde_json::Value;

use crate::commands::table::{cut, printable};

/// Cells of an error's text.
pub(super) const TEXT_CELLS: usize = 2_000;

/// Why a call of the API came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server did not answer, or its answer broke off.
    #[error("--server {server}: not to be had: {reason}{}", if *.in_doubt { "; whether the call was carried out is not known" } else { "" })]
    Unreachable {
        /// Its address.
        server: String,
        /// What happened to the connection.
        reason: String,
        /// Whether the server may have carried a change out all the same.
        in_doubt: bool,
    },
    /// The server refused the call.
    #[error("the server refused the call: {text}")]
    Refused {
        /// The answer's status.
        status: u16,
        /// What it says, on one line.
        text: String,
    },
    /// What answers there is no server of links, or sends more than any would.
    #[error("--server {server}: {expected}")]
    Foreign {
        /// Its address.
        server: String,
        /// What was expected instead.
        expected: &'static str,
    },
    /// The call is none that could be sent.
    #[error("expected a call that can be sent: {0}")]
    Unsendable(String),
}

impl ClientError {
    /// The exit code to end with.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Unreachable { .. } => Exit::Unavailable,
            // A later call may do.
            Self::Refused { status: 429 | 502..=504, .. } => Exit::Unavailable,
            Self::Refused { status: 404, .. } => Exit::NotFound,
            // What was asked for, or the key that it was asked with, is wrong; 409 is a name that another has, 412 a version that is no more.
            Self::Refused { status: 400 | 401 | 403 | 409 | 412 | 422, .. } | Self::Unsendable(_) => {
                Exit::Config
            }
            Self::Refused { .. } | Self::Foreign { .. } => Exit::Internal,
        }
    }
}

/// What came back.
pub(super) struct Reply {
    /// Its status.
    pub(super) status: u16,
    /// How long the server asks to wait.
    pub(super) wait: Option<Duration>,
    /// All of its body.
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// Why it is none of those that were asked for.
    pub(super) fn refusal(&self) -> ClientError {
        let mut text = problem_text(self.status, &self.body);
        if let Some(wait) = self.wait {
            text = format!("{text} (try again in {} s)", wait.as_secs());
        }
        ClientError::Refused { status: self.status, text: cut(&text, TEXT_CELLS) }
    }
}

/// A problem (RFC 9457) on one line: the fields that are wrong with what was expected of them, or what it says of itself.
fn problem_text(status: u16, body: &[u8]) -> String {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(title) = problem["title"].as_str() else {
        return format!("{status}, without a reason: expected a server of links to answer at --server");
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
            (500, "<html>", "500, without a reason: expected a server of links to answer at --server"),
            (301, "", "301, without a reason: expected a server of links to answer at --server"),
            (500, "[1]", "500, without a reason: expected a server of links to answer at --server"),
        ] {
            assert_eq!(problem_text(status, body.as_bytes()), expected);
        }
        let reply = Reply { status: 429, wait: Some(Duration::from_secs(7)), body: many.into_bytes() };
        let text = reply.refusal().to_string();
        assert!(text.chars().count() < TEXT_CELLS + 100 && !text.contains('\n'), "{}", text.len());
        let reply = Reply { body: br#"{"title":"Too Many Requests"}"#.to_vec(), ..reply };
        let expected = "the server refused the call: 429 Too Many Requests (try again in 7 s)";
        assert_eq!(reply.refusal().to_string(), expected);
    }

    #[test]
    fn the_exit_code_says_whether_to_try_again_or_to_ask_otherwise() {
        let refused = |status| ClientError::Refused { status, text: String::new() }.exit();
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
