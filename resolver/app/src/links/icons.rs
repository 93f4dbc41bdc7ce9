//! Icons of the hosts that links lead to.
//!
//! 1. An icon is read at a public address only, for operators too: their lists have the links of
//!    others. The target rules judge its URL and each redirect.
//! 2. What was read is cached for the key that asked alone, so that no key learns from the time of
//!    an answer which hosts the links of others lead to.
//! 3. A list requests many icons together. A key has few fetches at once, and its further ones
//!    wait for these; what is refused is not cached.

use std::time::{Duration, Instant};

use limits::ExceededShare;
use links::{
    api_key::{ApiKeyId, Grant},
    scope::Scope,
};
use moka::{Expiry, future::Cache};
use tokio::sync::Semaphore;
use url::Url;
use webhooks::{Icon, PageReader};

use crate::{AppError, LinkService, authorize::require, key_permits::KeyPermits};

/// How long an icon is cached.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// How long it is cached that a host had none, or did not answer.
const NONE_KEPT_FOR: Duration = Duration::from_secs(5 * 60);
/// Maximum size of the cache in bytes: some five hundred icons of the largest kind, or twenty
/// thousand hosts without one.
const BYTES_MAX: u64 = 8 << 20;
/// Bytes that an entry takes beside its host and its icon.
const ENTRY_BYTES: usize = 400;
/// Maximum number of icons that are fetched at once.
const FETCHES_MAX: usize = 32;
/// That of one key: as many as a browser has connections to a host.
const FETCHES_OF_KEY_MAX: usize = 6;

type HostOfKey = (ApiKeyId, Box<str>);

struct Kept;

impl Expiry<HostOfKey, Option<Icon>> for Kept {
    fn expire_after_create(&self, _: &HostOfKey, icon: &Option<Icon>, _: Instant) -> Option<Duration> {
        Some(if icon.is_some() { KEPT_FOR } else { NONE_KEPT_FOR })
    }
}

/// The icons of hosts, fetched when they are asked for.
pub struct Icons {
    reader: PageReader,
    fetched: Cache<HostOfKey, Option<Icon>>,
    fetches: Semaphore,
    fetches_of_key: KeyPermits,
}

impl Icons {
    /// Creates an empty cache in front of a reader, of which only public addresses are used.
    pub fn new(reader: &PageReader) -> Self {
        let weigh = |(_, host): &HostOfKey, icon: &Option<Icon>| {
            let icon = icon.as_ref().map_or(0, |icon| icon.bytes.len());
            u32::try_from(ENTRY_BYTES + host.len() + icon).unwrap_or(u32::MAX)
        };
        Self {
            reader: reader.public_only(),
            fetched: Cache::builder().max_capacity(BYTES_MAX).weigher(weigh).expire_after(Kept).build(),
            fetches: Semaphore::new(FETCHES_MAX),
            fetches_of_key: KeyPermits::new(FETCHES_OF_KEY_MAX),
        }
    }

    /// Returns what was fetched for a host and a key, or fetches it. Concurrent calls share that.
    async fn cached(
        &self,
        host: &str,
        by: ApiKeyId,
        fetch: impl Future<Output = Option<Icon>>,
    ) -> Result<Option<Icon>, AppError> {
        let fetched = self.fetched.try_get_with((by, host.into()), async {
            let _of_key = self.fetches_of_key.take(by).await.map_err(|_| ExceededShare::Own)?;
            let _of_all = self.fetches.try_acquire().map_err(|_| ExceededShare::All)?;
            Ok::<_, ExceededShare>(fetch.await)
        });
        fetched.await.map_err(|exceeded| AppError::TooMuchAtOnce(*exceeded))
    }
}

impl LinkService {
    /// Returns the icon of a host in the form of [`host_of`]; `None` if it has none, or icons are
    /// off.
    pub async fn icon(&self, host: &str, by: &Grant) -> Result<Option<Icon>, AppError> {
        require(by, Scope::Read)?;
        let url = format!("https://{host}/favicon.ico");
        let Some(icons) = self.icons.as_ref().filter(|_| host_of(&url).as_deref() == Some(host)) else {
            return Ok(None);
        };
        let allows = |url: &str| self.domain_cache.entries().targets.allow(url, None);
        icons.cached(host, by.id, icons.reader.icon(&url, allows)).await
    }
}

/// Returns the host of a long URL; `None` for a URL of another scheme than http and https.
pub fn host_of(long_url: &str) -> Option<String> {
    let url = Url::parse(long_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.host_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use webhooks::{Policy, Roots, Sender};

    use super::*;

    fn icons() -> Icons {
        Icons::new(&Sender::new(Policy::default(), Roots::mozilla()).page_reader())
    }

    #[tokio::test]
    async fn an_icon_is_fetched_once_for_each_key() {
        let (icons, fetches) = (icons(), AtomicUsize::new(0));
        let icon = Icon { media_type: "image/png", bytes: b"icon".to_vec().into() };
        let find = async |key: i64, host: &str| {
            let fetch = async {
                fetches.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                (host == "one.example").then(|| icon.clone())
            };
            icons.cached(host, ApiKeyId(key), fetch).await.unwrap()
        };
        let both = tokio::join!(find(1, "one.example"), find(1, "one.example"));
        assert_eq!(both, (Some(icon.clone()), Some(icon.clone())));
        assert_eq!(find(1, "one.example").await, Some(icon.clone()));
        assert_eq!(fetches.load(Ordering::Relaxed), 1);
        for _ in 0..2 {
            assert_eq!(find(1, "none.example").await, None);
            assert_eq!(find(2, "one.example").await, Some(icon.clone()));
        }
        assert_eq!(fetches.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_for_want_of_a_place_is_not_cached() {
        let icons = icons();
        let find = async |key: i64| icons.cached("a.example", ApiKeyId(key), async { None }).await;
        let mut held = Vec::new();
        for _ in 0..FETCHES_OF_KEY_MAX {
            held.push(icons.fetches_of_key.take(ApiKeyId(1)).await.unwrap());
        }
        assert!(matches!(find(1).await, Err(AppError::TooMuchAtOnce(ExceededShare::Own))));
        assert!(find(2).await.is_ok(), "another key has its own");
        drop(held);
        assert!(find(1).await.is_ok());

        let all = icons.fetches.try_acquire_many(u32::try_from(FETCHES_MAX).unwrap()).unwrap();
        assert!(matches!(find(3).await, Err(AppError::TooMuchAtOnce(ExceededShare::All))));
        assert!(find(1).await.is_ok(), "it was fetched before");
        drop(all);
        assert!(find(3).await.is_ok());
    }

    #[test]
    fn hosts_are_those_of_the_web_in_their_normal_form() {
        for (long_url, host) in [
            ("http://Example.COM:8080/a?b#c", Some("example.com")),
            ("https://bücher.example/", Some("xn--bcher-kva.example")),
            ("https://[::1]/", Some("[::1]")),
            ("https://a&b.example/", Some("a&b.example")),
            ("mailto:a@example.com", None),
            ("ftp://example.com/", None),
            ("example.com", None),
        ] {
            assert_eq!(host_of(long_url).as_deref(), host, "{long_url}");
        }
        // What is not in this form is no host.
        for text in ["", "a/b", "a?b", "a#b", "a@b.example", "a:443", "A.example", "0x7f.1", "a b", "a%41"] {
            assert_ne!(host_of(&format!("https://{text}/favicon.ico")).as_deref(), Some(text), "{text}");
        }
    }
}
