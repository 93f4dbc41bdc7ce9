//! Rules for the hosts that links may lead to.

use links::targets::TargetRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Data;

/// Hosts, and whether links may lead there.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true, "required" = ["pattern", "allowed"]))]
pub struct Target {
    /// A host, or `*.` and a domain for every host below it, but not the domain itself.
    #[schemars(with = "String", length(max = TargetRule::MAX_LEN))]
    #[schemars(extend("format" = "host-pattern", "examples" = ["*.example.com"]))]
    pub pattern: Option<String>,
    /// Whether links may lead there.
    #[schemars(with = "bool")]
    pub allowed: Option<bool>,
}

/// All rules for targets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct TargetList {
    /// The list.
    pub targets: Data<Target>,
}
