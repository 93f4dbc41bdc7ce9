//! One resolver process; what is asked of it is in [`Api`].

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api::Api;
use crate::daemon::Daemon;
use crate::launch::{Finished, Launch};
use crate::scratch::Scratch;
use crate::{binaries, net, secret};

const INITIAL_KEY_VARIABLE: &str = "RESOLVER_INITIAL_API_KEY";
const MIGRATE_WITHIN: Duration = Duration::from_secs(60);

/// Runs `resolver migrate` on a database.
///
/// # Errors
/// It cannot be started, or does not end in time.
pub async fn migrate(scratch: &Scratch, url: &str) -> anyhow::Result<Finished> {
    migrate_with(scratch, binaries::resolver().await?, url).await
}

/// Runs `migrate` of another build.
///
/// # Errors
/// It cannot be started, or does not end in time.
pub async fn migrate_with(scratch: &Scratch, binary: PathBuf, url: &str) -> anyhow::Result<Finished> {
    let launch = Launch::new(scratch, "migrate", binary);
    launch.args(["migrate", "--database", url]).run(MIGRATE_WITHIN).await
}

/// What to start. Its addresses are known before it is, so that a proxy can be put in front.
#[derive(Clone, Debug)]
pub struct ResolverBuilder {
    scratch: Scratch,
    holder_id: String,
    api_key: String,
    first_key: FirstKey,
    listen: SocketAddr,
    admin: SocketAddr,
    issuers: Vec<String>,
    database: Option<String>,
    code_key_file: Option<PathBuf>,
    public_url: Option<String>,
    keyspaces: Option<String>,
    drain_delay: Option<String>,
    args: Vec<String>,
    envs: Vec<(String, String)>,
    descriptors: Option<u32>,
    binary: Option<PathBuf>,
}

/// Where the first API key of an empty database comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstKey {
    FromEnvironment,
    Drawn,
}

impl ResolverBuilder {
    /// Where it will listen.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// The issuers' URLs; none means the embedded one.
    #[must_use]
    pub fn issuers(mut self, urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.issuers = urls.into_iter().map(Into::into).collect();
        self
    }

    /// The database's URL; without one it is SQLite in the scratch folder.
    #[must_use]
    pub fn database(mut self, url: &str) -> Self {
        self.database = Some(url.to_owned());
        self
    }

    /// The file with the key of the permutation.
    #[must_use]
    pub fn code_key_file(mut self, path: &Path) -> Self {
        self.code_key_file = Some(path.to_owned());
        self
    }

    /// The URL that short links start with, instead of its own.
    #[must_use]
    pub fn public_url(mut self, url: &str) -> Self {
        self.public_url = Some(url.to_owned());
        self
    }

    /// The keyspaces, as the flag takes them.
    #[must_use]
    pub fn keyspaces(mut self, keyspaces: &str) -> Self {
        self.keyspaces = Some(keyspaces.to_owned());
        self
    }

    /// How long it goes on serving after SIGTERM before it closes its listener, as in `200ms`.
    #[must_use]
    pub fn drain_delay(mut self, delay: &str) -> Self {
        self.drain_delay = Some(delay.to_owned());
        self
    }

    /// Gives it no first API key: it draws one and prints it. Tell it to [`Resolver::use_key`].
    #[must_use]
    pub fn draws_its_first_key(mut self) -> Self {
        self.first_key = FirstKey::Drawn;
        self
    }

    /// Adds arguments.
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

    /// Lets it have no more open files than this.
    #[must_use]
    pub fn descriptors(mut self, most: u32) -> Self {
        self.descriptors = Some(most);
        self
    }

    /// Runs this binary instead of the one that belongs to the tests.
    #[must_use]
    pub fn binary(mut self, path: &Path) -> Self {
        self.binary = Some(path.to_owned());
        self
    }

    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// The binary cannot be built, or the process is not ready in time; the message holds the end of its log.
    pub async fn start(self) -> anyhow::Result<Resolver> {
        let daemon = Daemon::start(self.launch().await?, self.admin).await?;
        let api = Api::new(daemon.http(), format!("http://{}", self.listen), self.api_key);
        Ok(Resolver { api, daemon, listen: self.listen, holder_id: self.holder_id })
    }

    /// Starts what must refuse to run, and waits for its end.
    ///
    /// # Errors
    /// The binary cannot be built, or the process still runs after the given time.
    pub async fn run_to_its_end(self, within: Duration) -> anyhow::Result<Finished> {
        self.launch().await?.run(within).await
    }

    async fn launch(&self) -> anyhow::Result<Launch> {
        let binary = match &self.binary {
            Some(path) => path.clone(),
            None => binaries::resolver().await?,
        };
        let launch = Launch::new(&self.scratch, &self.holder_id, binary);
        let launch = launch.arg("serve").args(self.flags()).args(&self.args).descriptors(self.descriptors);
        let launch = match self.first_key {
            FirstKey::FromEnvironment => launch.env(INITIAL_KEY_VARIABLE, &self.api_key),
            FirstKey::Drawn => launch,
        };
        Ok(self.envs.iter().fold(launch, |launch, (key, value)| launch.env(key, value)))
    }

    /// The flags that are set, each followed by its value.
    fn flags(&self) -> Vec<String> {
        let own_url = format!("http://{}", self.listen);
        let code_key_file = self.code_key_file.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--listen", Some(self.listen.to_string())),
            ("--admin-listen", Some(self.admin.to_string())),
            ("--issuer", (!self.issuers.is_empty()).then(|| self.issuers.join(","))),
            ("--database", self.database.clone()),
            ("--holder-id", Some(self.holder_id.clone())),
            ("--code-key-file", code_key_file),
            ("--public-url", Some(self.public_url.clone().unwrap_or(own_url))),
            ("--keyspaces", self.keyspaces.clone()),
            ("--drain-delay", self.drain_delay.clone()),
        ];
        let set = flags.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        set.flatten().collect()
    }
}

/// A running resolver. What it shares with the issuer is in [`Daemon`], which it stands for.
#[derive(Debug)]
pub struct Resolver {
    /// Its public listener, asked with the administrator's key.
    pub api: Api,
    daemon: Daemon,
    listen: SocketAddr,
    holder_id: String,
}

impl Resolver {
    /// A resolver with an embedded issuer and SQLite, unless told otherwise. `api_key` becomes the first key of an
    /// empty database, and is what [`Resolver::api`] sends.
    ///
    /// # Errors
    /// There is no free port.
    pub fn builder(scratch: &Scratch, holder_id: &str, api_key: &str) -> anyhow::Result<ResolverBuilder> {
        Ok(ResolverBuilder {
            scratch: scratch.clone(),
            holder_id: holder_id.to_owned(),
            api_key: api_key.to_owned(),
            first_key: FirstKey::FromEnvironment,
            listen: net::free_addr()?,
            admin: net::free_addr()?,
            issuers: Vec::new(),
            database: None,
            code_key_file: None,
            public_url: None,
            keyspaces: None,
            drain_delay: None,
            args: Vec::new(),
            envs: Vec::new(),
            descriptors: None,
            binary: None,
        })
    }

    /// A resolver with all defaults in a folder of its own: nothing else runs.
    ///
    /// # Errors
    /// There is no free port, or no folder can be made.
    pub fn embedded() -> anyhow::Result<ResolverBuilder> {
        Self::builder(&Scratch::new()?, "resolver-0", &secret::random_hex()?)
    }

    /// Where its public listener is, for connections of the test's own.
    pub fn addr(&self) -> SocketAddr {
        self.listen
    }

    /// Its name as a holder of blocks.
    pub fn holder_id(&self) -> &str {
        &self.holder_id
    }

    /// Numbers that it can mint from without asking anyone; `None` when nobody answers, or there are none of any kind.
    pub async fn numbers_in_hand(&self) -> Option<u64> {
        let in_hand = self.metric("resolver_numbers_in_hand").await?;
        // A count below 2^48, which the page writes without a fraction.
        format!("{in_hand:.0}").parse().ok()
    }

    /// The numbers that it has given up so far, over all its runs, each with its namespace. Its log lists them for the
    /// operator, who can look for their links; a metric only counts them.
    pub fn numbers_given_up(&self) -> BTreeSet<(String, u64)> {
        self.process.stderr().lines().filter_map(given_up).collect()
    }

    /// Sends another key from now on.
    pub fn use_key(&mut self, key: &str) {
        self.api = self.api.with_key(key);
    }
}

/// Reads the line that lists a number, `… a number is given up namespace=default number=17`.
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
