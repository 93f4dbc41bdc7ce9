//! The languages of the pages: one file of Fluent messages each, in `locales/`.
//!
//! A file is named after its language (BCP 47), and its message `language-name` is the name that
//! the choice of languages shows. A new language is a new file there, and nothing else.

#[cfg(test)]
use std::sync::LazyLock;
use std::sync::OnceLock;

use app::Field;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue, concurrent::FluentBundle};
use unic_langid::LanguageIdentifier;

/// The language of a browser that accepts none of the others.
const DEFAULT: &str = "en";
/// The extension of a language's file.
const SUFFIX: &str = ".ftl";

#[derive(rust_embed::Embed)]
#[folder = "locales"]
struct Files;

pub(crate) struct Locale {
    /// The language, as `lang` attributes have it.
    pub(crate) tag: String,
    /// The texts, parsed for the first page in the language: they take half a megabyte.
    bundle: OnceLock<FluentBundle<FluentResource>>,
}

/// All languages, in the order of their tags.
pub(crate) struct Locales(pub(crate) Vec<Locale>);

impl Locale {
    fn bundle(&self) -> &FluentBundle<FluentResource> {
        self.bundle.get_or_init(|| {
            let file = Files::get(&format!("{}{SUFFIX}", self.tag)).expect("it was listed");
            let source = String::from_utf8(file.data.into_owned()).expect("a test reads every file");
            let language: LanguageIdentifier = self.tag.parse().expect("files are named after languages");
            let resource = FluentResource::try_new(source).expect("a test reads every file");
            let mut bundle = FluentBundle::new_concurrent(vec![language]);
            // Marks of direction around each value would be in copied texts.
            bundle.set_use_isolating(false);
            bundle.add_resource(resource).expect("a test reads every file");
            bundle
        })
    }

    pub(crate) fn text(&self, id: &str) -> String {
        self.format(id, None).unwrap_or_else(|| id.to_owned())
    }

    pub(crate) fn try_text(&self, id: &str) -> Option<String> {
        self.format(id, None)
    }

    pub(crate) fn field(&self, field: &Field) -> String {
        self.text(&format!("field-{}", field.name()))
    }

    /// Returns what a path behind a link's name does, by the name of an [`links::ExtraPath`].
    pub(crate) fn extra_path(&self, name: &str) -> String {
        self.text(&format!("extra-path-{name}"))
    }

    /// Returns a text about a number, its argument `count`.
    pub(crate) fn count(&self, id: &str, count: &u64) -> String {
        self.fill(id, [("count", (*count).into()), ("shown", self.number(count).into())])
    }

    /// The same with another text in it, its argument `value`.
    pub(crate) fn count_with(&self, id: &str, count: &u64, value: &str) -> String {
        let shown = self.number(count);
        self.fill(id, [("count", (*count).into()), ("shown", shown.into()), ("value", value.into())])
    }

    /// Returns a text with another one in it, its argument `value`.
    pub(crate) fn with(&self, id: &str, value: impl AsRef<str>) -> String {
        self.fill(id, [("value", value.as_ref().into())])
    }

    /// Returns a text with two others in it, its arguments `first` and `second`.
    pub(crate) fn with_two(&self, id: &str, first: impl AsRef<str>, second: impl AsRef<str>) -> String {
        self.fill(id, [("first", first.as_ref().into()), ("second", second.as_ref().into())])
    }

    fn fill<'a, const N: usize>(&self, id: &str, args: [(&'a str, FluentValue<'a>); N]) -> String {
        let args: FluentArgs<'a> = args.into_iter().collect();
        self.format(id, Some(&args)).unwrap_or_else(|| id.to_owned())
    }

    pub(crate) fn number(&self, number: &u64) -> String {
        let separator = self.text("digit-separator");
        let digits = number.to_string();
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push_str(&separator);
            }
            text.push(digit);
        }
        text
    }

    fn format(&self, id: &str, args: Option<&FluentArgs<'_>>) -> Option<String> {
        let bundle = self.bundle();
        let pattern = bundle.get_message(id)?.value()?;
        let mut errors = Vec::new();
        let text = bundle.format_pattern(pattern, args, &mut errors).into_owned();
        errors.is_empty().then_some(text)
    }
}

impl Locales {
    /// Lists the files that are part of the program.
    pub(crate) fn embedded() -> Self {
        let locale = |file: &str| {
            let tag = file.strip_suffix(SUFFIX)?.to_owned();
            Some(Locale { tag, bundle: OnceLock::new() })
        };
        let mut locales: Vec<Locale> = Files::iter().filter_map(|file| locale(&file)).collect();
        locales.sort_by(|one, other| one.tag.cmp(&other.tag));
        Self(locales)
    }

    pub(crate) fn find(&self, tag: &str) -> Option<&Locale> {
        self.0.iter().find(|locale| locale.tag == tag)
    }

    /// Returns the language that fits a header `Accept-Language` best (RFC 9110, section 12.5.4).
    /// Languages are compared by their first subtag.
    pub(crate) fn negotiate(&self, accepted: &str) -> &Locale {
        let quality = |range: &str| {
            let (tag, params) = range.split_once(';').unwrap_or((range, "q=1"));
            let quality = params.trim().strip_prefix("q=").and_then(|text| text.parse::<f32>().ok());
            let language = tag.trim().split('-').next().unwrap_or("").to_ascii_lowercase();
            (language, quality.unwrap_or(1.0))
        };
        let ranges = accepted.split(',').map(quality).filter(|(_, quality)| *quality > 0.0);
        let known = ranges.filter_map(|(language, quality)| Some((self.find(&language)?, quality)));
        let best = known.reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map(|(locale, _)| locale).or_else(|| self.find(DEFAULT)).unwrap_or(&self.0[0])
    }
}

#[cfg(test)]
pub(crate) fn english() -> &'static Locale {
    static LOCALES: LazyLock<Locales> = LazyLock::new(Locales::embedded);
    LOCALES.find(DEFAULT).expect("there is an English file")
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        fs,
        path::{Path, PathBuf},
    };

    use links::{CONDITION_TYPES, ExtraPath, Finding, audit::Action};

    use super::*;

    fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(files(&path, extension));
            } else if path.extension().is_some_and(|has| has == extension) {
                found.push(path);
            }
        }
        found
    }

    fn messages(tag: &str) -> BTreeSet<String> {
        let source = String::from_utf8(Files::get(&format!("{tag}.ftl")).unwrap().data.into_owned()).unwrap();
        let is_message = |line: &&str| line.starts_with(|first: char| first.is_ascii_lowercase());
        let id = |line: &str| line.split(' ').next().unwrap().to_owned();
        source.lines().filter(is_message).map(id).collect()
    }

    #[test]
    fn the_browsers_languages_decide() {
        let locales = Locales::embedded();
        for (accepted, tag) in [
            ("", "en"),
            ("fr-FR, de", "en"),
            ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
            ("en-GB,zh;q=0.9", "en"),
            ("fr, zh;q=0.2, en;q=0.1", "zh"),
            ("zh;q=0, en;q=0.1", "en"),
            ("ZH-Hant", "zh"),
            ("*", "en"),
            (";;;q=,,", "en"),
        ] {
            assert_eq!(locales.negotiate(accepted).tag, tag, "{accepted}");
        }
    }

    #[test]
    fn every_language_has_every_message() {
        let locales = Locales::embedded();
        let mut english = messages(DEFAULT);
        assert!(english.len() > 20);
        let countries = include_str!("../../geoip/src/countries.txt").lines();
        english.extend(countries.map(|line| format!("country-{}", &line[..2])));
        for locale in locales.0.iter().filter(|locale| locale.tag != DEFAULT) {
            assert_eq!(messages(&locale.tag), english, "{}", locale.tag);
        }
    }

    /// Texts whose names end in names of other modules.
    #[test]
    fn every_name_has_a_text_in_every_language() {
        let devices = ["desktop", "mobile", "tablet", "tv", "console", "wearable", "bot", "other", "unknown"];
        let states = ["deleted", "blocked", "disabled", "expired", "not-yet", "denied", "live"];
        let actions = ["add-tag", "remove-tag", "enable", "disable", "delete"];
        for (beginning, names) in [
            ("every-would", actions.to_vec()),
            ("every-do", actions.to_vec()),
            ("bulk-wrong", vec!["cells", "break", "quote", "rounded", "day", "time"]),
            ("extra-path", ExtraPath::NAMES.to_vec()),
            ("explain", Finding::NAMES.to_vec()),
            ("audit", Action::ALL.map(Action::as_str).to_vec()),
            ("rules-type", CONDITION_TYPES.to_vec()),
            ("rules-condition", CONDITION_TYPES.to_vec()),
            ("rules-wrong", vec!["ip", "time"]),
            ("state", states.to_vec()),
            ("stats-device", devices.to_vec()),
            ("stats-of", vec!["link", "tag", "domain", "all", "orphans"]),
        ] {
            for locale in &Locales::embedded().0 {
                for name in &names {
                    let id = format!("{beginning}-{name}");
                    let counted = locale.count_with(&id, &2, "value");
                    let told = [locale.with(&id, "value"), locale.with_two(&id, "key", "value"), counted];
                    assert!(told.iter().any(|text| *text != id), "{} {id}", locale.tag);
                }
            }
        }
    }

    /// Texts are named by literals, so a misspelled name is found here.
    #[test]
    fn every_message_that_a_page_names_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = [files(&root.join("templates"), "html"), files(&root.join("src"), "rs")].concat();
        let english = messages(DEFAULT);
        let calls = [".text(\"", ".count(\"", ".with(\"", ".with_two(\""];
        let mut named = 0;
        for path in sources {
            let source = fs::read_to_string(&path).unwrap();
            for call in calls {
                for (at, _) in source.match_indices(call) {
                    let id = source[at + call.len()..].split('"').next().unwrap();
                    assert!(english.contains(id) || id.is_empty(), "{}: {id}", path.display());
                    named += 1;
                }
            }
        }
        assert!(named > 50, "{named}");
    }

    #[test]
    fn numbers_have_separators_and_plurals() {
        let english = english();
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(|n| english.number(&n)),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(english.count("count-links", &1), "1 link");
        assert_eq!(english.count("count-links", &1_000), "1,000 links");
    }
}
