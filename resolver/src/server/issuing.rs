//! The source of numbers: issuers elsewhere, or one in this process.

use std::{collections::BTreeMap, sync::Arc};

use cli::wait_for;
use codes::{Keyspace, KeyspaceIndex};
use daemon::{Recorder, TaskSupervisor};
use issuer::{core::Limits, embedded::Embedded};
use links::api_key::random_hex;
use lookup::keyspaces::Adopted;
use store::Register;
use supply::{Clock, IssuerClient, Issuers, Minting, Owner, Spec, Target};
use tls::ClientTls;
use tokio::time::Instant;

use crate::{Error, config::Settings};

/// The used part of a block at which the next one is fetched, in thousandths. Each process adds a
/// random share of up to as much again, so that resolvers started together do not ask together.
const REFILL_PERMILLE: u64 = 200;

/// The source of numbers, and who takes them.
#[derive(Clone)]
pub(super) struct Issuing {
    pub(super) client: Arc<IssuerClient>,
    pub(super) owner: Owner,
    /// The supplies of numbers, that of the default keyspace first.
    pub(super) mintings: Vec<Arc<Minting>>,
    /// When the first numbers may be asked for.
    pub(super) begins_at: Instant,
    /// How issuers elsewhere are reached, if with TLS.
    pub(super) tls: Option<ClientTls>,
}

impl Issuing {
    /// Starts the source of numbers. Without `--issuer` it is an issuer in this process, which is
    /// returned too. A node that serves visitors only needs neither.
    pub(super) async fn start(
        settings: &Settings,
        Adopted { keyspaces, shown_at }: &Adopted,
        (clock, register): (Clock, &dyn Register),
        tasks: (&Recorder, &TaskSupervisor),
    ) -> Result<(Option<Self>, Option<Embedded>), Error> {
        let flags = &settings.flags;
        if !flags.role.serves_api() {
            return Ok((None, None));
        }
        let holder = settings.holder.to_string();
        let tls = flags.issuer_tls(&holder)?;
        let (target, embedded) = if flags.issuer.is_empty() {
            let ledger = flags.database.data_folder().join("ledger.json");
            // The end of the registered numbers of each keyspace.
            let mut registered = BTreeMap::new();
            for (index, keyspace) in keyspaces {
                let end = wait_for(&flags.database, async || register.registered_end(*index).await).await?;
                registered.insert(keyspace.name.clone(), end);
            }
            let started = Embedded::start(&ledger, registered, Limits::default(), tasks).await;
            let embedded = started
                .map_err(|error| Error::Failed("embedded issuer".to_owned(), error.exit(), error.into()))?;
            (Target::Embedded(embedded.dialer.clone()), Some(embedded))
        } else {
            let (urls, allows_plaintext) = (flags.issuer.clone(), flags.database.insecure);
            (Target::Remote(Issuers { urls, tls: tls.clone(), allows_plaintext }), None)
        };
        let mintings = mintings(settings, keyspaces, clock)?;
        let owner = Owner { holder, instance: random_hex::<16>().map_err(Error::Random)? };
        let client = Arc::new(IssuerClient::new(target));
        Ok((Some(Self { client, owner, mintings, begins_at: *shown_at, tls }), embedded))
    }
}

/// Creates the mintings of the configured keyspaces, the default one first. Keyspaces of earlier
/// configurations only resolve.
fn mintings(
    settings: &Settings,
    known: &[(KeyspaceIndex, Keyspace)],
    clock: Clock,
) -> Result<Vec<Arc<Minting>>, Error> {
    let mut jitter = [0];
    getrandom::fill(&mut jitter).map_err(Error::Random)?;
    let permille = REFILL_PERMILLE + REFILL_PERMILLE * u64::from(jitter[0]) / 255;
    let mint = |keyspace: &Keyspace| {
        let (index, _) = known.iter().find(|(_, other)| other == keyspace)?;
        let spec = Spec { index: *index, namespace: keyspace.name.clone(), capacity: keyspace.capacity() };
        Some(Arc::new(Minting::new(spec, permille, clock)))
    };
    let minted = settings.keyspaces.iter().filter(|keyspace| !keyspace.hand_picked);
    let mut mintings: Vec<_> = minted.filter_map(mint).collect();
    mintings.sort_by_key(|minting| minting.namespace != settings.default_keyspace);
    Ok(mintings)
}
