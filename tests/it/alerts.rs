//! A sample of the alerts that are proven by their faults: what the binary `alerts` runs in full.

use std::time::Duration;

use harness::{Launch, Scratch};

/// One alert on a state and one on a comparison of two daemons. Both fire within seconds.
const SAMPLE: &str = "NoLeader,TwoLeaders";
const RUN_WITHIN: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread")]
async fn alerts_fire_under_their_faults_and_clear_and_page_nobody_else() {
    let scratch = Scratch::new().unwrap();
    let alerts = Launch::new(&scratch, "alerts", env!("CARGO_BIN_EXE_alerts"));
    let ran = alerts.args(["--json", "--only", SAMPLE]).run(RUN_WITHIN).await.unwrap();
    assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{report:#}");
    for row in rows {
        assert!(row["fired_after_s"].is_number() && row["cleared_after_s"].is_number(), "{row:#}");
    }
}
