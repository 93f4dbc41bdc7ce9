//! Arguments of the commands.

mod audit;
mod client;
mod database;
mod domain;
mod keys;
mod link;
mod target;
mod transfer;
mod visits;
mod webhook;

pub use audit::AuditArgs;
pub use client::{ServerArgs, TableArgs};
pub use database::{BackupArgs, Database, DatabaseArgs, MigrateArgs, VisitsStoreArgs};
pub use domain::{
    DomainCommand, DomainEditArgs, DomainListArgs, DomainProtocol, DomainRedirectsArgs, DomainRemoveArgs,
};
pub use keys::ApiKeyCommand;
pub use link::{
    CodeStrategy, LinkBlockArgs, LinkClears, LinkCommand, LinkCreateArgs, LinkDeleteArgs, LinkEditArgs,
    LinkGetArgs, LinkListArgs, LinkName, LinkSetters,
};
pub use target::{TargetCommand, TargetListArgs, TargetRuleArgs};
pub use transfer::{ExportArgs, ExportFormat, ImportArgs, Unprotected};
pub use visits::{
    Interval, OrphanType, VisitsCommand, VisitsDeleteArgs, VisitsExportArgs, VisitsFormat, VisitsListArgs,
    VisitsOf, VisitsStatsArgs,
};
pub use webhook::{
    WebhookArgs, WebhookCommand, WebhookCreateArgs, WebhookDeliveriesArgs, WebhookListArgs,
    WebhookRedeliverArgs,
};
