//! Reservations: codes before their links.

use links::reservation::COUNT_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Data, DateTime, Patch};

/// How many codes to reserve.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true, "required" = ["count"]))]
pub struct NewReservation {
    /// The number of codes.
    #[schemars(with = "u64", range(min = 1, max = COUNT_MAX))]
    pub count: Option<u64>,
    /// The name of the codes' keyspace; without it the default one.
    #[schemars(extend("format" = "keyspace"))]
    pub keyspace: Patch<String>,
}

/// Codes without links yet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct Reservation<'a> {
    /// The id.
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    pub id: &'a str,
    /// The keyspace of the codes; empty for one that this resolver does not know any more.
    pub keyspace: &'a str,
    /// The number of codes.
    pub count: u64,
    /// When the codes were reserved.
    pub date_created: DateTime,
    /// When the reservation was given up.
    pub date_closed: Option<DateTime>,
    /// How many of the codes have links. Absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub filled: Option<u64>,
    /// The codes. Absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub short_codes: Option<Vec<String>>,
}

/// Reservations, open ones first, and the latest first among them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct ReservationList<'a> {
    /// The list.
    pub reservations: Data<Reservation<'a>>,
}
