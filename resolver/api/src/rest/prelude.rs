//! Imports of every file of a noun: the parts of a call, and the words that its route is described
//! with.

pub(super) use app::FieldErrors;
pub(super) use hyper::{Method, StatusCode};
pub(super) use links::{api_key::Grant, scope::Scope};
pub(super) use web::{Answer, empty};

pub(super) use super::{
    call::Call,
    docs::{Header, Kind, Topic},
    json::json,
    problem::Problem,
    read::Fields,
    route::{Route, keyed},
};
