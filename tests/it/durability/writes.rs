//! Every kind of write that a store acknowledges: how to make it, and how to find it in the
//! database.

use std::{sync::Arc, time::Duration};

use codes::{CodeKey, KeyspaceIndex, LinkId, Mint};
use harness::Postgres;
use jiff::Timestamp;
use links::{
    Authority, DomainEdit, DomainId, Draft, Edit, ImportCode, ImportItem, LongUrl, NewLink, PickedCode,
    Precondition, Relocation, SessionHash, Slug, Tag,
    api_key::{ApiKey, ApiKeyId, KeyLimits, NewKey, OPERATOR, SecretNumber},
    reservation::ReservationId,
    scope::Scopes,
    targets::TargetRule,
};
use numbers::Span;
use store::{
    BatchLink, BlockEntry, Catalog, CustomSlugLink, FullLink, ImportBatch, InsertError, Keys, Links,
    Register, Settings, StoreError, postgres::PostgresStore,
};

/// The outcome of a write as reported to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The write is stored.
    Done,
    /// The write is certainly not stored.
    Failed,
    /// The write may be stored: the outcome is unknown.
    InDoubt,
}

/// A kind of write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Single,
    Batch,
    Copy,
    Full,
    Named,
    Slugs,
    Together,
    Import,
    Edit,
    Move,
    Delete,
    Restore,
    RenameTag,
    DeleteTags,
    SetTarget,
    RemoveTarget,
    AddDomain,
    EditDomain,
    RemoveDomain,
    AddKey,
    RotateKey,
    RevokeKey,
    OpenSession,
    EndSession,
    AddReservation,
    CloseReservation,
    RegisterBlock,
    ReleaseBlock,
    TakeOverBlock,
    UseLinks,
}

/// All kinds of writes, in groups that the store's connections can carry at once.
pub(super) const GROUPS: [&[Kind]; 6] = [
    &[Kind::Single, Kind::Batch, Kind::Copy, Kind::Full, Kind::Named, Kind::Import],
    &[Kind::Copy, Kind::Edit, Kind::Delete, Kind::Restore, Kind::RenameTag, Kind::SetTarget],
    &[Kind::Copy, Kind::AddDomain, Kind::AddKey, Kind::RevokeKey, Kind::AddReservation, Kind::UseLinks],
    &[
        Kind::Copy,
        Kind::EditDomain,
        Kind::CloseReservation,
        Kind::RegisterBlock,
        Kind::ReleaseBlock,
        Kind::TakeOverBlock,
    ],
    &[Kind::Copy, Kind::DeleteTags, Kind::RemoveTarget, Kind::RemoveDomain, Kind::RotateKey, Kind::Slugs],
    &[Kind::Copy, Kind::OpenSession, Kind::EndSession, Kind::Move, Kind::Together],
];

/// A write and its prerequisites.
pub(super) struct Write {
    pub(super) kind: Kind,
    /// A number unique to this write. Its names and ids derive from it.
    number: u64,
    store: Arc<PostgresStore>,
    key: ApiKey,
    /// The id of the API key that opens a session.
    key_id: ApiKeyId,
    reservation: ReservationId,
    domain: DomainId,
    mint: Arc<Mint>,
}

const KEYSPACE: i64 = 1;
const BY: ApiKeyId = ApiKeyId(1);

impl Write {
    /// Prepares a write: stores whatever it will change.
    pub(super) async fn prepare(kind: Kind, number: u64, store: &Arc<PostgresStore>) -> Self {
        let code_key = CodeKey::draw().unwrap();
        let mint = Arc::new(Mint::new(&code_key, store.adopt_keyspaces(&[]).await.unwrap()));
        let mut write = Self {
            kind,
            number,
            store: Arc::clone(store),
            key: ApiKey::draw().unwrap(),
            key_id: BY,
            reservation: ReservationId::draw().unwrap(),
            domain: DomainId::DEFAULT,
            mint,
        };
        match kind {
            Kind::Edit | Kind::Delete | Kind::UseLinks => write.insert(1).await.unwrap(),
            Kind::Restore => {
                write.insert(1).await.unwrap();
                let _ = store.delete(write.id(0), &Precondition::default(), BY).await.unwrap();
            }
            Kind::RenameTag | Kind::DeleteTags => write.insert_tagged("old").await.unwrap(),
            Kind::RemoveTarget => store.set_target(&write.target(), BY).await.unwrap(),
            Kind::EditDomain | Kind::RemoveDomain | Kind::Move => {
                if kind == Kind::Move {
                    write.insert(1).await.unwrap();
                }
                let authority = Authority::parse(&format!("d{number}.example")).unwrap();
                write.domain = store.add_domain(&authority, u32::MAX, ApiKeyId(1)).await.unwrap().unwrap();
            }
            // Opens the connection, so that the fault comes in the commit.
            Kind::Slugs => drop(store.insert_slugs(&[]).await.unwrap()),
            Kind::RevokeKey | Kind::RotateKey => {
                store.add_api_key(&write.new_key(), OPERATOR).await.unwrap().unwrap();
            }
            Kind::OpenSession | Kind::EndSession => {
                write.key_id = store.add_api_key(&write.new_key(), OPERATOR).await.unwrap().unwrap();
                if kind == Kind::EndSession {
                    write.open_session().await.unwrap();
                }
            }
            Kind::CloseReservation => {
                store.add_reservation(&write.reservation, keyspace(), BY).await.unwrap();
            }
            Kind::ReleaseBlock | Kind::TakeOverBlock => {
                store.register_block(&write.block(1)).await.unwrap();
            }
            _ => {}
        }
        write
    }

    /// Makes the write and returns its reported outcome.
    pub(super) async fn run(&self) -> Told {
        match self.kind {
            Kind::Single => told(self.insert(1).await),
            Kind::Batch => told(self.insert(100).await),
            Kind::Copy => told(self.insert(1_000).await),
            Kind::Full => told(self.insert_tagged("full").await),
            Kind::Named => told(self.store.insert_with_slug(&self.named(), &[], None).await),
            Kind::Slugs => match self.store.insert_slugs(&self.with_slugs()).await {
                Ok(stored) if stored.contains(&None) => Told::Failed,
                inserted => told(inserted),
            },
            Kind::Together => match self.store.insert_together(None, &Arc::new(self.together())).await {
                Ok(stored) if stored.contains(&None) => Told::Failed,
                inserted => told(inserted),
            },
            _ => match self.change().await {
                Ok(()) => Told::Done,
                Err(_) => Told::InDoubt,
            },
        }
    }

    /// Makes a write that may be repeated. So its error leaves the outcome unknown.
    async fn change(&self) -> Result<(), StoreError> {
        let (store, number) = (&self.store, self.number);
        match self.kind {
            Kind::Import => store.import(&self.import()).await.map(drop),
            Kind::Edit => {
                let edit = Edit { title: Some(Some("edited".to_owned())), ..Edit::default() };
                store.edit(self.id(0), &edit, BY).await.map(drop)
            }
            Kind::Move => {
                let name = Slug::parse(&format!("moved{number}")).unwrap();
                let (domain, former, number) = (self.domain, name.clone(), Some(self.id(0)));
                let relocation = Relocation { domain, name, former, number, keyspaces: 0 };
                let edit = Edit { relocation: Some(relocation), ..Edit::default() };
                store.edit(self.id(0), &edit, BY).await.map(drop)
            }
            Kind::Delete => store.delete(self.id(0), &Precondition::default(), BY).await.map(drop),
            Kind::Restore => store.restore(self.id(0), &Precondition::default(), 0, BY).await.map(drop),
            Kind::RenameTag => store.rename_tag(&self.tag("old"), &self.tag("new"), BY).await.map(drop),
            Kind::DeleteTags => store.delete_tags(&[self.tag("old")], BY).await,
            Kind::SetTarget => store.set_target(&self.target(), BY).await,
            Kind::RemoveTarget => store.remove_target(self.target().pattern(), BY).await.map(drop),
            Kind::AddDomain => {
                let authority = Authority::parse(&format!("d{number}.example")).unwrap();
                store.add_domain(&authority, u32::MAX, ApiKeyId(1)).await.map(drop)
            }
            Kind::EditDomain => {
                let edit = DomainEdit { disabled: Some(true), ..DomainEdit::default() };
                store.edit_domain(self.domain, &edit, BY).await.map(drop)
            }
            Kind::RemoveDomain => store.remove_domain(self.domain, BY).await.map(drop),
            Kind::AddKey => store.add_api_key(&self.new_key(), OPERATOR).await.map(drop),
            Kind::RotateKey => {
                let (name, hash) = (format!("k{number}"), ApiKey::draw().unwrap().hash());
                store.rotate_api_key(&name, &hash, Duration::from_secs(1), OPERATOR).await.map(drop)
            }
            Kind::RevokeKey => store.revoke_api_key(&format!("k{number}"), OPERATOR).await.map(drop),
            Kind::OpenSession => self.open_session().await,
            Kind::EndSession => store.end_session(&self.session()).await,
            Kind::AddReservation => store.add_reservation(&self.reservation, keyspace(), BY).await.map(drop),
            Kind::CloseReservation => store.close_reservation(&self.reservation).await,
            Kind::RegisterBlock => store.register_block(&self.block(1)).await.map(drop),
            Kind::ReleaseBlock => store.release_block(&self.block(1), &[]).await,
            Kind::TakeOverBlock => store.take_over_block(&self.block(2), 1).await.map(drop),
            Kind::UseLinks => store.take_visits(&[(self.id(0), 1)]).await.map(drop),
            Kind::Single
            | Kind::Batch
            | Kind::Copy
            | Kind::Full
            | Kind::Named
            | Kind::Slugs
            | Kind::Together => panic!("{:?} is an insert", self.kind),
        }
    }

    /// Returns the number of database rows that prove the write, and the number of them that a
    /// complete write has.
    pub(super) async fn rows(&self, postgres: &Postgres) -> (i64, i64) {
        let (n, first, end) = (self.number, self.id(0).get(), self.id(10_000).get());
        let links = format!("SELECT count(*) FROM link WHERE id >= {first} AND id < {end}");
        let slugs = |prefix: &str| {
            format!(
                "SELECT count(*) FROM slug JOIN link ON link.id = link_id
                 WHERE slug LIKE '{prefix}/{n}/%'"
            )
        };
        let (sql, whole) = match self.kind {
            Kind::Single => (links, 1),
            Kind::Batch => (links, 100),
            Kind::Copy => (links, 1_000),
            Kind::Full => (
                format!(
                    "SELECT count(*) FROM link JOIN link_tag ON link_id = link.id WHERE link.id = {first}"
                ),
                1,
            ),
            Kind::Slugs => (
                format!(
                    "SELECT count(*) FROM link JOIN picked USING (id) WHERE id >= {first} AND id < {end}"
                ),
                20,
            ),
            Kind::Named => (format!("SELECT count(*) FROM slug WHERE slug = 'named-slug-{n}'"), 1),
            Kind::Together => (slugs("together"), 20),
            Kind::Import => (slugs("in"), 20),
            Kind::Edit => (format!("{links} AND title = 'edited'"), 1),
            Kind::Move => {
                let domain = self.domain.get();
                (
                    format!(
                        "SELECT count(*) FROM link JOIN slug ON link_id = id WHERE id = {first} AND
                         slug = 'moved{n}' AND domain_id = {domain} AND details->>'domain' IS NOT NULL"
                    ),
                    1,
                )
            }
            Kind::Delete => (format!("{links} AND details->>'deletedAt' IS NOT NULL"), 1),
            Kind::Restore => (format!("{links} AND details->>'deletedAt' IS NULL"), 1),
            Kind::AddReservation => {
                (format!("SELECT count(*) FROM reservation WHERE id = '{}'", self.reservation), 1)
            }
            Kind::CloseReservation => (
                format!(
                    "SELECT count(*) FROM reservation WHERE id = '{}' AND closed_at IS NOT NULL",
                    self.reservation
                ),
                1,
            ),
            Kind::RegisterBlock => {
                (format!("SELECT count(*) FROM block WHERE ids @> {first}::bigint AND generation = 1"), 1)
            }
            // The absence of the row proves the write.
            Kind::ReleaseBlock => {
                (format!("SELECT 1 - count(*) FROM block WHERE ids @> {first}::bigint AND generation = 1"), 1)
            }
            Kind::TakeOverBlock => {
                (format!("SELECT count(*) FROM block WHERE ids @> {first}::bigint AND generation = 2"), 1)
            }
            Kind::UseLinks => (format!("SELECT count(*) FROM link_use WHERE link_id = {first}"), 1),
            _ => (self.setting(), 1),
        };
        let client = postgres.client().await.unwrap();
        if !postgres.nodes().is_empty() {
            // Citus does so by itself once a minute.
            client.execute("SELECT recover_prepared_transactions()", &[]).await.unwrap();
        }
        (client.query_one(&sql, &[]).await.unwrap().get(0), whole)
    }

    /// Returns a statement that yields 1 if the database has a change that concerns no link. For a
    /// removal it yields 1 if the row is absent.
    fn setting(&self) -> String {
        let (n, domain, key) = (self.number, self.domain.get(), self.key_id.0);
        match self.kind {
            Kind::RenameTag => format!("SELECT count(*) FROM tag WHERE name = 'new-{n}'"),
            Kind::DeleteTags => format!("SELECT 1 - count(*) FROM tag WHERE name = 'old-{n}'"),
            Kind::SetTarget => format!("SELECT count(*) FROM target_rule WHERE pattern LIKE '%t{n}.example'"),
            Kind::RemoveTarget => {
                format!("SELECT 1 - count(*) FROM target_rule WHERE pattern LIKE '%t{n}.example'")
            }
            Kind::AddDomain => format!("SELECT count(*) FROM domain WHERE authority = 'd{n}.example'"),
            Kind::EditDomain => {
                format!("SELECT count(*) FROM domain WHERE id = {domain} AND settings->>'disabled' = 'true'")
            }
            Kind::RemoveDomain => format!("SELECT 1 - count(*) FROM domain WHERE id = {domain}"),
            Kind::AddKey => format!("SELECT count(*) FROM api_key WHERE name = 'k{n}'"),
            Kind::RotateKey => {
                format!("SELECT count(*) FROM api_key WHERE name = 'k{n}' AND old_hash IS NOT NULL")
            }
            Kind::RevokeKey => {
                format!("SELECT count(*) FROM api_key WHERE name = 'k{n}' AND revoked_at IS NOT NULL")
            }
            Kind::OpenSession => format!("SELECT count(*) FROM session WHERE api_key_id = {key}"),
            Kind::EndSession => format!("SELECT 1 - count(*) FROM session WHERE api_key_id = {key}"),
            kind => panic!("{kind:?} is no setting"),
        }
    }

    fn target(&self) -> TargetRule {
        TargetRule::parse(&format!("t{}.example", self.number), false).unwrap()
    }

    fn id(&self, offset: u64) -> LinkId {
        LinkId::new(keyspace(), self.number * 10_000 + offset)
    }

    fn draft(&self, offset: u64) -> Draft {
        let url = format!("https://example.com/{}/{offset}", self.number);
        Draft {
            long_url: LongUrl::from_stored(url),
            title: None,
            crawlable: false,
            forward_query: true,
            created_by: BY,
            details: None,
        }
    }

    async fn insert(&self, count: usize) -> Result<(), InsertError> {
        let history = self.store.epoch().await.map_err(InsertError::Failed)?;
        let links = (0..10_000).map(|offset| NewLink { id: self.id(offset), draft: self.draft(offset) });
        // Of one bucket, because each commits by itself.
        let bucket = self.store.bucket(self.id(0));
        let links = links.filter(|link| self.store.bucket(link.id) == bucket).take(count);
        self.store.insert(&history, &links.collect::<Vec<_>>()).await.map(drop)
    }

    async fn insert_tagged(&self, tag: &str) -> Result<(), InsertError> {
        let history = self.store.epoch().await.map_err(InsertError::Failed)?;
        let new = NewLink { id: self.id(0), draft: self.draft(0) };
        let link = FullLink { new, code: format!("code{}", self.number) };
        self.store.insert_full(&history, &link, &[self.tag(tag)], None).await.map(drop)
    }

    fn tag(&self, name: &str) -> Tag {
        Tag::parse(&format!("{name}-{}", self.number)).unwrap()
    }

    fn named(&self) -> CustomSlugLink {
        let slug = Slug::parse(&format!("named-slug-{}", self.number)).unwrap();
        let mut draft = self.draft(0);
        draft.details.get_or_insert_default().slug = Some(slug.clone());
        CustomSlugLink { slug, mintable: None, keyspaces: self.mint.keyspaces(), draft }
    }

    fn with_slugs(&self) -> Vec<NewLink> {
        let link = |offset| {
            let mut draft = self.draft(offset);
            let slug = Slug::parse(&format!("slug-{}-{offset}", self.number)).unwrap();
            draft.details.get_or_insert_default().slug = Some(slug);
            NewLink { id: self.id(offset), draft }
        };
        (0..20).map(link).collect()
    }

    fn together(&self) -> Vec<BatchLink> {
        let link = |offset| {
            let slug = Slug::parse(&format!("together/{}/{offset}", self.number)).unwrap();
            let mut draft = self.draft(offset);
            draft.details.get_or_insert_default().slug = Some(slug.clone());
            let link = CustomSlugLink { slug, mintable: None, keyspaces: self.mint.keyspaces(), draft };
            BatchLink::Custom(link, vec![self.tag("together")])
        };
        (0..20).map(link).collect()
    }

    fn import(&self) -> ImportBatch {
        let item = |offset: u64| ImportItem {
            code: ImportCode::Kept(PickedCode {
                slug: Slug::parse(&format!("in/{}/{offset}", self.number)).unwrap(),
                mintable: None,
            }),
            draft: self.draft(offset),
            tags: Vec::new(),
            created_at: Some(Timestamp::UNIX_EPOCH),
            minted: false,
            uses: 0,
            visits: 0,
        };
        let name = format!("import {}", self.number);
        ImportBatch { name, end: 20, items: (0..20).map(item).collect(), keyspaces: self.mint.keyspaces() }
    }

    fn new_key(&self) -> NewKey {
        NewKey {
            name: format!("k{}", self.number),
            hash: self.key.hash(),
            scopes: Scopes::admin(),
            expires_at: None,
            limits: KeyLimits::default(),
        }
    }

    fn session(&self) -> SessionHash {
        SessionHash::of(&self.number.to_be_bytes())
    }

    async fn open_session(&self) -> Result<(), StoreError> {
        let by = (self.key_id, SecretNumber(1));
        self.store.open_session(&self.session(), by, Duration::from_secs(3_600)).await
    }

    fn block(&self, generation: u64) -> BlockEntry {
        BlockEntry {
            keyspace: keyspace(),
            span: Span::new(self.number * 10_000, 1_000).unwrap(),
            generation,
            holder: "resolver".to_owned(),
            incarnation: 1,
            instance: format!("{}/{generation}", self.number),
        }
    }
}

fn keyspace() -> KeyspaceIndex {
    KeyspaceIndex::new(KEYSPACE).unwrap()
}

fn told<T>(inserted: Result<T, InsertError>) -> Told {
    match inserted {
        Ok(_) => Told::Done,
        Err(InsertError::Failed(_)) => Told::Failed,
        Err(InsertError::Unknown(_)) => Told::InDoubt,
    }
}

/// Longer than the deadline of any store call.
pub(super) const CALL_WITHIN: Duration = Duration::from_secs(90);
