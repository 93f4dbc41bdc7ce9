//! Visits: the use cases that list, count, watch and delete them.

pub mod delete_visits;
pub mod list_visits;
pub mod live;
#[cfg(test)]
pub(crate) mod visit_memory;
pub mod visit_stats;
pub mod visit_subjects;
pub mod visit_totals;
