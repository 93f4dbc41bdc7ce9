//! The conformance suite of the stores: Postgres and SQLite both guarantee what the resolver relies
//! on.

mod blocks;
mod bulk;
mod domains;
mod history;
mod import_batches;
mod imports;
mod keys;
mod keyspaces;
mod links;
mod lists;
mod long_urls;
mod meant;
mod renames;
mod schedule;
mod sessions;
mod slugs;
mod sweep;
mod takedowns;
mod together;
mod webhooks;
mod wishes;

use std::sync::Arc;

use ::links::{
    DomainId, Draft, ImportCode, ImportItem, LongUrl, NewLink, PickedCode, Slug, api_key::ApiKeyId,
};
use codes::{KeyspaceIndex, LinkId};
use harness::{Postgres, Scratch};
use jiff::{SignedDuration, Timestamp};
use numbers::Mark;
use store::{
    Advanced, Comparison, CustomSlugLink, FullLink, ImportBatch, Imported, InsertError, Store, StoreError,
    postgres::PostgresStore, sqlite::SqliteStore,
};

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_what_the_resolver_relies_on() {
    let scratch = Scratch::new().unwrap();
    let store = SqliteStore::open(&scratch.path().join("links.db")).unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    suite(Arc::clone(&store)).await;
    histories(&*store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_what_the_resolver_relies_on() {
    let postgres = Postgres::start().await.unwrap();
    let store: Arc<dyn Store> = Arc::new(PostgresStore::new(&postgres.url(), None).await.unwrap());
    suite(Arc::clone(&store)).await;
    blocks::a_take_over_waits_for_a_predecessors_late_commit(&postgres).await;
    links::nothing_is_stored_in_another_history(&postgres).await;
    slugs::behind_a_lock_a_batch_stores_nothing_and_says_so(&postgres).await;
    lists::searches_use_an_index_that_can_be_built_anew(&*store, &postgres).await;
    lists::a_few_links_of_a_key_or_domain_have_an_index(&*store, &postgres).await;
    histories(&*store).await;
}

async fn suite(store: Arc<dyn Store>) {
    a_store_without_a_schema_says_so(&*store).await;
    store.migrate().await.unwrap();
    store.migrate().await.unwrap();
    store.check().await.unwrap();
    the_first_fingerprint_is_the_one_that_counts(&*store).await;
    the_first_ledger_is_the_one_that_counts_until_it_is_forgotten(&*store).await;
    a_store_is_compared_before_it_is_used(&*store).await;
    keyspaces::keyspaces_keep_their_index_and_cannot_be_redefined(&*store).await;
    links::a_large_batch_is_stored_as_it_was_given(&*store).await;
    links::a_taken_id_does_not_fail_its_neighbours(&*store).await;
    links::a_page_is_outlined_and_its_links_are_read_in_that_order(&*store).await;
    links::a_tag_is_known_by_its_whole_name_where_a_link_with_it_is_visible(&*store).await;
    links::two_inserts_of_one_id_have_one_winner(&store).await;
    wishes::the_same_wish_is_given_the_same_link_until_nobody_has_asked_for_so_long(&*store).await;
    links::uses_are_taken_as_far_as_the_limit_goes(&*store).await;
    blocks::an_overlapping_block_is_refused(&*store).await;
    blocks::a_released_rest_can_be_registered_by_another(&*store).await;
    blocks::a_leaked_block_is_taken_over_once_and_its_gaps_are_found(&*store).await;
    blocks::the_registers_end_is_that_of_the_keyspace(&*store).await;
    a_history_has_one_name(&*store).await;
    blocks::a_reservations_numbers_are_the_registers_rows_of_its_holder(&*store).await;
    blocks::an_open_reservation_is_never_taken_over(&*store).await;
    slugs::slugs_are_stored_where_nothing_is_in_the_way(&*store).await;
    keys::keys_are_found_until_they_are_revoked_or_expire(&*store).await;
    sessions::a_session_grants_what_its_key_does_until_it_ends_or_expires(&*store).await;
    sessions::a_session_ends_with_its_key_and_with_its_secret(&*store).await;
    sessions::a_key_has_so_many_sessions_and_the_ones_that_expire_first_end(&*store).await;
    domains::domains_and_targets_are_told_with_a_version_that_grows(&*store).await;
    domains::each_domain_has_links_of_its_own(&*store).await;
    domains::deleted_minted_links_keep_no_domain(&*store).await;
    domains::a_domain_is_removed_only_when_nothing_depends_on_it(&*store).await;
    meant::a_change_leaves_the_next_link_of_the_same_code_alone(&*store).await;
    renames::a_link_gets_another_name_and_its_code_stays_with_its_number(&*store).await;
    wishes::a_call_that_is_sent_again_is_told_from_another_with_the_same_key(&*store).await;
    keyspaces::adoptions_at_the_same_time_agree_on_the_index(&store).await;
    keyspaces::a_keyspace_with_hand_picked_codes_is_refused(&*store).await;
    sweep::what_came_or_was_visited_lately_stays_and_one_holder_removes_the_rest(&*store).await;
    takedowns::a_block_holds_the_slug_of_a_deleted_link(&*store).await;
    takedowns::an_imported_takedown_holds_its_slug(&*store).await;
    schedule::a_due_edit_is_made_once_in_the_order_of_its_link(&*store).await;
    schedule::scheduled_edits_of_a_link_are_bounded_and_end_with_its_deletion(&*store).await;
    imports::a_batch_is_stored_once_each_item_has_a_free_candidate(&*store).await;
    imports::imported_visits_are_part_of_a_link_s_total_until_they_are_deleted(&*store).await;
    imports::an_imported_link_has_its_external_id_unless_another_live_one_has(&*store).await;
    long_urls::links_are_found_by_where_they_lead(&*store).await;
    lists::links_are_listed_by_visits_and_those_without_by_age(&*store).await;
    lists::links_are_found_by_what_they_contain(&*store).await;
    webhooks::webhooks_are_kept_with_a_version_of_the_settings(&*store).await;
    webhooks::a_change_of_a_link_records_an_event_while_a_webhook_is_called_for_it(&*store).await;
    webhooks::a_delivery_is_attempted_by_one_process_at_a_time(&*store).await;
    webhooks::further_deliveries_are_dropped_and_old_ones_removed(&*store).await;
    sweep::old_audit_entries_are_removed_by_one_holder_at_a_time(&*store).await;
    together::links_are_stored_together_where_nothing_is_in_the_way(&*store).await;
    together::a_minted_link_is_not_taken_for_the_slug_of_its_number(&*store).await;
    bulk::links_are_changed_together_and_each_as_if_alone(&*store).await;
    bulk::many_links_are_deleted_and_their_slugs_are_free(&*store).await;
    import_batches::a_batch_gives_its_items_the_outcomes_that_they_have_alone(&*store).await;
}

/// Runs the cases that leave behind a history and a block register that no other case expects.
async fn histories(store: &dyn Store) {
    history::a_store_below_a_known_mark_begins_a_history(store).await;
    history::an_operator_leaves_numbers_out(store).await;
    history::ids_of_lost_links_and_domains_are_not_given_again(store).await;
}

fn keyspace(index: i64) -> KeyspaceIndex {
    KeyspaceIndex::new(index).unwrap()
}

fn new_link(number: u64, url: &str) -> NewLink {
    let draft = Draft {
        long_url: LongUrl::from_stored(url),
        title: number.is_multiple_of(2).then(|| "ein Titel: ä".to_owned()),
        crawlable: number.is_multiple_of(3),
        forward_query: number % 2 == 1,
        created_by: ApiKeyId(7),
        details: None,
    };
    NewLink { id: LinkId::new(keyspace(1), number), draft }
}

fn full_link(number: u64, url: &str) -> FullLink {
    FullLink { new: new_link(number, url), code: format!("code{number}") }
}

/// Returns a link whose slug is the code of no number.
async fn custom_link(store: &dyn Store, domain: DomainId, slug: &str, url: &str) -> CustomSlugLink {
    let slug = Slug::parse(slug).unwrap();
    let mut draft = new_link(1, url).draft;
    let details = draft.details.get_or_insert_default();
    (details.slug, details.domain) = (Some(slug.clone()), Some(domain).filter(|id| !id.is_default()));
    let keyspaces = store.adopt_keyspaces(&[]).await.unwrap().len();
    CustomSlugLink { slug, mintable: None, keyspaces, draft }
}

fn import_item(code: ImportCode, url: &str) -> ImportItem {
    let draft = new_link(1, url).draft;
    ImportItem { code, draft, tags: Vec::new(), created_at: None, minted: false, uses: 0, visits: 0 }
}

/// Returns an item whose link was created long ago, before what index tasks have passed, under a
/// slug that is the code of no number.
fn old_item(slug: &str, url: &str) -> ImportItem {
    let code = ImportCode::Kept(PickedCode { slug: Slug::parse(slug).unwrap(), mintable: None });
    let created_at = Some(Timestamp::from_second(1_000_000_000).unwrap());
    ImportItem { created_at, ..import_item(code, url) }
}

async fn import_batch(store: &dyn Store, name: &str, items: Vec<ImportItem>) -> ImportBatch {
    let keyspaces = store.adopt_keyspaces(&[]).await.unwrap().len();
    ImportBatch { name: name.to_owned(), end: u64::try_from(items.len()).unwrap(), items, keyspaces }
}

/// Imports one item, in a batch that is named after its code.
async fn import(store: &dyn Store, item: ImportItem) -> LinkId {
    let batch = import_batch(store, &format!("{:?}", item.code), vec![item]).await;
    let done = store.import(&batch).await.unwrap();
    let [Imported::Stored(id)] = done[..] else { panic!("{done:?}") };
    id
}

async fn a_store_without_a_schema_says_so(store: &dyn Store) {
    let refused = store.check().await;
    assert!(matches!(refused, Err(StoreError::SchemaBehind { found: 0, needed: 1.. })), "{refused:?}");
}

async fn the_first_fingerprint_is_the_one_that_counts(store: &dyn Store) {
    assert_eq!(store.fingerprint().await.unwrap(), None);
    assert_eq!(store.adopt_fingerprint("aa").await.unwrap(), "aa");
    assert_eq!(store.adopt_fingerprint("bb").await.unwrap(), "aa");
    assert_eq!(store.fingerprint().await.unwrap().as_deref(), Some("aa"));
}

async fn the_first_ledger_is_the_one_that_counts_until_it_is_forgotten(store: &dyn Store) {
    assert_eq!(store.adopt_ledger("resolver-0.aa").await.unwrap(), "resolver-0.aa");
    assert_eq!(store.adopt_ledger("resolver-1.bb").await.unwrap(), "resolver-0.aa");
    store.forget_ledger().await.unwrap();
    assert_eq!(store.adopt_ledger("resolver-1.bb").await.unwrap(), "resolver-1.bb");
}

/// Compares the store's mark, as a resolver does with its first beat. Before that comparison
/// nothing is stored under a number.
async fn a_store_is_compared_before_it_is_used(store: &dyn Store) {
    store.poll_settings(None).await.unwrap();
    let started = store.server_start().map(|start| start.borrow().expect("the poll has read it"));
    let history = store.epoch().await;
    if started.is_some() && matches!(history, Err(StoreError::NotCompared)) {
        // With nodes, no number is even asked for.
    } else if started.is_some() {
        let history = history.unwrap();
        let refused = store.insert(&history, &[new_link(999, "https://x.y/")]).await;
        assert!(matches!(refused, Err(InsertError::Failed(StoreError::NotCompared))), "{refused:?}");
        let full = store.insert_full(&history, &full_link(999, "https://x.y/"), &[], None).await;
        assert!(matches!(full, Err(InsertError::Failed(StoreError::NotCompared))), "{full:?}");
        let many: Vec<_> = (0..600).map(|number| new_link(100_000 + number, "https://x.y/")).collect();
        let copied = store.insert(&history, &many).await;
        assert!(matches!(copied, Err(InsertError::Failed(StoreError::NotCompared))), "{copied:?}");
        let earlier = started.map(|start| start - SignedDuration::from_secs(1));
        let how = Comparison { raises: true, since: earlier };
        assert_eq!(store.advance(Mark(0), how).await.unwrap(), Advanced::Restarted);
        let refused = store.insert(&history, &[new_link(999, "https://x.y/")]).await;
        assert!(matches!(refused, Err(InsertError::Failed(StoreError::NotCompared))), "{refused:?}");
    }
    store.advance(Mark(0), Comparison { raises: false, since: started }).await.unwrap();
}

async fn a_history_has_one_name(store: &dyn Store) {
    assert_eq!(store.epoch().await.unwrap(), store.epoch().await.unwrap());
}
