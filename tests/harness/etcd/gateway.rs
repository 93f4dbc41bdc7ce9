//! Calls of an etcd cluster, by its JSON gateway.
//!
//! A call tries one member after the other until one responds: all calls here can safely be
//! repeated.

use std::time::Duration;

use anyhow::Context;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::EtcdCluster;
use crate::http::{self, Answer};
use crate::wait;

/// The time limit for one member's response, longer than an election with etcd's default timings.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// The time limit for a call over all members, which may be electing a leader.
const CALL_WITHIN: Duration = Duration::from_secs(15);

impl EtcdCluster {
    /// Returns all keys with a prefix and their values, in key order.
    ///
    /// # Errors
    /// Returns an error if no member responds, the prefix is empty, or a key or a value is not
    /// UTF-8.
    pub async fn get_prefix(&self, prefix: &str) -> anyhow::Result<Vec<(String, String)>> {
        // The first key behind them. No byte of UTF-8 is the highest one.
        let mut end = prefix.as_bytes().to_vec();
        *end.last_mut().context("the prefix is empty")? += 1;
        let asked = json!({ "key": STANDARD.encode(prefix), "range_end": STANDARD.encode(end) });
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

    /// Revokes a lease while its owner is still alive, which deletes the keys bound to it.
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
    pub async fn member_status(&self, member: usize) -> anyhow::Result<Value> {
        let member = self.members.get(member).with_context(|| format!("there is no member {member}"))?;
        self.call_one(&member.url(), "/v3/maintenance/status", &json!({})).await
    }

    /// Makes any other call. `path` is as in etcd's gateway documentation, for example
    /// `/v3/maintenance/alarm`.
    ///
    /// # Errors
    /// Returns an error if no member responds with success; the message contains the last response.
    pub async fn call(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let mut last = anyhow::anyhow!("etcd has no members");
        let answered = wait::until_some(CALL_WITHIN, "an etcd member answers", async || {
            for member in &self.members {
                match self.call_one(&member.url(), path, body).await {
                    Ok(answer) => return Some(Ok(answer)),
                    Err(failed) if failed.is::<Refused>() => return Some(Err(failed)),
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

/// Decodes the key and the value of one entry of a range response.
fn pair(entry: &Value) -> anyhow::Result<(String, String)> {
    let key = STANDARD.decode(http::text_field(entry, "key")?)?;
    let key = String::from_utf8(key).context("a key is not UTF-8")?;
    let value = STANDARD.decode(entry.get("value").and_then(Value::as_str).unwrap_or_default())?;
    let value = String::from_utf8(value).with_context(|| format!("the value of {key}"))?;
    Ok((key, value))
}
