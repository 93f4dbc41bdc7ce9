//! A client of etcd's JSON gateway.
//!
//! A gRPC client would need generated code, and so a protocol compiler on every machine that runs
//! the tests. A call tries one member after the other until one responds: all calls here can safely
//! be repeated.

use std::time::Duration;

use anyhow::Context;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::Client;
use serde_json::{Value, json};

use crate::http::{self, Answer};
use crate::wait;

/// The time limit for one member's response, longer than an election with etcd's default timings.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// The time limit for a call over all members, which may be electing a leader.
const CALL_WITHIN: Duration = Duration::from_secs(15);

/// A client of some or all members of an etcd cluster.
#[derive(Clone, Debug)]
pub struct Gateway {
    endpoints: Vec<String>,
    http: Client,
}

impl Gateway {
    /// Creates a client of the members at these URLs.
    ///
    /// # Errors
    /// Returns an error if the HTTP client cannot be built.
    pub fn new(endpoints: Vec<String>) -> anyhow::Result<Self> {
        Ok(Self { endpoints, http: http::client()? })
    }

    /// Returns the members' URLs.
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// Returns all keys with a prefix, in key order, and their values as bytes. The empty prefix
    /// matches every key.
    ///
    /// # Errors
    /// Returns an error if no member responds or a key is not UTF-8.
    pub async fn get_prefix_bytes(&self, prefix: &str) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let (key, range_end) = prefix_range(prefix.as_bytes());
        let asked = json!({ "key": STANDARD.encode(key), "range_end": STANDARD.encode(range_end) });
        let answer = self.call("/v3/kv/range", &asked).await?;
        // The gateway omits empty lists and empty values.
        let pairs = answer.get("kvs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        pairs.iter().map(pair).collect()
    }

    /// Writes a key.
    ///
    /// # Errors
    /// Returns an error if no member responds or etcd refuses the write.
    pub async fn put(&self, key: &str, value: &str) -> anyhow::Result<()> {
        let pair = json!({ "key": STANDARD.encode(key), "value": STANDARD.encode(value) });
        self.call("/v3/kv/put", &pair).await.map(drop)
    }

    /// Deletes a key. Deleting a key that does not exist is not an error.
    ///
    /// # Errors
    /// Returns an error if no member responds or etcd refuses the deletion.
    pub async fn delete(&self, key: &str) -> anyhow::Result<()> {
        self.call("/v3/kv/deleterange", &json!({ "key": STANDARD.encode(key) })).await.map(drop)
    }

    /// Returns the ids of all leases.
    ///
    /// # Errors
    /// Returns an error if no member responds.
    pub async fn leases(&self) -> anyhow::Result<Vec<i64>> {
        let answer = self.call("/v3/lease/leases", &json!({})).await?;
        let leases = answer.get("leases").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        // The gateway writes 64-bit numbers as strings, because JSON readers may lose digits.
        leases
            .iter()
            .map(|lease| http::text_field(lease, "ID")?.parse().context("parse a lease id"))
            .collect()
    }

    /// Revokes a lease, which deletes the keys bound to it.
    ///
    /// # Errors
    /// Returns an error if no member responds or the lease does not exist (any more).
    pub async fn revoke_lease(&self, id: i64) -> anyhow::Result<()> {
        self.call("/v3/lease/revoke", &json!({ "ID": id.to_string() })).await.map(drop)
    }

    /// Returns the lease that a key is bound to; `None` if the key does not exist or has no lease.
    ///
    /// # Errors
    /// Returns an error if no member responds.
    pub async fn lease_of(&self, key: &str) -> anyhow::Result<Option<i64>> {
        let answer = self.call("/v3/kv/range", &json!({ "key": STANDARD.encode(key) })).await?;
        // The gateway omits a lease id of zero, which means "no lease".
        let lease = answer.pointer("/kvs/0/lease").and_then(Value::as_str);
        lease.map(|id| id.parse().context("parse a lease id")).transpose()
    }

    /// Returns the status of one member, by its index in the list. The response has
    /// `header.member_id` and `leader`.
    ///
    /// # Errors
    /// Returns an error if that member does not respond.
    pub async fn status(&self, member: usize) -> anyhow::Result<Value> {
        let endpoint = self.endpoints.get(member).with_context(|| format!("there is no member {member}"))?;
        self.call_one(endpoint, "/v3/maintenance/status", &json!({})).await
    }

    /// Makes any other call. `path` is as in etcd's gateway documentation, for example
    /// `/v3/maintenance/alarm`.
    ///
    /// # Errors
    /// Returns an error if no member responds with success; the message contains the last response.
    pub async fn call(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let mut last = anyhow::anyhow!("etcd has no members");
        let answered = wait::until_some(CALL_WITHIN, "an etcd member answers", async || {
            for endpoint in &self.endpoints {
                match self.call_one(endpoint, path, body).await {
                    Ok(answer) => return Some(Ok(answer)),
                    Err(failed) if is_refusal(&failed) => return Some(Err(failed)),
                    Err(failed) => last = failed,
                }
            }
            None
        });
        let answered = answered.await;
        answered.with_context(|| format!("{path}: {last:#}"))?
    }

    async fn call_one(&self, endpoint: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.http.post(format!("{endpoint}{path}")).timeout(ANSWER_WITHIN).json(body);
        let answer = Answer::to(request).await.with_context(|| format!("call {endpoint}{path}"))?;
        if matches!(answer.status, 400..500) {
            return Err(Refused { status: answer.status, body: answer.body }.into());
        }
        answer.success()?.json()
    }
}

/// A refusal: etcd understood the call and rejected it, so another member would do the same.
#[derive(Debug)]
struct Refused {
    status: u16,
    body: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "etcd answered {}: {}", self.status, self.body)
    }
}

impl std::error::Error for Refused {}

fn is_refusal(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refused>().is_some()
}

/// Decodes the key and the value of one entry of a range response.
fn pair(entry: &Value) -> anyhow::Result<(String, Vec<u8>)> {
    let key = STANDARD.decode(http::text_field(entry, "key")?)?;
    let value = entry.get("value").and_then(Value::as_str).unwrap_or_default();
    Ok((String::from_utf8(key).context("a key is not UTF-8")?, STANDARD.decode(value)?))
}

/// Returns the half-open range of the keys with a prefix.
fn prefix_range(prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return (prefix.to_vec(), end);
        }
    }
    // In etcd a range end of one zero byte means "no end", and an empty key is not allowed.
    (if prefix.is_empty() { vec![0] } else { prefix.to_vec() }, vec![0])
}

#[cfg(test)]
mod tests {
    use super::prefix_range;

    #[test]
    fn the_end_of_a_prefix_is_the_next_prefix() {
        assert_eq!(prefix_range(b"/a/"), (b"/a/".to_vec(), b"/a0".to_vec()));
        assert_eq!(prefix_range(b"a\xff"), (b"a\xff".to_vec(), b"b".to_vec()));
        assert_eq!(prefix_range(b""), (vec![0], vec![0]));
    }
}
