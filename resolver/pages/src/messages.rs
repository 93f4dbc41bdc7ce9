//! Errors of use cases in the words of a language.

use app::{AppError, InvalidField};
use links::{audit::NotUndone, reservation::COUNT_MAX};

use crate::locale::Locale;

/// Returns the text of an error of the application. What no page can cause is in English.
pub(crate) fn message(error: &AppError, t: &Locale) -> String {
    match error {
        AppError::Invalid(fields) => {
            fields.iter().map(|field| expected(field, t)).collect::<Vec<_>>().join(" ")
        }
        AppError::NoDomain(name) => t.with("error-no-domain", name),
        AppError::MayNotAddDomain(name) => t.with("error-may-not-add-domain", name),
        AppError::DomainTaken(name) => t.with("error-domain-taken", name),
        AppError::DomainInUse { name, .. } => t.with("error-domain-in-use", name),
        AppError::NoTag(tag) => t.with("error-no-tag", tag),
        AppError::TagConflict { new, .. } => t.with("error-tag-taken", new),
        AppError::NoTarget(pattern) => t.with("error-no-target", pattern),
        AppError::NoReservation(id) => t.with("error-no-reservation", id),
        AppError::TooManyReserved { held, most } => {
            t.with_two("error-too-many-codes", t.number(held), t.number(most))
        }
        AppError::TooManyReservations { held, most } => {
            t.with_two("error-too-many-reservations", t.number(held), t.number(most))
        }
        AppError::NoScheduledEdit(_) => t.text("error-no-scheduled-edit"),
        AppError::TooManyScheduledEdits(most) => t.with("error-too-many-scheduled", most.to_string()),
        AppError::NoWebhook(_) => t.text("error-no-webhook"),
        AppError::NoDelivery(_) => t.text("error-no-delivery"),
        AppError::TooManyWebhooks(most) => t.with("error-too-many-webhooks", most.to_string()),
        AppError::WebhookDisabled(_) => t.text("error-webhook-disabled"),
        AppError::Forbidden(scope) => t.with("error-forbidden", scope.as_str()),
        AppError::LimitedKey => t.text("error-limited-key"),
        AppError::NoLink(name) => t.with("error-no-link", &name.code),
        AppError::SlugTaken(name) => t.with("error-slug-taken", &name.code),
        AppError::IdempotencyKeyReused => t.text("error-form-reused"),
        AppError::Superseded => t.text("error-superseded"),
        AppError::Blocked => t.text("error-blocked"),
        AppError::NotUndone(why) => not_undone(why, t),
        AppError::Exhausted => t.text("error-exhausted"),
        AppError::TooMuchAtOnce(_) => t.text("too-much-text"),
        AppError::SlowList => t.text("error-slow-list"),
        AppError::Unavailable => t.text("error-unavailable"),
        AppError::Internal => t.text("error-internal"),
        other => other.to_string(),
    }
}

fn not_undone(why: &NotUndone, t: &Locale) -> String {
    let names = |fields: &[String]| {
        let names: Vec<String> = fields.iter().map(|name| logged_field(name, t)).collect();
        names.join(", ")
    };
    match why {
        NotUndone::NoEntry => t.text("error-undo-no-entry"),
        NotUndone::NotAnEdit => t.text("error-undo-no-edit"),
        NotUndone::ChangedAgain(fields) => t.with("error-undo-changed-again", names(fields)),
        NotUndone::Irrevocable(fields) => t.with("error-undo-irrevocable", names(fields)),
    }
}

/// Returns the name of a field: one of the log, of a form, of a domain, or that of the API.
pub(crate) fn logged_field(name: &str, t: &Locale) -> String {
    let known =
        ["audit-field-", "field-", "domains-"].iter().find_map(|kind| t.try_text(&format!("{kind}{name}")));
    known.unwrap_or_else(|| name.to_owned())
}

/// Returns what a field expects: the text of the language, or else that of the application.
pub(crate) fn expected(field: &InvalidField, t: &Locale) -> String {
    let name = field.field.split(['.', '[']).next().unwrap_or_default();
    match name {
        "count" => t.with("expected-count", t.number(&COUNT_MAX)),
        "(the fields)" => t.text("expected-any-field"),
        _ if name.ends_with("Redirect") => {
            t.with("expected-redirect", t.try_text(&format!("domains-{name}")).unwrap_or_default())
        }
        _ => t
            .try_text(&format!("expected-{name}"))
            .unwrap_or_else(|| format!("{}: {}", field.field, field.expected)),
    }
}

pub(crate) fn wrong_fields(error: &AppError) -> Vec<String> {
    let name = match error {
        AppError::Invalid(fields) => return fields.iter().map(|field| field.field.clone()).collect(),
        AppError::SlugTaken { .. } => "customSlug",
        AppError::DomainTaken { .. } => "name",
        AppError::TooManyReserved { .. } => "count",
        _ => return Vec::new(),
    };
    vec![name.to_owned()]
}

#[cfg(test)]
mod tests {
    use app::values::read_time;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::locale::Locales;

    #[test]
    fn a_time_is_expected_in_a_form_that_is_read() {
        const EXAMPLE: &str = "2026-11-30 14:05";
        assert!(read_time(EXAMPLE, &TimeZone::UTC).is_ok());
        for locale in &Locales::embedded().0 {
            for field in ["validSince", "validUntil"] {
                let told = message(&AppError::invalid(field, "as the application says it"), locale);
                assert!(told.contains(EXAMPLE), "{told}");
            }
        }
    }

    #[test]
    fn errors_of_forms_are_told_in_every_language() {
        let text = || "x".to_owned();
        let invalid = |field: &str| AppError::invalid(field, "as the application says it");
        let errors = [
            invalid("count"),
            invalid("keyspace"),
            invalid("pattern"),
            invalid("newName"),
            invalid("name"),
            invalid("regular404Redirect"),
            AppError::NoDomain(text()),
            AppError::MayNotAddDomain(text()),
            AppError::DomainTaken(text()),
            AppError::TagConflict { old: text(), new: text() },
            AppError::NoTag(text()),
            AppError::NoTarget(text()),
            AppError::NoReservation(text()),
            AppError::TooManyReserved { held: 9_999, most: 10_000 },
            AppError::TooManyReservations { held: 1_000, most: 1_000 },
            AppError::NoScheduledEdit(text()),
            AppError::TooManyScheduledEdits(10),
            AppError::NoWebhook(text()),
            AppError::NoDelivery(text()),
            AppError::TooManyWebhooks(100),
            AppError::WebhookDisabled(text()),
            invalid("url"),
            invalid("events"),
            invalid("tag"),
            invalid("scheduledFor"),
            invalid("(the fields)"),
            AppError::NotUndone(NotUndone::NoEntry),
            AppError::NotUndone(NotUndone::NotAnEdit),
            AppError::NotUndone(NotUndone::ChangedAgain(vec!["title".to_owned()])),
            AppError::NotUndone(NotUndone::Irrevocable(vec!["domain".to_owned()])),
            AppError::Exhausted,
        ];
        for locale in &Locales::embedded().0 {
            for error in &errors {
                let told = message(error, locale);
                // A text that does not exist or lacks a value is its own name.
                assert!(!told.starts_with("error-") && !told.starts_with("expected-"), "{told}");
                assert_ne!(told, error.to_string());
            }
        }
    }
}
