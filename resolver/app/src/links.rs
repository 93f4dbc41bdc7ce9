//! Links, and what belongs to them: tags, domains, target rules, reservations and imports. Each use
//! case has a file of its own.

mod block_link;
pub mod change_many;
pub mod create_link;
pub mod create_many;
mod delete_link;
pub(crate) mod domains;
pub mod edit_link;
pub mod explain_link;
pub mod fetch_titles;
mod find_existing;
pub mod find_link;
pub mod icons;
pub mod import_links;
pub mod link_fields;
pub mod link_indexer;
pub mod list_links;
mod list_orders;
mod move_link;
pub(crate) mod preview_fields;
pub mod qr_pack;
pub mod redirect_rules;
mod rename_link;
pub mod reservation;
pub mod reserve_codes;
pub mod scheduled_edits;
mod tags;
mod target_rules;
mod undo_edit;
pub mod unvisited_cleanup;
mod upsert;
pub mod values;
