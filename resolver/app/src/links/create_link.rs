//! Creates a link with the next code, a custom slug or a code from a digest, or returns the earlier
//! link of the same request.

use std::fmt::Write as _;

use codes::{Code, KeyspaceIndex, hex};
use jiff::Timestamp;
use limits::ExceededShare;
use links::{
    Authority, Details, DetailsEdit, DomainId, Draft, ExternalId, Idempotency, PasswordHash, Record, Slug,
    Tag,
    api_key::{ApiKeyId, Grant},
    check_templates, quoted,
    scope::Scope,
};
use sha2::{Digest, Sha256};

use super::upsert::Upsert;
use crate::{
    Answer, AppError, Field, FieldErrors, LinkFields, LinkService,
    authorize::require,
    creator::{CodeChoice, CreateError, CreateOptions},
    find_link::LinkName,
    link_fields, values,
};

/// Length of a code from a digest, in characters, if the request sets none.
pub const DIGEST_LEN: usize = 8;
/// Maximum length of an idempotency key, in bytes.
pub const IDEMPOTENCY_KEY_BYTES: usize = 255;

/// A request for a new link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateLink {
    /// The fields that an edit has too.
    pub fields: LinkFields,
    /// A slug of the caller's choice.
    pub custom_slug: Option<String>,
    /// A prefix of the generated code.
    pub path_prefix: Option<String>,
    /// The length of the generated code, in characters.
    pub short_code_length: Option<u64>,
    /// The name of the keyspace that the code is minted from.
    pub keyspace: Option<String>,
    /// How the code is generated: `sequence` or `hash`.
    pub strategy: Option<String>,
    /// The link's domain; the default domain if `None`.
    pub domain: Option<String>,
    /// Whether an existing link for the URL may be returned.
    pub find_if_exists: bool,
    /// Whether the title is fetched from the page that the long URL leads to, if there is none.
    pub fetch_title: bool,
    /// The caller's own id of the link, which a request with the same id edits.
    pub external_id: Option<String>,
}

/// The idempotency key of a create (draft-ietf-httpapi-idempotency-key-header).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    key: String,
    fingerprint: String,
}

impl IdempotencyKey {
    /// Checks an idempotency key.
    ///
    /// `request` is a canonical form of the request without its password, because a digest that is
    /// quick to compute would reveal the password. The adapter derives it from the request on the
    /// wire, so that it is the same in all versions of this program.
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

    /// Returns the key of an item of a call for many, which has the call's key, at this place.
    /// `request` is the item in the form of [`IdempotencyKey::new`].
    pub fn of_item(&self, place: usize, request: impl AsRef<[u8]>) -> Self {
        // The key of a single create has no space.
        Self { key: format!("{place} {}", self.key), fingerprint: digest(request) }
    }
}

/// A create whose fields were checked, as far as that needs no database.
pub struct CheckedCreate {
    /// The link, without its domain and password.
    pub(super) draft: Draft,
    pub(super) options: CreateOptions,
    pub(super) domain: Option<Authority>,
    pub(super) password: Option<String>,
    pub(super) finds: bool,
    pub(super) fetches_title: bool,
    pub(super) idempotency: Option<IdempotencyKey>,
    pub(super) upsert: Option<Box<Upsert>>,
}

impl LinkService {
    /// Creates a link. A call with the same idempotency key and request returns the same link.
    pub fn create_link<'a>(
        &'a self,
        request: CreateLink,
        idempotency: Option<IdempotencyKey>,
        wrong: FieldErrors,
        by: &'a Grant,
    ) -> Answer<'a, Record> {
        Box::pin(async move {
            require(by, Scope::Create)?;
            let checked = CheckedCreate { idempotency, ..self.check_create(request, wrong, by.id)? };
            self.create_checked(checked, by).await
        })
    }

    /// Finds the existing link that answers a request: for its long URL, or under its custom slug.
    /// Nothing is created but an unknown domain.
    pub fn find_for_create<'a>(&'a self, request: CreateLink, by: &'a Grant) -> Answer<'a, Option<Record>> {
        Box::pin(async move {
            require(by, Scope::Create)?;
            let request = self.check_create(request, FieldErrors::default(), by.id)?;
            let (draft, options) = self.prepare(request, by).await?;
            self.find_existing(&draft, &options, by).await
        })
    }

    /// Checks a link that is stored under a reserved code. Such links have their own path into the
    /// database, which supports no custom slugs, tags, domains, passwords or deduplication.
    pub fn check_plain_create(
        &self,
        request: CreateLink,
        wrong: FieldErrors,
        by: ApiKeyId,
    ) -> Result<Draft, AppError> {
        let of_code = [
            (Field::CustomSlug, request.custom_slug.is_some()),
            (Field::PathPrefix, request.path_prefix.is_some()),
            (Field::ShortCodeLength, request.short_code_length.is_some()),
            (Field::Keyspace, request.keyspace.is_some()),
            (Field::Strategy, request.strategy.is_some()),
        ];
        let checked = self.check_create(request, wrong, by)?;
        let CheckedCreate { draft, options, domain, password, finds, fetches_title, upsert, .. } = checked;
        // Fields that ask for the next code of the default keyspace, in whichever way, are fine.
        let of_code = of_code.map(|(field, is_set)| (field, is_set && options.code != CodeChoice::Next));
        let others = [
            (Field::Tags, !options.tags.is_empty()),
            (Field::FindIfExists, finds),
            (Field::FetchTitle, fetches_title),
            (Field::Domain, domain.is_some()),
            (Field::Password, password.is_some()),
            (Field::ExternalId, upsert.is_some()),
        ];
        let mut wrong = FieldErrors::default();
        for (field, _) in of_code.into_iter().chain(others).filter(|(_, is_set)| *is_set) {
            wrong.add(field.name(), "cannot be set in a fill");
        }
        wrong.finish().map(|()| draft)
    }

    /// Hashes the password of a link. Few creates need it, so their futures have a pointer to this
    /// one.
    pub(crate) fn hash_password<'a>(&'a self, password: String, by: &'a Grant) -> Answer<'a, PasswordHash> {
        Box::pin(async move {
            let hashed = self.passwords.hash(by.id, password).await.ok_or(AppError::Unavailable)?;
            hashed.map_err(|error| AppError::invalid(Field::Password.name(), error.to_string()))
        })
    }

    pub(super) fn check_create(
        &self,
        mut request: CreateLink,
        mut wrong: FieldErrors,
        by: ApiKeyId,
    ) -> Result<CheckedCreate, AppError> {
        if request.fields.long_url.as_ref().is_none_or(Option::is_none) {
            wrong.add(Field::LongUrl.name(), Field::LongUrl.expected());
        }
        let code = self.check_code(&request, &mut wrong);
        let external_id = check_external_id(&request, &mut wrong);
        let password = request.fields.password.take().flatten();
        let mut edit = self.check_fields(request.fields, &mut wrong);
        let domain = request.domain.as_deref().map_or(Ok(None), |name| self.check_domain(name));
        let domain = wrong.check(Field::Domain, domain).flatten();
        let DetailsEdit { valid_since, valid_until, extra_path, .. } = &edit.details;
        link_fields::check_window(valid_since.flatten(), valid_until.flatten(), &mut wrong);
        let templates = check_templates(extra_path.flatten(), edit.long_url.as_ref(), []);
        wrong.check(Field::ExtraPath, templates.map_err(|error| error.to_string()));
        wrong.finish()?;
        let upsert = external_id.map(|id| Box::new(Upsert { id, edit: edit.clone() }));
        let options =
            CreateOptions { code, tags: edit.tags.take().unwrap_or_default(), ..CreateOptions::default() };
        let draft = Draft::from_edit(edit, by).ok_or(AppError::Internal)?;
        let (finds, fetches_title) = (request.find_if_exists, request.fetch_title);
        let idempotency = None;
        Ok(CheckedCreate { draft, options, domain, password, finds, fetches_title, idempotency, upsert })
    }

    /// Checks the fields of the code, and returns which code the link is to have. As in Shlink, a
    /// custom slug makes the other fields of the code irrelevant.
    fn check_code(&self, request: &CreateLink, wrong: &mut FieldErrors) -> CodeChoice {
        let prefix = request.path_prefix.as_deref().map_or(Ok(None), values::path_prefix);
        let prefix = prefix
            .and_then(|prefix| self.check_given(prefix.as_deref().unwrap_or_default()).map(|()| prefix));
        let prefix = wrong.check(Field::PathPrefix, prefix).flatten();
        let slug = request.custom_slug.as_deref();
        let slug = slug.map(|slug| values::custom_slug(slug, prefix.as_deref()));
        let slug = slug.map(|slug| slug.and_then(|slug| self.check_given(slug.as_str()).map(|()| slug)));
        let slug = slug.transpose();
        let slug = wrong.check(Field::CustomSlug, slug).flatten();
        let hashes = match request.strategy.as_deref() {
            None | Some("sequence") => Ok(false),
            Some("hash") => Ok(true),
            Some(_) => Err(Field::Strategy.expected()),
        };
        let hashes = wrong.check(Field::Strategy, hashes).unwrap_or_default();
        let len = request.short_code_length.map(link_fields::check_code_len).transpose();
        let len = wrong.check(Field::ShortCodeLength, len).flatten();
        let named = request.keyspace.as_deref();
        let named = named.map(|name| {
            let minting = self.creator.keyspace(Some(name)).ok_or_else(|| Field::Keyspace.expected());
            minting.map(|minting| minting.index)
        });
        let named = wrong.check(Field::Keyspace, named.transpose()).flatten();
        if let Some(slug) = slug {
            return CodeChoice::CustomSlug(slug);
        }
        if hashes || prefix.is_some() {
            if named.is_some() {
                let expected = "cannot be set together with the strategy hash or a prefix";
                wrong.add(Field::Keyspace.name(), expected);
            }
            let (prefix, len) = (prefix.unwrap_or_default(), len.unwrap_or(DIGEST_LEN));
            if prefix.len() + len > Slug::MAX_LEN {
                let expected = format!("expected at most {} with this prefix", Slug::MAX_LEN - prefix.len());
                wrong.add(Field::ShortCodeLength.name(), expected);
            }
            return CodeChoice::Digest { prefix, len };
        }
        match (named, len) {
            (Some(index), Some(len)) if self.lookup.mint.len_of(index) != Some(len) => {
                let has = self.lookup.mint.len_of(index).unwrap_or_default();
                let expected = format!("expected {has}, the length of this keyspace's codes, or no value");
                wrong.add(Field::ShortCodeLength.name(), expected);
                CodeChoice::Next
            }
            (Some(index), _) => self.next_of(index),
            // A code of a length that no keyspace has is not minted but comes from a digest (D2).
            // Codes longer than any keyspace's are so many that a random one is free; a digest
            // would try the codes of all links to the same URL. The default keyspace comes first.
            (None, Some(len)) => {
                let mut indexes = self.creator.config.mintings.iter().map(|minting| minting.index);
                match indexes.find(|index| self.lookup.mint.len_of(*index) == Some(len)) {
                    Some(index) => self.next_of(index),
                    None if len > Code::MAX_LEN => CodeChoice::Random { len },
                    None => CodeChoice::Digest { prefix: String::new(), len },
                }
            }
            (None, None) => CodeChoice::Next,
        }
    }

    /// Returns the request for the next code of a keyspace, in its canonical form for the default
    /// keyspace.
    fn next_of(&self, index: KeyspaceIndex) -> CodeChoice {
        let is_default = self.creator.keyspace(None).is_some_and(|minting| minting.index == index);
        if is_default { CodeChoice::Next } else { CodeChoice::In(index) }
    }

    /// Performs the lookups and computations that take time. The only thing that it stores is a new
    /// domain.
    pub(super) async fn prepare(
        &self,
        checked: CheckedCreate,
        by: &Grant,
    ) -> Result<(Draft, CreateOptions), AppError> {
        let CheckedCreate { mut draft, mut options, domain, password, finds, .. } = checked;
        let mut details = draft.details.take().map_or_else(Details::default, |details| *details);
        details.domain = self.domain_for_new_link(domain, by).await?;
        let on = details.domain.unwrap_or(DomainId::DEFAULT);
        match &mut options.code {
            CodeChoice::CustomSlug(slug) => {
                *slug = self.slug_on(on, slug).await?;
                self.refuse_circle(Field::LongUrl, [&draft.long_url], on, slug.as_str())?;
                self.refuse_circle(Field::ExpiredUrl, &details.expired_url, on, slug.as_str())?;
                self.check_unclaimed(slug.as_str(), on, by).await?;
            }
            CodeChoice::Digest { prefix, len } if !prefix.is_empty() => {
                *prefix = self.prefix_on(on, prefix, *len).await?;
                self.check_unclaimed_below(prefix, on, by).await?;
            }
            _ => {}
        }
        if finds && password.is_some() {
            // Otherwise a caller could find out an existing link's password.
            let expected = "cannot be set together with findIfExists";
            return Err(AppError::invalid(Field::Password.name(), expected));
        }
        if let Some(password) = password {
            details.password = Some(self.hash_password(password, by).await?);
        }
        if matches!(options.code, CodeChoice::Digest { .. }) {
            options.tenant = by.tenant();
        }
        if finds {
            let digest = digest_of_request(draft.long_url.as_str(), &details, &options, by);
            options.idempotency =
                Some(Idempotency { digest, lifetime: self.policy.find_existing_for, fingerprint: None });
        } else if let Some(Upsert { id, .. }) = checked.upsert.map(|upsert| *upsert) {
            // It makes the request repeatable by itself, and the idempotency key has no part in it.
            options.idempotency = Some(id.entry(by.id));
            details.external_id = Some(id);
        } else if let Some(IdempotencyKey { key, fingerprint }) = checked.idempotency {
            let ApiKeyId(id) = by.id;
            options.idempotency = Some(Idempotency {
                digest: digest(format!("[\"idempotency\",{id},{}]", quoted(&key))),
                lifetime: self.policy.idempotency_for,
                fingerprint: Some(fingerprint),
            });
        }
        draft.details = (!details.is_empty()).then(|| Box::new(details));
        Ok((draft, options))
    }

    pub(super) async fn create(
        &self,
        draft: Draft,
        options: CreateOptions,
        by: &Grant,
    ) -> Result<Record, AppError> {
        if finds_existing(&options)
            && let Some(found) = self.find_existing(&draft, &options, by).await?
        {
            return Ok(found);
        }
        let retry = finds_existing(&options).then(|| (draft.clone(), options.clone()));
        let slug = match &options.code {
            CodeChoice::CustomSlug(slug) => slug.to_string(),
            _ => String::new(),
        };
        let (domain, has_key) = (draft.domain(), options.idempotency.is_some());
        // It may be a reserved code, which only a fill stores a link under.
        let reserved = match &options.code {
            CodeChoice::CustomSlug(slug) if !has_key && self.lookup.id_of(slug.as_str()).is_some() => {
                Some((slug.clone(), (draft.clone(), options.tags.clone())))
            }
            _ => None,
        };
        match self.creator.create(draft, options).await {
            Ok(created) if has_key => self.given(created, by).await,
            Ok(created) => Ok(created),
            Err(CreateError::Taken) => {
                if let Some((slug, link)) = reserved
                    && let Some(filled) = self.fill_slug(&slug, link, by).await?
                {
                    return Ok(filled);
                }
                // A concurrent create of the same link may have been faster.
                let found = match retry {
                    Some((draft, options)) => self.find_existing(&draft, &options, by).await?,
                    None => None,
                };
                found.ok_or_else(|| self.slug_taken(&slug, domain))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the link of a create that may be a repetition: as it is by now, and only if the key
    /// still sees it.
    fn given<'a>(&'a self, mut record: Record, by: &'a Grant) -> Answer<'a, Record> {
        Box::pin(async move {
            if !by.may_be_given(&record.link) {
                let code = self.lookup.name_of(&record.link).unwrap_or_default();
                return Err(self.no_link(&LinkName { code, domain: None }));
            }
            if record.link.version() > 0 {
                let _turn = self.turns.writes.take(by.id).await?;
                record.tags = self.store.tags_of(record.link.id).await?;
            }
            Ok(record)
        })
    }
}

/// Checks the caller's id of a link, and that nothing else decides which link the request gets.
fn check_external_id(request: &CreateLink, wrong: &mut FieldErrors) -> Option<ExternalId> {
    let text = request.external_id.as_deref()?;
    let others = [
        (Field::FindIfExists, request.find_if_exists),
        // A hash is new each time, so each request would be an edit.
        (Field::Password, request.fields.password.as_ref().is_some_and(Option::is_some)),
    ];
    for (field, _) in others.into_iter().filter(|(_, is_set)| *is_set) {
        wrong.add(field.name(), "cannot be set together with externalId");
    }
    wrong.check(Field::ExternalId, ExternalId::parse(text).map_err(|error| error.to_string()))
}

impl From<CreateError> for AppError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Exhausted => Self::Exhausted,
            CreateError::KeyReused => Self::IdempotencyKeyReused,
            CreateError::PermitTimeout => Self::TooMuchAtOnce(ExceededShare::Own),
            CreateError::Taken => Self::SlugTaken(LinkName { code: String::new(), domain: None }),
            // If the domain was removed, a retry finds that out.
            CreateError::Unavailable | CreateError::NoStore => Self::Unavailable,
        }
    }
}

/// Returns whether an existing link may answer the request.
fn finds_existing(options: &CreateOptions) -> bool {
    options.idempotency.as_ref().is_some_and(|idempotency| idempotency.fingerprint.is_none())
}

/// Returns a digest of the fields by which two requests are the same, as in Shlink: the long URL
/// and the other fields that are set, except the title and the two flags.
///
/// The digest is stored, so the format of its input must not change: an array in JSON notation,
/// where new members are appended.
fn digest_of_request(long_url: &str, details: &Details, options: &CreateOptions, by: &Grant) -> String {
    let mut tags: Vec<&str> = options.tags.iter().map(Tag::as_str).collect();
    tags.sort_unstable();
    let tags: Vec<String> = tags.into_iter().map(quoted).collect();
    let or_null = |number: Option<String>| number.unwrap_or_else(|| "null".to_owned());
    let time = |time: Option<Timestamp>| or_null(time.map(|time| time.as_millisecond().to_string()));
    let code = match &options.code {
        CodeChoice::Next => "null".to_owned(),
        CodeChoice::In(index) => format!("[\"keyspace\",{}]", index.get()),
        CodeChoice::CustomSlug(slug) => format!("[\"picked\",{}]", quoted(slug.as_str())),
        CodeChoice::Random { len } => format!("[\"random\",{len}]"),
        CodeChoice::Digest { prefix, len } if prefix.is_empty() => format!("[\"digest\",{len}]"),
        CodeChoice::Digest { prefix, len } => format!("[\"digest\",{len},{}]", quoted(prefix)),
    };
    let mut text = format!(
        "[{},[{}],[{},{},{}],{code}",
        quoted(long_url),
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
    if let Some(extra_path) = details.extra_path {
        let _ = write!(text, ",[\"extraPath\",\"{}\"]", extra_path.as_str());
    }
    if let Some(url) = &details.expired_url {
        let _ = write!(text, ",[\"expiredUrl\",{}]", quoted(url.as_str()));
    }
    text.push(']');
    digest(text)
}

fn digest(text: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(text))
}
