//! Domains of short links.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use url::Host;

use super::{
    AppLinks, AppLinksFile, ExtraPath, Invalid, LongUrl, QueryTemplate, destination::HOST_MAX, record::set,
    text_value::text_value,
};

codes::stored_number! {
    /// Number of a domain in the database.
    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    pub struct DomainId(i64);
}

impl DomainId {
    /// The default domain, which `--public-url` names.
    pub const DEFAULT: Self = Self(0);

    /// Returns `true` for the default domain.
    pub fn is_default(self) -> bool {
        self == Self::DEFAULT
    }
}

/// Default ports of HTTP and HTTPS. Clients may write or omit them, and mean the same host.
///
/// Both are dropped, whatever the scheme: behind a proxy that terminates TLS the server does not
/// know which scheme the visitor used.
const DEFAULT_PORTS: [&str; 2] = ["80", "443"];

/// Normalizes a requested host: lower case, without a default port and trailing dots.
pub fn requested_authority(host: &str) -> Cow<'_, str> {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => (name, port),
        _ => (host, ""),
    };
    let bare = name.trim_end_matches('.');
    let is_default = port.is_empty() || DEFAULT_PORTS.contains(&port);
    let text = match (is_default, bare.len() == name.len()) {
        (true, _) => Cow::Borrowed(bare),
        (false, true) => Cow::Borrowed(host),
        (false, false) => Cow::Owned(format!("{bare}:{port}")),
    };
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    text
}

/// Host of a domain as requests name it: lower case, in Punycode if it is not ASCII, with its port
/// unless that is a default port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Authority(Box<str>);

text_value!(Authority);

const NOT_A_HOST: Invalid =
    Invalid::because("expected a host name such as sho.rt, with or without a port, and no address");

impl Authority {
    /// Maximum length of an authority with its port, in bytes: a DNS name, a colon and five digits.
    pub const MAX_LEN: usize = HOST_MAX + 6;

    /// Parses a host name with an optional port.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        if text.is_empty() || text.len() > Self::MAX_LEN {
            return Err(NOT_A_HOST);
        }
        let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        let Ok(Host::Domain(host)) = Host::parse(host) else { return Err(NOT_A_HOST) };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_label = |label: &str| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(is_plain)
        };
        // Punycode may be longer than what was written.
        if host.len() > HOST_MAX || !host.split('.').all(is_label) {
            return Err(NOT_A_HOST);
        }
        let Some(port) = port else { return Ok(Self(host.into())) };
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        match port.parse::<u16>() {
            Ok(80 | 443) if is_number => Ok(Self(host.into())),
            Ok(port @ 1..) if is_number => Ok(Self(format!("{host}:{port}").into())),
            _ => Err(NOT_A_HOST),
        }
    }

    /// Wraps an authority that was validated when it was stored.
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }
}

codes::named_values! {
    /// Scheme of a domain's short links.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Protocol {
        /// `http://`
        Http => "http",
        /// `https://`
        Https => "https",
    }
}

/// Fallback redirects for requests that no link answers.
///
/// A domain without a target uses the deployment's. If that has none either, a built-in page is
/// shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Redirects {
    /// Target for the root path of the domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Target for a path that no code could have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regular_404: Option<String>,
    /// Target for a code that leads nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid_short_url: Option<String>,
}

/// Settings of a domain. Stored as an object, so that a new field needs no migration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DomainSettings {
    /// Whether all links of the domain are disabled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Whether visitors are only counted: nothing about them is kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untracked: bool,
    /// Scheme of its short links; `None` for that of `--public-url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Whether a path in capitals finds a link in small letters. New slugs are kept in small
    /// letters.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_case: bool,
    /// Whether a link is found if a slash or a punctuation mark follows its name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_trailing: bool,
    /// Whether the link named `*` answers every path that no other link has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub catch_all: bool,
    /// What a path behind a link's name does, unless the link says so; `None` to refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_path: Option<ExtraPath>,
    /// Target of visitors of links that have expired or whose visits are used up, unless the link
    /// has its own. Releases without it answer such visitors as if there were none.
    #[serde(rename = "_expiredUrl", skip_serializing_if = "Option::is_none")]
    pub expired_url: Option<LongUrl>,
    /// Parameters that redirects of links add to where they lead. Releases without it add none.
    #[serde(rename = "_queryTemplate", skip_serializing_if = "Option::is_none")]
    pub query_template: Option<QueryTemplate>,
    /// Whether scripts of pages on other origins may follow its links. Releases without it answer
    /// as if they may not.
    #[serde(rename = "_crossOrigin", skip_serializing_if = "std::ops::Not::not")]
    pub cross_origin: bool,
    /// Whether crawlers may follow all of its links. Releases without it allow those that say so.
    #[serde(rename = "_crawlable", skip_serializing_if = "std::ops::Not::not")]
    pub crawlable: bool,
    /// Whether visitors of links with a visit limit have to say that they want to go on. Releases
    /// without it lead them on at once.
    #[serde(rename = "_confirmLimited", skip_serializing_if = "std::ops::Not::not")]
    pub confirm_limited: bool,
    /// File with the apps of Apple's systems that open its links. Releases without it serve none.
    #[serde(rename = "_appleAppSiteAssociation", skip_serializing_if = "Option::is_none")]
    pub apple_app_site_association: Option<AppLinks>,
    /// File with the apps of Android that open its links. Releases without it serve none.
    #[serde(rename = "_assetLinks", skip_serializing_if = "Option::is_none")]
    pub asset_links: Option<AppLinks>,
    /// Fallback redirects for requests that no link answers.
    #[serde(flatten)]
    pub redirects: Redirects,
    /// Members that only a later release can read. An edit by this release keeps them.
    #[serde(flatten)]
    pub others: serde_json::Map<String, serde_json::Value>,
}

impl DomainSettings {
    /// Returns a file of app links, if the domain has it.
    pub fn app_links(&self, file: AppLinksFile) -> Option<&AppLinks> {
        match file {
            AppLinksFile::Apple => self.apple_app_site_association.as_ref(),
            AppLinksFile::Android => self.asset_links.as_ref(),
        }
    }
}

/// Placeholder for the name of a removed domain. Deleted links and revoked keys keep its number.
pub const REMOVED: &str = "(removed)";

/// A stored domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Domain number, which links keep when the domain is renamed.
    pub id: DomainId,
    /// Host name; `None` for the default domain, which is named by `--public-url`.
    pub authority: Option<Authority>,
    /// Settings of the domain.
    pub settings: DomainSettings,
}

/// A partial update of a domain. `None` leaves a field unchanged, and `Some(None)` clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainEdit {
    /// New host name.
    pub authority: Option<Authority>,
    /// Whether all links of the domain are disabled.
    pub disabled: Option<bool>,
    /// Whether visitors are only counted.
    pub untracked: Option<bool>,
    /// Scheme of its short links.
    pub protocol: Option<Option<Protocol>>,
    /// Whether a path in capitals finds a link in small letters.
    pub ignore_case: Option<bool>,
    /// Whether a link is found if a slash or a punctuation mark follows its name.
    pub ignore_trailing: Option<bool>,
    /// Whether the link named `*` answers every path that no other link has.
    pub catch_all: Option<bool>,
    /// What a path behind a link's name does.
    pub extra_path: Option<Option<ExtraPath>>,
    /// Target of visitors of links that have expired or whose visits are used up.
    pub expired_url: Option<Option<LongUrl>>,
    /// Parameters that redirects of links add to where they lead.
    pub query_template: Option<Option<QueryTemplate>>,
    /// Whether scripts of pages on other origins may follow its links.
    pub cross_origin: Option<bool>,
    /// Whether crawlers may follow all of its links.
    pub crawlable: Option<bool>,
    /// Whether visitors of links with a visit limit have to say that they want to go on.
    pub confirm_limited: Option<bool>,
    /// File with the apps of Apple's systems that open its links.
    pub apple_app_site_association: Option<Option<AppLinks>>,
    /// File with the apps of Android that open its links.
    pub asset_links: Option<Option<AppLinks>>,
    /// Target for the root path of the domain.
    pub base_url: Option<Option<String>>,
    /// Target for a path that no code could have.
    pub regular_404: Option<Option<String>>,
    /// Target for a code that leads nowhere.
    pub invalid_short_url: Option<Option<String>>,
}

impl DomainEdit {
    /// Applies the edit to the settings and returns them. The host name is not part of them.
    #[must_use]
    pub fn apply(&self, mut settings: DomainSettings) -> DomainSettings {
        let redirects = &mut settings.redirects;
        set(&mut settings.disabled, self.disabled.as_ref());
        set(&mut settings.untracked, self.untracked.as_ref());
        set(&mut settings.protocol, self.protocol.as_ref());
        set(&mut settings.ignore_case, self.ignore_case.as_ref());
        set(&mut settings.ignore_trailing, self.ignore_trailing.as_ref());
        set(&mut settings.catch_all, self.catch_all.as_ref());
        set(&mut settings.extra_path, self.extra_path.as_ref());
        set(&mut settings.expired_url, self.expired_url.as_ref());
        set(&mut settings.query_template, self.query_template.as_ref());
        set(&mut settings.cross_origin, self.cross_origin.as_ref());
        set(&mut settings.crawlable, self.crawlable.as_ref());
        set(&mut settings.confirm_limited, self.confirm_limited.as_ref());
        set(&mut settings.apple_app_site_association, self.apple_app_site_association.as_ref());
        set(&mut settings.asset_links, self.asset_links.as_ref());
        set(&mut redirects.base_url, self.base_url.as_ref());
        set(&mut redirects.regular_404, self.regular_404.as_ref());
        set(&mut redirects.invalid_short_url, self.invalid_short_url.as_ref());
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_read_as_requests_name_them() {
        for (text, kept) in [
            ("sho.rt", "sho.rt"),
            (" Sho.RT ", "sho.rt"),
            ("localhost:8080", "localhost:8080"),
            ("sho.rt:443", "sho.rt"),
            ("Sho.RT:80", "sho.rt"),
            ("sho.rt:0443", "sho.rt"),
            ("münchen.de", "xn--mnchen-3ya.de"),
            ("a-b.c_d.example", "a-b.c_d.example"),
        ] {
            assert_eq!(Authority::parse(text).unwrap().as_str(), kept, "{text:?}");
        }
        let long = "a.".repeat(200);
        // Short as written, and too long as requests name it.
        let in_punycode = "㍿".repeat(80);
        let wrong = "|localhost:80000|a:b:1|a:+1|a:0|127.0.0.1|[::1]|???/&%$&|a b|a..b|-a.b";
        for text in wrong.split('|').chain([&*long, &*in_punycode]) {
            assert_eq!(Authority::parse(text), Err(NOT_A_HOST), "{text:?}");
        }
    }

    #[test]
    fn a_request_names_the_same_host_however_it_is_written() {
        for (host, named) in [
            ("sho.rt", "sho.rt"),
            ("Sho.RT.", "sho.rt"),
            ("sho.rt:443", "sho.rt"),
            ("sho.rt..:80", "sho.rt"),
            ("sho.rt...", "sho.rt"),
            ("sho.rt:", "sho.rt"),
            ("sho.rt:8080", "sho.rt:8080"),
            ("SHO.rt.:8080", "sho.rt:8080"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(requested_authority(host), named, "{host:?}");
        }
    }

    #[test]
    fn settings_are_stored_without_what_is_as_ever() {
        let settings = DomainSettings::default();
        assert_eq!(serde_json::to_string(&settings).unwrap(), "{}");
        let edit = DomainEdit {
            disabled: Some(true),
            regular_404: Some(Some("https://a.b/".to_owned())),
            protocol: Some(Some(Protocol::Https)),
            ..DomainEdit::default()
        };
        let text = serde_json::to_string(&edit.apply(settings)).unwrap();
        assert_eq!(text, r#"{"disabled":true,"protocol":"https","regular404":"https://a.b/"}"#);
        let stored: DomainSettings = serde_json::from_str(&text).unwrap();
        let cleared = DomainEdit { regular_404: Some(None), ..DomainEdit::default() }.apply(stored);
        assert_eq!(serde_json::to_string(&cleared).unwrap(), r#"{"disabled":true,"protocol":"https"}"#);
    }
}
