//! Reads and writes etcd through its JSON gateway.
//!
//! A gRPC client would need generated code, and with it a protocol compiler on every machine that runs the tests.
//! Calls go to one member after the other until one answers: all calls here can safely be made twice.

use std::time::Duration;

use anyhow::Context;
use reqwest::Client;
use serde_json::{Value, json};

use crate::http::{self, Answer};
use crate::{base64, wait};

/// Longer than an election with etcd's default times.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// How long the members together may take to answer, for instance while they elect a leader.
const CALL_WITHIN: Duration = Duration::from_secs(15);

/// A client of some or all members of an etcd cluster.
#[derive(Clone, Debug)]
pub struct Gateway {
    endpoints: Vec<String>,
    http: Client,
}

impl Gateway {
    /// A client of the members with these URLs.
    ///
    /// # Errors
    /// No HTTP client can be made.
    pub fn new(endpoints: Vec<String>) -> anyhow::Result<Self> {
        Ok(Self { endpoints, http: http::client()? })
    }

    /// The members' URLs.
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// All keys with a prefix, in order, and their values as bytes. The empty prefix means every key.
    ///
    /// # Errors
    /// No member answers.
    pub async fn get_prefix_bytes(&self, prefix: &str) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let (key, range_end) = prefix_range(prefix.as_bytes());
        let asked = json!({ "key": base64::encode(&key), "range_end": base64::encode(&range_end) });
        let answer = self.call("/v3/kv/range", &asked).await?;
        // The gateway leaves empty lists and empty values out.
        let pairs = answer.get("kvs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        pairs.iter().map(pair).collect()
    }

    /// Writes a key.
    ///
    /// # Errors
    /// No member answers, or etcd refuses.
    pub async fn put(&self, key: &str, value: &str) -> anyhow::Result<()> {
        let pair =
            json!({ "key": base64::encode(key.as_bytes()), "value": base64::encode(value.as_bytes()) });
        self.call("/v3/kv/put", &pair).await.map(drop)
    }

    /// Deletes a key; none need be there.
    ///
    /// # Errors
    /// No member answers, or etcd refuses.
    pub async fn delete(&self, key: &str) -> anyhow::Result<()> {
        self.call("/v3/kv/deleterange", &json!({ "key": base64::encode(key.as_bytes()) })).await.map(drop)
    }

    /// The ids of all leases.
    ///
    /// # Errors
    /// No member answers.
    pub async fn leases(&self) -> anyhow::Result<Vec<i64>> {
        let answer = self.call("/v3/lease/leases", &json!({})).await?;
        let leases = answer.get("leases").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        // The gateway writes 64-bit numbers as text, since JSON readers may cut them.
        leases
            .iter()
            .map(|lease| http::text_field(lease, "ID")?.parse().context("parse a lease id"))
            .collect()
    }

    /// Revokes a lease, and so deletes the keys bound to it.
    ///
    /// # Errors
    /// No member answers, or there is no such lease (any more).
    pub async fn revoke_lease(&self, id: i64) -> anyhow::Result<()> {
        self.call("/v3/lease/revoke", &json!({ "ID": id.to_string() })).await.map(drop)
    }

    /// The lease that a key is bound to; `None` when there is no such key, or it has no lease.
    ///
    /// # Errors
    /// No member answers.
    pub async fn lease_of(&self, key: &str) -> anyhow::Result<Option<i64>> {
        let answer = self.call("/v3/kv/range", &json!({ "key": base64::encode(key.as_bytes()) })).await?;
        // The gateway leaves a lease of zero, which means none, out.
        let lease = answer.pointer("/kvs/0/lease").and_then(Value::as_str);
        lease.map(|id| id.parse().context("parse a lease id")).transpose()
    }

    /// Asks one member, by its place in the list, for its state: the answer has `header.member_id` and `leader`.
    ///
    /// # Errors
    /// That member does not answer.
    pub async fn status(&self, member: usize) -> anyhow::Result<Value> {
        let endpoint = self.endpoints.get(member).with_context(|| format!("there is no member {member}"))?;
        self.call_one(endpoint, "/v3/maintenance/status", &json!({})).await
    }

    /// Makes any other call: `path` as in etcd's gateway documentation, `/v3/maintenance/alarm` say.
    ///
    /// # Errors
    /// No member answers with success; the message holds the last answer.
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

/// etcd understood and said no: asking another member gives the same answer.
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

/// Key and value of one entry of a range answer.
fn pair(entry: &Value) -> anyhow::Result<(String, Vec<u8>)> {
    let key = base64::decode(&http::text_field(entry, "key")?)?;
    let value = entry.get("value").and_then(Value::as_str).unwrap_or_default();
    Ok((String::from_utf8(key).context("a key is not UTF-8")?, base64::decode(value)?))
}

/// The half-open range of the keys with a prefix.
fn prefix_range(prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return (prefix.to_vec(), end);
        }
    }
    // To etcd an end of one zero byte means "no end"; an empty key is not allowed.
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
