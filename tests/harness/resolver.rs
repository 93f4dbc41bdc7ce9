//! A running resolver process, and its builder; requests go through [`Api`].

use std::collections::BTreeSet;
use std::net::{Ipv6Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api::Api;
use crate::daemon::Daemon;
use crate::launch::{ErrorOutput, Finished, Launch};
use crate::scratch::Scratch;
use crate::{binaries, net, secret};

const INITIAL_KEY_VARIABLE: &str = "RESOLVER_INITIAL_API_KEY";
/// The resolver of a newer release, whose schema this release is tested on.
const MIGRATE_WITH: &str = "SHORTMINT_MIGRATE_WITH";
const MIGRATE_WITHIN: Duration = Duration::from_secs(60);

/// Runs `resolver migrate` on a database.
///
/// # Errors
/// Returns an error if the command cannot be started or does not end in time.
pub async fn migrate(scratch: &Scratch, url: &str) -> anyhow::Result<Finished> {
    let binary = match std::env::var_os(MIGRATE_WITH) {
        Some(newer) => newer.into(),
        None => binaries::resolver().await?,
    };
    migrate_with(scratch, binary, url).await
}

/// Runs the command `migrate` of another build's binary.
///
/// # Errors
/// Returns an error if the command cannot be started or does not end in time.
pub async fn migrate_with(scratch: &Scratch, binary: PathBuf, url: &str) -> anyhow::Result<Finished> {
    let launch = Launch::new(scratch, "migrate", binary);
    launch.args(["migrate", "--database", url]).run(MIGRATE_WITHIN).await
}

/// A builder for a [`Resolver`]. Its addresses are fixed before the start, so that a proxy can be
/// put in front.
#[derive(Clone, Debug)]
pub struct ResolverBuilder {
    scratch: Scratch,
    holder_id: String,
    api_key: String,
    first_key: FirstKey,
    listen: SocketAddr,
    on_all_addresses: bool,
    admin: SocketAddr,
    issuers: Vec<String>,
    database: Option<String>,
    code_key_file: Option<PathBuf>,
    public_url: Option<String>,
    args: Vec<String>,
    envs: Vec<(String, String)>,
    descriptors: Option<u32>,
    binary: Option<PathBuf>,
    error_output: ErrorOutput,
    is_redirect_node: bool,
}

/// The source of the first API key of an empty database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstKey {
    FromEnvironment,
    Drawn,
}

impl ResolverBuilder {
    /// Returns the address that the resolver will listen on.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Sets the issuers' URLs; none selects the embedded issuer.
    #[must_use]
    pub fn issuers(mut self, urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.issuers = urls.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the database's URL; the default is SQLite in the scratch folder.
    #[must_use]
    pub fn database(mut self, url: &str) -> Self {
        self.database = Some(url.to_owned());
        self
    }

    /// Sets the file with the code key.
    #[must_use]
    pub fn code_key_file(mut self, path: &Path) -> Self {
        self.code_key_file = Some(path.to_owned());
        self
    }

    /// Sets the base URL of short links; the default is the resolver's own.
    #[must_use]
    pub fn public_url(mut self, url: &str) -> Self {
        self.public_url = Some(url.to_owned());
        self
    }

    /// Sets the keyspaces, in the format of `--keyspaces`.
    #[must_use]
    pub fn keyspaces(self, keyspaces: &str) -> Self {
        self.args(["--keyspaces", keyspaces])
    }

    /// Sets how long the resolver continues to serve after SIGTERM before it closes its listener,
    /// for example `200ms`.
    #[must_use]
    pub fn drain_delay(self, delay: &str) -> Self {
        self.args(["--drain-delay", delay])
    }

    /// Starts the resolver without an initial API key: it generates one and prints it. Pass that
    /// key to [`Resolver::use_key`].
    #[must_use]
    pub fn draws_its_first_key(mut self) -> Self {
        self.first_key = FirstKey::Drawn;
        self
    }

    /// Listens on the port at all addresses of both families, as pods do.
    #[must_use]
    pub fn on_all_addresses(mut self) -> Self {
        self.on_all_addresses = true;
        self
    }

    /// Serves visitors only: without issuers, holder id and first key.
    #[must_use]
    pub fn redirects_only(mut self) -> Self {
        self.issuers.clear();
        self.is_redirect_node = true;
        self.args(["--role", "redirect"])
    }

    /// Adds command-line arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.envs.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Limits the number of open files.
    #[must_use]
    pub fn descriptors(mut self, most: u32) -> Self {
        self.descriptors = Some(most);
        self
    }

    /// Sets where the standard error goes, which is a log file otherwise.
    #[must_use]
    pub fn error_output(mut self, to: ErrorOutput) -> Self {
        self.error_output = to;
        self
    }

    /// Runs this binary instead of the one built for the tests.
    #[must_use]
    pub fn binary(mut self, path: &Path) -> Self {
        self.binary = Some(path.to_owned());
        self
    }

    /// Starts the resolver and waits until it is ready.
    ///
    /// # Errors
    /// Returns an error if the binary cannot be built or the process is not ready in time; the
    /// message contains the end of its log.
    pub async fn start(self) -> anyhow::Result<Resolver> {
        let daemon = Daemon::start(self.launch("serve").await?, self.admin).await?;
        let api = Api::new(daemon.http(), format!("http://{}", self.listen), self.api_key);
        Ok(Resolver { api, daemon, listen: self.listen, holder_id: self.holder_id })
    }

    /// Runs a resolver that must refuse to serve, and waits for its exit.
    ///
    /// # Errors
    /// Returns an error if the binary cannot be built or the process still runs after the given
    /// time.
    pub async fn run_to_its_end(self, within: Duration) -> anyhow::Result<Finished> {
        self.launch("serve").await?.run(within).await
    }

    /// Runs `resolver doctor --json` with the flags and the environment of this resolver, which
    /// need not be started.
    ///
    /// # Errors
    /// Returns an error if the binary cannot be built or the process still runs after the given
    /// time.
    pub async fn doctor(&self, within: Duration) -> anyhow::Result<Finished> {
        self.launch("doctor").await?.arg("--json").run(within).await
    }

    async fn launch(&self, command: &str) -> anyhow::Result<Launch> {
        let binary = match &self.binary {
            Some(path) => path.clone(),
            None => binaries::resolver().await?,
        };
        let launch = Launch::new(&self.scratch, &self.holder_id, binary).error_output(self.error_output);
        let launch = launch.arg(command).args(self.flags()).args(&self.args).descriptors(self.descriptors);
        let launch = match self.first_key {
            FirstKey::FromEnvironment if !self.is_redirect_node => {
                launch.env(INITIAL_KEY_VARIABLE, &self.api_key)
            }
            FirstKey::FromEnvironment | FirstKey::Drawn => launch,
        };
        Ok(self.envs.iter().fold(launch, |launch, (key, value)| launch.env(key, value)))
    }

    /// Returns the flags that are set, each followed by its value.
    fn flags(&self) -> Vec<String> {
        let own_url = format!("http://{}", self.listen);
        let all_addresses = SocketAddr::from((Ipv6Addr::UNSPECIFIED, self.listen.port()));
        let listen = if self.on_all_addresses { all_addresses } else { self.listen };
        let code_key_file = self.code_key_file.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--listen", Some(listen.to_string())),
            ("--admin-listen", Some(self.admin.to_string())),
            ("--issuer", (!self.issuers.is_empty()).then(|| self.issuers.join(","))),
            ("--database", self.database.clone()),
            ("--holder-id", (!self.is_redirect_node).then(|| self.holder_id.clone())),
            ("--code-key-file", code_key_file),
            ("--public-url", Some(self.public_url.clone().unwrap_or(own_url))),
        ];
        let set = flags.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        set.flatten().collect()
    }
}

/// A running resolver. It dereferences to [`Daemon`], which holds the part common to issuers and
/// resolvers.
#[derive(Debug)]
pub struct Resolver {
    /// A client of the public listener, with the administrator's API key.
    pub api: Api,
    daemon: Daemon,
    listen: SocketAddr,
    holder_id: String,
}

impl Resolver {
    /// Returns a builder for a resolver, by default with an embedded issuer and SQLite. `api_key`
    /// becomes the first key of an empty database, and [`Resolver::api`] sends it.
    ///
    /// # Errors
    /// Returns an error if there is no free port.
    pub fn builder(scratch: &Scratch, holder_id: &str, api_key: &str) -> anyhow::Result<ResolverBuilder> {
        Ok(ResolverBuilder {
            scratch: scratch.clone(),
            holder_id: holder_id.to_owned(),
            api_key: api_key.to_owned(),
            first_key: FirstKey::FromEnvironment,
            listen: net::free_addr()?,
            on_all_addresses: false,
            admin: net::free_addr()?,
            issuers: Vec::new(),
            database: None,
            code_key_file: None,
            public_url: None,
            args: Vec::new(),
            envs: Vec::new(),
            descriptors: None,
            binary: None,
            error_output: ErrorOutput::Log,
            is_redirect_node: false,
        })
    }

    /// Returns a builder for a stand-alone resolver with all defaults, in a new scratch folder.
    ///
    /// # Errors
    /// Returns an error if there is no free port or the folder cannot be created.
    pub fn embedded() -> anyhow::Result<ResolverBuilder> {
        Self::builder(&Scratch::new()?, "resolver-0", &secret::random_hex()?)
    }

    /// Returns the address of the public listener, for connections that bypass [`Resolver::api`].
    pub fn addr(&self) -> SocketAddr {
        self.listen
    }

    /// Returns its holder id.
    pub fn holder_id(&self) -> &str {
        &self.holder_id
    }

    /// Returns the count of numbers that the resolver can mint without asking an issuer; `None` if
    /// it does not respond or has no such metric.
    pub async fn numbers_in_hand(&self) -> Option<u64> {
        let in_hand = self.metric("resolver_numbers_in_hand").await?;
        // The count is below 2^48, and the page prints it without a fraction.
        format!("{in_hand:.0}").parse().ok()
    }

    /// Returns the numbers given up so far, over all runs, each with its namespace. The log lists
    /// them for the operator, who can look for their links; a metric only counts them.
    pub fn numbers_given_up(&self) -> BTreeSet<(String, u64)> {
        self.process.stderr().lines().filter_map(given_up).collect()
    }

    /// Replaces the API key of [`Resolver::api`].
    pub fn use_key(&mut self, key: &str) {
        self.api = self.api.with_key(key);
    }
}

/// Parses the log line for a number given up, `… a number is given up namespace=default number=17`.
fn given_up(line: &str) -> Option<(String, u64)> {
    let (_, fields) = line.split_once("a number is given up")?;
    let field = |name: &str| fields.split_whitespace().find_map(|field| field.strip_prefix(name));
    Some((field("namespace=")?.to_owned(), field("number=")?.parse().ok()?))
}

impl Deref for Resolver {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

impl DerefMut for Resolver {
    fn deref_mut(&mut self) -> &mut Daemon {
        &mut self.daemon
    }
}

#[cfg(test)]
mod tests {
    use super::given_up;

    #[test]
    fn a_number_that_was_given_up_is_read_with_its_namespace() {
        let line =
            "2026-11-21T15:00:00Z  WARN resolver::create: a number is given up namespace=web number=17";
        assert_eq!(given_up(line), Some(("web".to_owned(), 17)));
        assert_eq!(given_up("insert links links=3"), None);
    }
}
