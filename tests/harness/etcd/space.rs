//! An etcd that runs out of space, and gets some back.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::EtcdCluster;

/// A single key outside of the issuers' prefix, so that a compaction frees all but its last value.
const JUNK_KEY: &str = "/junk";
const MIB: usize = 1 << 20;

impl EtcdCluster {
    /// Writes values of a mebibyte, and returns whether etcd has refused one for want of space.
    ///
    /// # Errors
    /// Returns an error if etcd refuses one for another reason.
    pub async fn fill(&self, mebibytes: usize) -> anyhow::Result<bool> {
        let filling = "x".repeat(MIB);
        for _ in 0..mebibytes {
            if let Err(refused) = self.put(JUNK_KEY, &filling).await {
                let refused = format!("{refused:#}");
                anyhow::ensure!(refused.contains("database space exceeded"), refused);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the size of the first member's database, in bytes.
    ///
    /// # Errors
    /// Returns an error if it does not answer.
    pub async fn size(&self) -> anyhow::Result<u64> {
        let status = self.member_status(0).await?;
        let size = status["dbSize"].as_str().with_context(|| format!("no size in {status}"))?;
        Ok(size.parse()?)
    }

    /// Frees the space as etcd's maintenance guide tells an operator: compact, defragment, disarm.
    /// The cluster has one member, because a defragmentation is one member's.
    ///
    /// # Errors
    /// Returns an error if etcd does not do it.
    pub async fn make_room(&self) -> anyhow::Result<()> {
        self.delete(JUNK_KEY).await?;
        let now = self.member_status(0).await?["header"]["revision"].clone();
        self.call("/v3/kv/compaction", &json!({ "revision": now, "physical": true })).await?;
        self.call("/v3/maintenance/defragment", &json!({})).await?;
        for alarm in self.alarms().await? {
            let disarm =
                json!({ "action": "DEACTIVATE", "memberID": alarm["memberID"], "alarm": alarm["alarm"] });
            self.call("/v3/maintenance/alarm", &disarm).await.context("disarm an alarm")?;
        }
        Ok(())
    }

    /// Returns the alarms that members have raised.
    ///
    /// # Errors
    /// Returns an error if no member answers.
    pub async fn alarms(&self) -> anyhow::Result<Vec<Value>> {
        let answer = self.call("/v3/maintenance/alarm", &json!({ "action": "GET" })).await?;
        Ok(answer.get("alarms").and_then(Value::as_array).cloned().unwrap_or_default())
    }
}
