//! Domains of short links.

use links::{Authority, ExtraPath, LongUrl, Protocol, QueryTemplate, STRAY_TARGET_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Flag, Patch, values::inline_schema};

/// A domain.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Domain<'a> {
    /// The name, with the port if there is one.
    pub domain: &'a str,
    /// Whether it is the domain of `--public-url`.
    pub is_default: bool,
    /// Where the domain sends visitors that no link redirects.
    pub redirects: DomainRedirects<'a>,
    /// Whether the domain's links redirect.
    #[schemars(extend("x-addition" = true))]
    pub enabled: bool,
    /// Whether visits of the domain keep what is known about the visitor. If not, they are only
    /// counted.
    #[schemars(extend("x-addition" = true))]
    pub track_visitors: bool,
    /// The scheme of short URLs; null for that of `--public-url`.
    #[schemars(with = "ProtocolOrNull", extend("x-addition" = true))]
    pub protocol: Option<&'static str>,
    /// Whether a path in capitals finds a link in small letters. New slugs are kept in small
    /// letters.
    #[schemars(extend("x-addition" = true))]
    pub ignore_case: bool,
    /// Whether a link is found if a slash or a punctuation mark follows its name.
    #[schemars(extend("x-addition" = true))]
    pub ignore_trailing: bool,
    /// Whether the link named `*` answers every path that no other link has.
    #[schemars(extend("x-addition" = true))]
    pub catch_all: bool,
    /// What a path behind a link's name does, unless the link says so; null to refuse it.
    #[schemars(with = "DomainExtraPathOrNull", extend("x-addition" = true))]
    pub extra_path: Option<&'static str>,
    /// Where visitors of a link are led that has expired or whose visits are used up, unless the
    /// link says so; null for what all codes without a link get.
    #[schemars(extend("x-addition" = true))]
    pub expired_url: Option<&'a str>,
    /// Query parameters that redirects add to the destination; null for none.
    #[schemars(extend("x-addition" = true))]
    pub query_template: Option<&'a str>,
    /// Whether scripts of pages on other origins may follow links.
    #[schemars(extend("x-addition" = true))]
    pub cross_origin: bool,
    /// Whether crawlers may follow all links, and not only those that say so.
    #[schemars(extend("x-addition" = true))]
    pub crawlable: bool,
    /// Whether visitors of links with a visit limit have to confirm that they want to go on.
    #[schemars(extend("x-addition" = true))]
    pub confirm_limited: bool,
    /// The Apple apps that open links, as `/.well-known/apple-app-site-association`; null for
    /// none.
    #[schemars(with = "AssociationOrNull", extend("x-addition" = true))]
    pub apple_app_site_association: Option<Value>,
    /// The Android apps that open links, as `/.well-known/assetlinks.json`; null for none.
    #[schemars(with = "StatementsOrNull", extend("x-addition" = true))]
    pub asset_links: Option<Value>,
}

/// Where a domain sends visitors that no link redirects; null for a page of this service.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DomainRedirects<'a> {
    /// The target from the domain itself.
    pub base_url_redirect: Option<&'a str>,
    /// The target from a path that cannot be a code.
    #[serde(rename = "regular404Redirect")]
    pub regular_404_redirect: Option<&'a str>,
    /// The target from a code without a link.
    pub invalid_short_url_redirect: Option<&'a str>,
}

/// All domains.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DomainList<'a> {
    /// The list.
    pub domains: DomainData<'a>,
}

/// The list of domains, and the redirects of those without settings.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DomainData<'a> {
    /// The domains, the default one first.
    pub data: Vec<Domain<'a>>,
    /// The redirects that the operator configured for all domains.
    pub default_redirects: DomainRedirects<'a>,
}

/// Where a domain sends visitors that no link redirects.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("required" = ["domain"]))]
pub struct DomainRedirectsEdit {
    /// The domain; `DEFAULT` for the default one.
    #[schemars(with = "String", length(max = Authority::MAX_LEN))]
    #[schemars(extend("format" = "authority", "examples" = ["sho.rt"]))]
    pub domain: Option<String>,
    /// The target from the domain itself: a URL with http or https, its host behind two slashes and
    /// without a user, or a path of the domain without a backslash; no control characters. Null or
    /// an empty text removes it.
    #[schemars(length(max = STRAY_TARGET_BYTES), extend("format" = "fallback-target"))]
    pub base_url_redirect: Patch<String>,
    /// The target from a path that cannot be a code, likewise.
    #[serde(rename = "regular404Redirect")]
    #[schemars(length(max = STRAY_TARGET_BYTES), extend("format" = "fallback-target"))]
    pub regular_404_redirect: Patch<String>,
    /// The target from a code without a link, likewise.
    #[schemars(length(max = STRAY_TARGET_BYTES), extend("format" = "fallback-target"))]
    pub invalid_short_url_redirect: Patch<String>,
}

/// A partial update of a domain.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true))]
pub struct DomainEdit {
    /// The new name: a host name with or without a port.
    #[schemars(with = "String", length(max = Authority::MAX_LEN))]
    #[schemars(extend("format" = "authority", "examples" = ["sho.rt"]))]
    pub domain: Patch<String>,
    /// Whether the domain's links redirect.
    pub enabled: Patch<Flag>,
    /// Whether visits of the domain keep what is known about the visitor. If not, they are only
    /// counted.
    pub track_visitors: Patch<Flag>,
    /// The scheme of short URLs; null for that of `--public-url`.
    #[schemars(with = "ProtocolOrNull")]
    pub protocol: Patch<String>,
    /// Whether a path in capitals finds a link in small letters. New slugs are kept in small
    /// letters; those that are there stay as they are.
    pub ignore_case: Patch<Flag>,
    /// Whether a link is found if a slash or a punctuation mark follows its name.
    pub ignore_trailing: Patch<Flag>,
    /// Whether the link named `*` answers every path that no other link has, which its `extraPath`
    /// has to accept.
    pub catch_all: Patch<Flag>,
    /// What a path behind a link's name does, unless the link says so; null to refuse it.
    #[schemars(with = "DomainExtraPathOrNull")]
    pub extra_path: Patch<String>,
    /// Where visitors of a link are led that has expired or whose visits are used up, unless the
    /// link says so: an absolute URL like a link's `longUrl`, and no short link of this domain.
    /// Null for what all codes without a link get.
    #[schemars(length(max = LongUrl::MAX_LEN), extend("format" = "iri"))]
    pub expired_url: Patch<String>,
    /// Query parameters that redirects add to the destination, unless the long URL or the visitor's
    /// query has them: `utm_source={domain}&utm_campaign={code}`. `{code}` is replaced by the code
    /// or slug of the link, and `{domain}` by the domain. Redirects of the domain then take
    /// slightly longer. Null for none.
    #[schemars(length(max = QueryTemplate::MAX_LEN), extend("format" = "query-template"))]
    pub query_template: Patch<String>,
    /// Whether scripts of pages on other origins may follow links (CORS). Then redirects of the
    /// domain take a little longer.
    pub cross_origin: Patch<Flag>,
    /// Whether crawlers may follow all links, and not only those that say so.
    pub crawlable: Patch<Flag>,
    /// Whether visitors of links with a visit limit have to confirm that they want to go on.
    /// Programs that open links ahead of a person then use up no visit.
    pub confirm_limited: Patch<Flag>,
    /// The Apple apps that open links: an object whose `applinks.details` list apps, each with
    /// `appIDs` or `appID`, and with `components` or `paths`; or a string with that JSON. At most
    /// 128 KiB without white space. Null for none.
    #[schemars(with = "AssociationOrNull")]
    pub apple_app_site_association: Patch<Value>,
    /// The Android apps that open links: a list of statements, each with `relation` and `target`,
    /// or with `include`; or a string with that JSON. At most 128 KiB without white space. Null for
    /// none.
    #[schemars(with = "StatementsOrNull")]
    pub asset_links: Patch<Value>,
}

/// The query that names the domain of a link.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DomainQuery {
    /// The domain of the link; without it, and with `DEFAULT`, the default one.
    pub domain: Option<String>,
}

/// The query that names a link.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["shortCode"]))]
pub struct LinkQuery {
    /// The code or slug of the link.
    #[schemars(with = "String", length(min = 1))]
    pub short_code: Option<String>,
    /// The domain of the link; without it, and with `DEFAULT`, the default one.
    pub domain: Option<String>,
}

/// The query of the list of domains.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DomainsQuery {
    /// Whether domains without links and settings are listed too; only for keys with the scope
    /// `admin` and without limits.
    #[schemars(with = "bool", extend("default" = false))]
    pub all: Flag,
}

inline_schema!(
    struct ProtocolOrNull,
    json_schema!({ "enum": [Protocol::Http.as_str(), Protocol::Https.as_str(), null] })
);

inline_schema!(
    struct AssociationOrNull,
    json_schema!({ "type": ["object", "null"], "required": ["applinks"] })
);

inline_schema!(
    struct StatementsOrNull,
    json_schema!({ "type": ["array", "null"], "items": { "type": "object" } })
);

inline_schema!(struct DomainExtraPathOrNull, {
    let names = ExtraPath::OF_DOMAINS.into_iter().map(|value| Some(value.as_str())).chain([None]);
    json_schema!({ "enum": names.collect::<Vec<_>>() })
});
