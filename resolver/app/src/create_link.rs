//! Creates a link: with the next code, a custom slug, a code from a digest, or the link that was
//! made for the same request before.

use std::fmt::Write as _;

use codes::{Code, KeyspaceIndex};
use jiff::Timestamp;
use links::{
    Authority, Details, DomainId, Draft, Idempotency, PasswordHash, Record, Slug, Tag,
    api_key::{ApiKeyId, Grant},
    scope::Scope,
};
use sha2::{Digest, Sha256};

use super::{
    AppError, Field, FieldErrors, InvalidField, LinkService, authorize::require, values, values::Checked,
};
use crate::creator::{CodeWish, CreateError, Wishes};

/// Characters of a code from a digest, unless asked otherwise.
pub const DIGEST_LEN: usize = 8;
/// Bytes of an idempotency key.
pub const IDEMPOTENCY_KEY_BYTES: usize = 255;

/// A request for a new link. `None` stands for a field that is absent or null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateLink {
    /// Where the link leads: an absolute URL.
    pub long_url: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// A text for people.
    pub description: Option<String>,
    /// Tags, at most a hundred.
    pub tags: Vec<String>,
    /// The link does not redirect before this time.
    pub valid_since: Option<Timestamp>,
    /// The link does not redirect from this time on.
    pub valid_until: Option<Timestamp>,
    /// How many visits the link redirects.
    pub max_visits: Option<u64>,
    /// Whether robots may follow the link; `false` unless set.
    pub crawlable: Option<bool>,
    /// Whether the visitor's query goes along; `true` unless set.
    pub forward_query: Option<bool>,
    /// Whether the link redirects; `true` unless set.
    pub enabled: Option<bool>,
    /// The status of redirects: 301, 302, 307 or 308.
    pub redirect_status: Option<u64>,
    /// The password that visitors are asked for.
    pub password: Option<String>,
    /// A slug of the caller.
    pub custom_slug: Option<String>,
    /// A prefix of the code.
    pub path_prefix: Option<String>,
    /// Characters of the code.
    pub short_code_length: Option<u64>,
    /// The name of the keyspace of the code.
    pub keyspace: Option<String>,
    /// How the code comes about: `sequence` or `hash`.
    pub strategy: Option<String>,
    /// The domain; the default one unless set.
    pub domain: Option<String>,
    /// Whether a link that exists already for the URL will do.
    pub find_if_exists: bool,
}

/// The idempotency key of a create (draft-ietf-httpapi-idempotency-key-header).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    key: String,
    fingerprint: String,
}

impl IdempotencyKey {
    /// Checks a key. `request` is a canonical form of the request without its password, since a
    /// digest that is quick to compute would give a password away. The adapter makes it from the
    /// request on the wire, so that it is the same in all versions of this program.
    ///
    /// # Errors
    /// Returns [`AppError::Invalid`] for a key that is empty, too long or not visible ASCII.
    pub fn new(key: &[u8], request: impl AsRef<[u8]>) -> Result<Self, AppError> {
        let fits = |key: &&str| {
            (1..=IDEMPOTENCY_KEY_BYTES).contains(&key.len())
                && key.bytes().all(|byte| byte.is_ascii_graphic())
        };
        match std::str::from_utf8(key).ok().filter(fits) {
            Some(key) => Ok(Self { key: key.to_owned(), fingerprint: digest(request) }),
            None => {
                let expected = format!("expected 1 to {IDEMPOTENCY_KEY_BYTES} visible ASCII characters");
                Err(AppError::invalid("Idempotency-Key", expected))
            }
        }
    }
}

/// A checked request.
struct Request {
    draft: Draft,
    /// The draft's, before its domain and password are known.
    details: Details,
    wishes: Wishes,
    domain: Option<Authority>,
    password: Option<String>,
    finds: bool,
}

/// How a code comes about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Strategy {
    #[default]
    Sequence,
    Hash,
}

impl Strategy {
    fn parse(name: &str) -> Checked<Self> {
        match name {
            "sequence" => Ok(Self::Sequence),
            "hash" => Ok(Self::Hash),
            _ => Err(Field::Strategy.expected()),
        }
    }
}

impl LinkService {
    /// Creates a link. A call with the same idempotency key and request returns the same link.
    /// `wrong` holds the fields that the adapter could not read.
    pub async fn create_link(
        &self,
        request: CreateLink,
        idempotency: Option<IdempotencyKey>,
        wrong: FieldErrors,
        by: &Grant,
    ) -> Result<Record, AppError> {
        require(by, Scope::Create)?;
        let request = self.check_create(request, wrong, by.id)?;
        let (draft, wishes) = self.prepare(request, idempotency, by).await?;
        self.create(draft, wishes, by).await
    }

    /// Checks a link of a call for many, which has a path of its own into the database: without
    /// custom slugs, tags, domains, passwords and deduplication.
    pub fn check_plain_create(
        &self,
        request: CreateLink,
        wrong: FieldErrors,
        by: ApiKeyId,
    ) -> Result<Draft, AppError> {
        let (names_keyspace, hashes) =
            (request.keyspace.is_some(), request.strategy.as_deref() == Some("hash"));
        let Request { draft, details, wishes, domain, password, finds } =
            self.check_create(request, wrong, by)?;
        let set = [
            (field_of_code(&wishes.code, names_keyspace, hashes), wishes.code != CodeWish::Next),
            (Field::Tags, !wishes.tags.is_empty()),
            (Field::FindIfExists, finds),
            (Field::Domain, domain.is_some()),
            (Field::Password, password.is_some()),
        ];
        let invalid = |field: Field| InvalidField {
            field: field.name().to_owned(),
            expected: "expected no value in a call for many links".to_owned(),
        };
        let invalid: Vec<_> =
            set.into_iter().filter(|(_, is_set)| *is_set).map(|(field, _)| invalid(field)).collect();
        if invalid.is_empty() { Ok(with_details(draft, details)) } else { Err(AppError::Invalid(invalid)) }
    }

    /// Hashes the password of a link.
    pub(super) async fn hash_password(&self, password: String, by: &Grant) -> Result<PasswordHash, AppError> {
        let hashed = self.passwords.hash(by.id, password).await.ok_or(AppError::Unavailable)?;
        hashed.map_err(|error| AppError::invalid(Field::Password.name(), error.to_string()))
    }

    fn check_create(
        &self,
        request: CreateLink,
        mut wrong: FieldErrors,
        by: ApiKeyId,
    ) -> Result<Request, AppError> {
        let url = request.long_url.as_deref().ok_or_else(|| Field::LongUrl.expected());
        let long_url = wrong.check(Field::LongUrl, url.and_then(|url| self.check_long_url(url)));
        let mut wishes = Wishes { code: self.check_code(&request, &mut wrong), ..Wishes::default() };
        let title = request.title.as_deref().map_or(Ok(None), values::title);
        let title = wrong.check(Field::Title, title).flatten();
        let description = request.description.as_deref().map_or(Ok(None), values::description);
        wishes.tags = wrong.check(Field::Tags, values::tags(&request.tags)).unwrap_or_default();
        let details = Details {
            description: wrong.check(Field::Description, description).flatten(),
            valid_since: request.valid_since,
            valid_until: request.valid_until,
            max_visits: wrong
                .check(Field::MaxVisits, request.max_visits.map(values::max_visits).transpose())
                .flatten(),
            status: wrong
                .check(
                    Field::RedirectStatus,
                    request.redirect_status.map(values::redirect_status).transpose(),
                )
                .flatten(),
            disabled: !request.enabled.unwrap_or(true),
            ..Details::default()
        };
        let domain = request.domain.as_deref().map_or(Ok(None), |name| self.check_domain(name));
        let domain = wrong.check(Field::Domain, domain).flatten();
        values::window(details.valid_since, details.valid_until, &mut wrong);
        wrong.finish()?;
        let draft = Draft {
            long_url: long_url.ok_or(AppError::Internal)?,
            title,
            crawlable: request.crawlable.unwrap_or(false),
            forward_query: request.forward_query.unwrap_or(true),
            created_by: by,
            details: None,
        };
        let (password, finds) = (request.password, request.find_if_exists);
        Ok(Request { draft, details, wishes, domain, password, finds })
    }

    /// Checks which code the link is to have. As in Shlink, a custom slug makes the other fields of
    /// the code irrelevant.
    fn check_code(&self, request: &CreateLink, wrong: &mut FieldErrors) -> CodeWish {
        let prefix = request.path_prefix.as_deref().map_or(Ok(None), values::path_prefix);
        let prefix = wrong.check(Field::PathPrefix, prefix).flatten();
        let slug = request.custom_slug.as_deref();
        let slug = slug.map(|slug| values::custom_slug(slug, prefix.as_deref())).transpose();
        let slug = wrong.check(Field::CustomSlug, slug).flatten();
        let strategy = request.strategy.as_deref().map_or(Ok(Strategy::default()), Strategy::parse);
        let strategy = wrong.check(Field::Strategy, strategy).unwrap_or_default();
        let len = request.short_code_length.map(values::code_len).transpose();
        let len = wrong.check(Field::ShortCodeLength, len).flatten();
        let named = request.keyspace.as_deref();
        let named = named.map(|name| self.creator.keyspace(name).ok_or_else(|| Field::Keyspace.expected()));
        let named = wrong.check(Field::Keyspace, named.transpose()).flatten();
        if let Some(slug) = slug {
            return CodeWish::Picked(slug);
        }
        if strategy == Strategy::Hash || prefix.is_some() {
            if named.is_some() {
                let expected = "expected no value with the strategy hash or a prefix".to_owned();
                wrong.check::<()>(Field::Keyspace, Err(expected));
            }
            let (prefix, len) = (prefix.unwrap_or_default(), len.unwrap_or(DIGEST_LEN));
            if prefix.len() + len > Slug::MAX_LEN {
                let expected = format!("expected at most {} with this prefix", Slug::MAX_LEN - prefix.len());
                wrong.check::<()>(Field::ShortCodeLength, Err(expected));
            }
            return CodeWish::Digest { prefix, len };
        }
        match (named, len) {
            (Some(index), Some(len)) if self.creator.code_len(index) != Some(len) => {
                let has = self.creator.code_len(index).unwrap_or_default();
                let expected = format!("expected {has}, the length of this keyspace's codes, or no value");
                wrong.check::<()>(Field::ShortCodeLength, Err(expected));
                CodeWish::Next
            }
            (Some(index), _) => self.next_of(index),
            // Codes of a length that no keyspace has are not minted but come from a digest (D2).
            // Those that are longer than any keyspace's are so many that a random one is free: a
            // digest would go through all links of the same URL.
            (None, Some(len)) => match self.creator.keyspace_of_len(len) {
                Some(index) => self.next_of(index),
                None if len > Code::MAX_LEN => CodeWish::Random { len },
                None => CodeWish::Digest { prefix: String::new(), len },
            },
            (None, None) => CodeWish::Next,
        }
    }

    /// The next code of a keyspace, which for the default one is also what no wish gives.
    fn next_of(&self, index: KeyspaceIndex) -> CodeWish {
        if index == self.creator.default_keyspace() { CodeWish::Next } else { CodeWish::In(index) }
    }

    /// Looks up and computes what takes time. Nothing is stored yet but a new domain.
    async fn prepare(
        &self,
        request: Request,
        idempotency: Option<IdempotencyKey>,
        by: &Grant,
    ) -> Result<(Draft, Wishes), AppError> {
        let Request { draft, mut details, mut wishes, domain, password, finds } = request;
        details.domain = self.domain_for_new_link(domain, by).await?;
        if let CodeWish::Picked(slug) = &wishes.code {
            let domain = details.domain.unwrap_or(DomainId::DEFAULT);
            self.refuse_circle([&draft.long_url], domain, slug.as_str())?;
        }
        if let Some(password) = password {
            // Boxed, because few creates need it and it would make the futures of all creates larger.
            details.password = Some(Box::pin(self.hash_password(password, by)).await?);
        }
        if finds {
            if details.password.is_some() {
                // An existing link's password must not be found out this way.
                let expected = "expected no password together with findIfExists";
                return Err(AppError::invalid(Field::Password.name(), expected));
            }
            let digest = digest_of_wish(draft.long_url.as_str(), &details, &wishes, by);
            wishes.idempotency =
                Some(Idempotency { digest, lifetime: self.policy.find_existing_for, fingerprint: None });
        } else if let Some(IdempotencyKey { key, fingerprint }) = idempotency {
            let ApiKeyId(id) = by.id;
            wishes.idempotency = Some(Idempotency {
                digest: digest(format!("[\"idempotency\",{id},{}]", Quoted(&key))),
                lifetime: self.policy.idempotency_for,
                fingerprint: Some(fingerprint),
            });
        }
        Ok((with_details(draft, details), wishes))
    }

    async fn create(&self, draft: Draft, wishes: Wishes, by: &Grant) -> Result<Record, AppError> {
        if finds_existing(&wishes)
            && let Some(found) = Box::pin(self.find_existing(&draft, &wishes, by)).await?
        {
            self.creator.wait_until_shown(&found.link).await;
            return Ok(found);
        }
        let retry = finds_existing(&wishes).then(|| (draft.clone(), wishes.clone()));
        let slug = match &wishes.code {
            CodeWish::Picked(slug) => slug.to_string(),
            _ => String::new(),
        };
        let domain = draft.domain();
        match self.creator.create_full(draft, wishes).await {
            Ok(created) => Ok(created),
            Err(CreateError::Taken) => {
                // Another create of the same link may have been faster.
                let found = match retry {
                    Some((draft, wishes)) => Box::pin(self.find_existing(&draft, &wishes, by)).await?,
                    None => None,
                };
                if let Some(found) = &found {
                    self.creator.wait_until_shown(&found.link).await;
                }
                let domain = self.directory.shown_name(domain);
                found.ok_or(AppError::SlugTaken { slug, domain })
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl From<CreateError> for AppError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Exhausted => Self::Exhausted,
            CreateError::KeyReused => Self::IdempotencyKeyReused,
            CreateError::NoTurn(none) => none.into(),
            CreateError::Taken => Self::SlugTaken { slug: String::new(), domain: None },
            // After `NoDomain`, a retry finds that the domain was removed.
            CreateError::NoNumber
            | CreateError::NoStore
            | CreateError::Overloaded
            | CreateError::NoDomain => Self::Unavailable,
        }
    }
}

/// Whether an existing link may answer the request.
fn finds_existing(wishes: &Wishes) -> bool {
    wishes.idempotency.as_ref().is_some_and(|idempotency| idempotency.fingerprint.is_none())
}

/// Adds the details to a draft, if there are any.
fn with_details(draft: Draft, details: Details) -> Draft {
    Draft { details: (!details.is_empty()).then(|| Box::new(details)), ..draft }
}

/// The field that asked for a code other than the next one.
fn field_of_code(code: &CodeWish, names_keyspace: bool, hashes: bool) -> Field {
    match code {
        CodeWish::Next | CodeWish::Picked(_) => Field::CustomSlug,
        CodeWish::In(_) if names_keyspace => Field::Keyspace,
        CodeWish::Digest { prefix, .. } if !prefix.is_empty() => Field::PathPrefix,
        CodeWish::Digest { .. } if hashes => Field::Strategy,
        CodeWish::In(_) | CodeWish::Digest { .. } | CodeWish::Random { .. } => Field::ShortCodeLength,
    }
}

/// Digests what makes two requests the same, as in Shlink: the long URL and those of the other
/// fields that are set, but not the title and the two flags.
///
/// The digest is stored, so its input stays as it was first written: an array in the notation of
/// JSON, with members added at the end.
fn digest_of_wish(long_url: &str, details: &Details, wishes: &Wishes, by: &Grant) -> String {
    let mut tags: Vec<&str> = wishes.tags.iter().map(Tag::as_str).collect();
    tags.sort_unstable();
    let tags: Vec<String> = tags.into_iter().map(|tag| Quoted(tag).to_string()).collect();
    let or_null = |number: Option<String>| number.unwrap_or_else(|| "null".to_owned());
    let time = |time: Option<Timestamp>| or_null(time.map(|time| time.as_millisecond().to_string()));
    let code = match &wishes.code {
        CodeWish::Next => "null".to_owned(),
        CodeWish::In(index) => format!("[\"keyspace\",{}]", index.get()),
        CodeWish::Picked(slug) => format!("[\"picked\",{}]", Quoted(slug.as_str())),
        CodeWish::Random { len } => format!("[\"random\",{len}]"),
        CodeWish::Digest { prefix, len } if prefix.is_empty() => format!("[\"digest\",{len}]"),
        CodeWish::Digest { prefix, len } => format!("[\"digest\",{len},{}]", Quoted(prefix)),
    };
    let mut text = format!(
        "[{},[{}],[{},{},{}],{code}",
        Quoted(long_url),
        tags.join(","),
        time(details.valid_since),
        time(details.valid_until),
        or_null(details.max_visits.map(|count| count.to_string())),
    );
    if let Some(domain) = details.domain {
        let _ = write!(text, ",[\"domain\",{}]", domain.get());
    }
    if let Some(status) = details.status {
        let _ = write!(text, ",[\"status\",{}]", u16::from(status));
    }
    if details.disabled {
        text.push_str(",\"disabled\"");
    }
    if by.finds_own_only() {
        let ApiKeyId(id) = by.id;
        let _ = write!(text, ",[\"by\",{id}]");
    }
    text.push(']');
    digest(text)
}

fn digest(text: impl AsRef<[u8]>) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A string in the notation of JSON (RFC 8259, section 7).
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => to.write_str("\\\"")?,
                '\\' => to.write_str("\\\\")?,
                '\u{8}' => to.write_str("\\b")?,
                '\u{c}' => to.write_str("\\f")?,
                '\n' => to.write_str("\\n")?,
                '\r' => to.write_str("\\r")?,
                '\t' => to.write_str("\\t")?,
                control if u32::from(control) < 0x20 => write!(to, "\\u{:04x}", u32::from(control))?,
                other => to.write_char(other)?,
            }
        }
        to.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_quoted_as_json_quotes_them(text in any::<String>()) {
            prop_assert_eq!(Quoted(&text).to_string(), serde_json::json!(text).to_string());
        }
    }
}
