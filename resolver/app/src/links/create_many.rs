//! Creates many links in batches. Such links have their own path into the database, which supports
//! no custom slugs, tags, domains, passwords or deduplication.

use links::{
    Draft,
    api_key::{ApiKeyId, Grant},
    scope::Scope,
};

use crate::{
    AppError, Field, FieldErrors, InvalidField, LinkService,
    authorize::require,
    create_link::{CreateLink, Request},
    creator::{CodeChoice, CreateError, Created},
};

impl LinkService {
    /// Checks that a key may create many links in one call. Links of a domain other than the
    /// default one are created one by one.
    ///
    /// # Errors
    /// Returns [`AppError::Forbidden`] without the scope `create`, and [`AppError::OneDomainOnly`]
    /// for a key of another domain.
    pub fn may_create_many(&self, by: &Grant) -> Result<(), AppError> {
        require(by, Scope::Create)?;
        let is_other = by.limits.domain.is_some_and(|domain| !domain.is_default());
        if is_other { Err(AppError::OneDomainOnly) } else { Ok(()) }
    }

    /// Checks a link of a call for many. `wrong` holds the fields that the adapter could not read.
    ///
    /// # Errors
    /// Returns [`AppError::Invalid`] with every wrong or unsupported field.
    pub fn check_plain_create(
        &self,
        request: CreateLink,
        wrong: FieldErrors,
        by: ApiKeyId,
    ) -> Result<Draft, AppError> {
        let (names_keyspace, hashes) =
            (request.keyspace.is_some(), request.strategy.as_deref() == Some("hash"));
        let Request { draft, options, domain, password, finds } = self.check_create(request, wrong, by)?;
        let set = [
            (field_of_code(&options.code, names_keyspace, hashes), options.code != CodeChoice::Next),
            (Field::Tags, !options.tags.is_empty()),
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
        if invalid.is_empty() { Ok(draft) } else { Err(AppError::Invalid(invalid)) }
    }

    /// Creates links with the next codes of the default keyspace. The outcomes are in the order of
    /// `drafts`.
    pub async fn create_many(&self, drafts: Vec<Draft>) -> Vec<Result<Created, CreateError>> {
        self.creator.create_many(drafts).await
    }
}

/// Returns the field that asked for a code other than the next one.
fn field_of_code(code: &CodeChoice, names_keyspace: bool, hashes: bool) -> Field {
    match code {
        CodeChoice::Next | CodeChoice::Picked(_) => Field::CustomSlug,
        CodeChoice::In(_) if names_keyspace => Field::Keyspace,
        CodeChoice::Digest { prefix, .. } if !prefix.is_empty() => Field::PathPrefix,
        CodeChoice::Digest { .. } if hashes => Field::Strategy,
        CodeChoice::In(_) | CodeChoice::Digest { .. } | CodeChoice::Random { .. } => Field::ShortCodeLength,
    }
}
