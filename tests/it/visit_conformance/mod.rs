//! Cases that every store of visits passes. Each takes a store without visits, and the parts of the
//! database that it cannot change by itself.
//!
//! `visit_store_sqlite`, `visit_store_postgres` and `visits_clickhouse` run those that apply, each
//! with a store of its own.

/// Calls a macro with the cases of every store that need nothing but it, by their modules.
macro_rules! common_cases {
    ($run:ident) => {
        $run! {
            batches: a_batch_is_stored_once_however_often_it_is_sent,
                a_process_that_was_replaced_stores_nothing, a_batch_from_another_position_is_refused,
                a_batch_is_refused_until_it_respects_all_deletions,
                a_batch_is_stored_beside_deletions_of_other_visits,
                a_batch_is_refused_if_its_links_have_other_tags, texts_come_back_byte_for_byte;
            counters: counters_of_two_slots_add_up, orphans_count_by_kind_and_domain,
                days_are_closed_beside_late_visits_and_deletions;
            deletion: a_deletion_takes_the_visits_of_a_link_from_everything,
                orphans_are_deleted_and_links_stay;
            erasure: erased_visits_lose_their_rows_and_stay_counted,
                whole_addresses_are_erased_with_their_texts,
                whole_addresses_that_visit_again_can_be_erased_again,
                batches_respect_erasures_until_their_visits_are_too_old;
            pages: pages_of_rows_equal_a_plain_sort, the_latest_rows_are_those_after_an_id;
            producers: each_of_128_spools_has_a_slot_and_one_more_has_none,
                a_spool_that_comes_back_goes_on_at_its_position;
            upkeep: retention_removes_rows_and_texts_and_keeps_counters,
                secrets_are_the_same_for_all_callers,
                counters_of_old_months_are_removed_and_do_not_come_back;
        }
    };
}

/// Calls a macro with those of stores that merge months and delete rows in steps, which ClickHouse
/// does not.
macro_rules! sql_cases {
    ($run:ident) => {
        $run! {
            counters: a_merged_month_equals_its_days_until_a_visit_comes_late;
            deletion: rows_of_a_deletion_go_in_steps_and_later_visits_stay;
            erasure: rows_of_an_erasure_go_in_steps;
        }
    };
}

pub(crate) mod batches;
pub(crate) mod counters;
pub(crate) mod deletion;
pub(crate) mod erasure;
mod fixture;
pub(crate) mod folding;
pub(crate) mod pages;
pub(crate) mod producers;
pub(crate) mod upkeep;

pub(crate) use common_cases;
pub(crate) use fixture::{
    Visit, all_rows, always, batch, noon, register, store_all, store_batch, tally, today, totals,
};
pub(crate) use sql_cases;
