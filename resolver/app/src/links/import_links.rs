//! Imports links of another system under the codes that they have there.
//!
//! 1. The operator imports beside the server. The authorisation is the access to the database:
//!    there is no API key whose scopes and limits could be checked.
//! 2. An input has a name, and its position is stored in the same transaction as the links. So an
//!    import that was killed continues where it stopped when it is started again, and a repeated
//!    import stores nothing twice.
//! 3. A link that cannot be stored is refused with its position in the input and the reason, and
//!    the import continues.
//! 4. A code that leads to the same URL already counts as present. A code that leads elsewhere is
//!    refused and left unchanged.
//! 5. Resolvers may serve meanwhile: they learn of the links as of those of other resolvers.
//! 6. The target rules apply, because the link redirects at once. A link in the trash is judged
//!    when it is restored.
//! 7. A link named `*` that takes paths makes its domain catch all paths.
//! 8. A link whose password or other protection is not part of the input is published only if the
//!    operator says so ([`Unprotected`]).

mod adoption;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    sync::Arc,
    time::Duration,
};

use codes::Mint;
use links::{
    Authority, DomainEdit, DomainId, ExtraPath, Schemes, api_key::OPERATOR, is_catch_all, targets::Targets,
};
use store::{ImportBatch, ImportPosition, Imported, Store, StoreError};
use tokio::{sync::mpsc, time::sleep};
use transfer::{LeftOut, Row, RowError};

pub use self::adoption::Unprotected;
use self::adoption::{Adoption, ImportCodes};
use lookup::domain_cache::SHOWN;

/// The maximum number of links in one transaction, and about how many bytes.
const BATCH: usize = 1_000;
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// The maximum number of tries for a batch whose outcome is unknown.
const TRIES: usize = 5;
/// Pause before the next try.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Some consecutive items of an input: links, and errors of reading one.
pub type Piece = Vec<Result<Row, RowError>>;

/// Records a refused item, with its position and the reason in words.
pub type Refuse<'a> = dyn FnMut(String) -> io::Result<()> + Send + 'a;

/// How many items of an input have which outcome. Refused ones are counted by the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Links that this run has stored.
    pub stored: u64,
    /// Links whose code leads to their URL already.
    pub already_there: u64,
    /// Items that earlier runs have stored or refused.
    pub before: u64,
    /// Those of them that earlier runs have refused.
    pub refused_before: u64,
    /// Links that are stored disabled because their protection is not part of the input.
    pub disabled: u64,
    /// Links that have lost a property, or may have, because it is not part of the input: their
    /// number by the name of the property.
    pub left_out: BTreeMap<&'static str, u64>,
}

/// Error of an import, which ends it.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The rest of the input cannot be read. The links before it are stored.
    #[error(transparent)]
    Input(RowError),
    /// A refused item could not be recorded.
    #[error("record a refused item")]
    Record(#[from] io::Error),
    /// The database refused a call.
    #[error("database")]
    Store(#[from] StoreError),
}

/// An import under way.
pub struct LinkImport {
    store: Arc<dyn Store>,
    /// The position that an earlier run has reached; 0 for a new import.
    pub position: u64,
    place: u64,
    batch: ImportBatch,
    bytes: usize,
    /// For each item of the batch: its position, its code, and whether it is stored disabled for
    /// lack of protection.
    places: Vec<(u64, String, bool)>,
    adoption: Adoption,
    domains: HashMap<String, DomainId>,
    /// Domains that are disabled here as well.
    disabled: HashSet<DomainId>,
    /// Domains whose link for all paths is in the batch.
    catching: HashSet<DomainId>,
    counts: ImportCounts,
}

impl LinkImport {
    /// Begins an import of the input with this name, or continues an earlier one. `mint` is that of
    /// the resolvers of the database. `default_domains` of the other system become the default
    /// domain here.
    pub async fn begin(
        store: Arc<dyn Store>,
        mint: Arc<Mint>,
        name: String,
        default_domains: &[String],
        unprotected: Unprotected,
        schemes: Schemes,
    ) -> Result<Self, StoreError> {
        let ImportPosition { place, refused } = store.import_position(&name).await?;
        let keys = store.list_api_keys().await?.into_iter().map(|key| (key.name, key.id)).collect();
        let shared = store.poll_settings(None).await?.settings.unwrap_or_default();
        let disabled = shared.domains.iter().filter(|domain| domain.settings.disabled);
        let defaults = default_domains.iter().map(|name| (name.to_lowercase(), DomainId::DEFAULT));
        Ok(Self {
            position: place,
            place: 0,
            disabled: disabled.map(|domain| domain.id).collect(),
            catching: HashSet::new(),
            store,
            batch: ImportBatch { name, end: 0, items: Vec::new(), keyspaces: mint.keyspaces() },
            bytes: 0,
            places: Vec::new(),
            adoption: Adoption {
                unprotected,
                keys,
                schemes,
                targets: Targets::new(&shared.targets),
                codes: ImportCodes(mint),
            },
            domains: defaults.collect(),
            counts: ImportCounts { refused_before: refused, ..ImportCounts::default() },
        })
    }

    /// Takes the items of the input as they come, and stores links whenever a batch is full. The
    /// last ones are left for [`store_taken`](Self::store_taken), once the caller knows that the
    /// input was read to its end.
    pub async fn take_all(
        &mut self,
        mut pieces: mpsc::Receiver<Piece>,
        refuse: &mut Refuse<'_>,
    ) -> Result<(), ImportError> {
        while let Some(piece) = pieces.recv().await {
            for row in piece {
                match row {
                    Ok(row) => self.take(row, refuse).await?,
                    Err(error) if error.is_final => {
                        self.store_taken(refuse).await?;
                        return Err(ImportError::Input(error));
                    }
                    Err(error) => self.pass_over(&error, refuse)?,
                }
                if self.batch.items.len() >= BATCH || self.bytes >= BATCH_BYTES {
                    self.store_taken(refuse).await?;
                }
            }
        }
        Ok(())
    }

    /// Refuses an item that cannot be read.
    fn pass_over(&mut self, error: &RowError, refuse: &mut Refuse<'_>) -> io::Result<()> {
        // An error between two items is not an item: it does not advance the position.
        self.place = error.place.unwrap_or(self.place);
        if error.place.is_none_or(|place| place > self.position) {
            refuse(error.to_string())
        } else {
            self.counts.before += 1;
            Ok(())
        }
    }

    async fn take(&mut self, mut row: Row, refuse: &mut Refuse<'_>) -> Result<(), ImportError> {
        self.place = row.place;
        if row.place <= self.position {
            self.counts.before += 1;
            return Ok(());
        }
        let (place, weight) = (row.place, row.weight());
        let code = row.code.clone().unwrap_or_default();
        let on = row.domain.clone();
        let domain = match &row.domain {
            Some(name) => match self.find_domain(name).await? {
                Some(domain) => domain,
                None => {
                    refuse(format!("item {place}: domain {name:?}: not a host name"))?;
                    return Ok(());
                }
            },
            None => DomainId::DEFAULT,
        };
        if self.disabled.contains(&domain) {
            row.left_out.retain(|left| *left != LeftOut::DisabledDomain);
        }
        let refuses = row.extra_path.as_deref().is_none_or(|what| what == ExtraPath::Refuse.as_str());
        let catches = is_catch_all(&code) && !refuses && row.deleted_at.is_none();
        for left in &row.left_out {
            *self.counts.left_out.entry(left.as_str()).or_default() += 1;
        }
        match self.adoption.adopt(row, domain) {
            Ok((item, is_disabled)) => {
                self.bytes += weight;
                self.catching.extend(catches.then_some(domain));
                self.batch.items.push(item);
                self.places.push((place, code, is_disabled));
            }
            Err(reason) if code.is_empty() || reason.starts_with("code ") => {
                refuse(format!("item {place}: {reason}"))?;
            }
            // The items of a running source have no places that its pages show.
            Err(reason) => {
                let name = on.map_or_else(|| code.clone(), |domain| format!("{domain}/{code}"));
                refuse(format!("item {place}: {reason} (link {name:?})"))?;
            }
        }
        Ok(())
    }

    /// Returns the domain of this name, and adds it if it does not exist. Returns `None` for an
    /// invalid name.
    async fn find_domain(&mut self, name: &str) -> Result<Option<DomainId>, StoreError> {
        let name = name.to_lowercase();
        if let Some(id) = self.domains.get(&name) {
            return Ok(Some(*id));
        }
        let Ok(authority) = Authority::parse(&name) else { return Ok(None) };
        // `--limit domains` limits API keys, not the operator's own command.
        let Some(id) = self.store.add_domain(&authority, u32::MAX, OPERATOR).await? else {
            return Ok(None);
        };
        self.domains.insert(name, id);
        Ok(Some(id))
    }

    /// Stores the links that were taken since the last batch, and the position of the last item.
    pub async fn store_taken(&mut self, refuse: &mut Refuse<'_>) -> Result<(), ImportError> {
        self.batch.end = self.place;
        if self.place <= self.position {
            return Ok(());
        }
        // Before the batch, whose end is the position that an import continues from.
        for domain in std::mem::take(&mut self.catching) {
            let edit = DomainEdit { catch_all: Some(true), ..DomainEdit::default() };
            self.store.edit_domain(domain, &edit, OPERATOR).await?;
        }
        let imported = self.store_batch().await?;
        self.bytes = 0;
        self.batch.items.clear();
        let places = std::mem::take(&mut self.places);
        for (imported, (place, code, is_disabled)) in imported.into_iter().zip(places) {
            match imported {
                Imported::Stored(_) => {
                    self.counts.stored += 1;
                    self.counts.disabled += u64::from(is_disabled);
                }
                Imported::AlreadyThere => self.counts.already_there += 1,
                Imported::Taken => {
                    refuse(format!("item {place}: {code:?}: the code leads elsewhere here"))?;
                }
            }
        }
        Ok(())
    }

    async fn store_batch(&mut self) -> Result<Vec<Imported>, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.store.import(&self.batch).await {
                // Storing a batch is idempotent, so an unknown outcome is retried.
                Err(StoreError::TimedOut | StoreError::Unreachable(_) | StoreError::Postgres(_))
                    if tries < TRIES =>
                {
                    sleep(RETRY_AFTER).await;
                }
                Err(StoreError::NoFreeCode { item }) => {
                    tries = 0;
                    self.adoption.codes.add_candidates(&mut self.batch.items, item);
                }
                answer => return answer,
            }
        }
    }

    /// Waits until every resolver knows the new domains, and returns the counts.
    pub async fn finish(self) -> ImportCounts {
        sleep(SHOWN).await;
        self.counts
    }
}
