//! Creates many links in batches. Such links have their own path into the database, which supports
//! no custom slugs, tags, domains, passwords or deduplication.

use links::{Draft, api_key::ApiKeyId};

use crate::{
    AppError, Field, FieldErrors, LinkService,
    create_link::{CreateLink, Request},
    creator::CodeChoice,
};

impl LinkService {
    /// Checks a link of a call for many.
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
        let Request { draft, options, domain, password, finds } = self.check_create(request, wrong, by)?;
        // Fields that ask for the next code of the default keyspace, in whichever way, are fine.
        let of_code = of_code.map(|(field, is_set)| (field, is_set && options.code != CodeChoice::Next));
        let others = [
            (Field::Tags, !options.tags.is_empty()),
            (Field::FindIfExists, finds),
            (Field::Domain, domain.is_some()),
            (Field::Password, password.is_some()),
        ];
        let mut wrong = FieldErrors::default();
        for (field, _) in of_code.into_iter().chain(others).filter(|(_, is_set)| *is_set) {
            wrong.check::<()>(field, Err("cannot be set in a call for many links".to_owned()));
        }
        wrong.finish().map(|()| draft)
    }
}
