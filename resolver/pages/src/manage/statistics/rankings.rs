//! The most frequent values of dimensions, as tables.
//!
//! Values are texts of visitors: hosts of referrers, names of browsers. Templates escape them.

use app::visit_stats::{RankedValues, VisitCount, VisitStats, keep_first};
use geoip::CountryCode;
use visits::{
    tally::{Dimension, OTHER},
    tenths_of_percent,
};

use super::figures::percent;
use crate::{chart::Value, locale::Locale, map::WorldMap, markup::Markup};

const ROWS_MAX: usize = 10;

pub(super) const SHOWN: [Dimension; 9] = [
    Dimension::Country,
    Dimension::City,
    Dimension::Referrer,
    Dimension::Browser,
    Dimension::Os,
    Dimension::Device,
    Dimension::Language,
    Dimension::Rule,
    Dimension::Outcome,
];

pub(super) struct Ranking {
    pub(super) title: String,
    /// The most frequent values, [`ROWS_MAX`] at most, and one row for the others.
    pub(super) rows: Vec<Row>,
    /// The others one by one: countries, which are on the map, and no other dimension.
    pub(super) others: Vec<Row>,
    pub(super) sum: u64,
    pub(super) map: Option<Markup>,
    /// Whether these are countries of which none is known, so that a map would be empty.
    pub(super) has_no_place: bool,
}

pub(super) struct Row {
    pub(super) name: String,
    pub(super) visits: u64,
    pub(super) share: String,
}

impl Ranking {
    /// Shows the dimensions of statistics that have values: of rules, at least one that matched.
    pub(super) fn all(stats: &VisitStats, t: &Locale) -> Vec<Self> {
        let has_values = |(dimension, values): &&(Dimension, RankedValues)| {
            values.iter().any(|(value, _)| *dimension != Dimension::Rule || !value.is_empty())
        };
        let with_values = stats.dimensions.iter().filter(has_values);
        with_values.map(|(dimension, values)| Self::new(*dimension, values, t)).collect()
    }

    fn new(dimension: Dimension, values: &RankedValues, t: &Locale) -> Self {
        let is_of_countries = dimension == Dimension::Country;
        let is_placed = values.iter().any(|(value, _)| !matches!(value.as_str(), "" | "unknown" | OTHER));
        let sum = values.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(count.total));
        let row = |(value, count): &(String, VisitCount)| Row {
            name: name(dimension, value, t),
            visits: count.total,
            share: format!("{} %", percent(tenths_of_percent(count.total, sum).unwrap_or(0), t)),
        };
        let (first, others) = match is_of_countries {
            true => values.split_at(values.len().min(ROWS_MAX)),
            false => (&*keep_first(values.clone(), ROWS_MAX), &[][..]),
        };
        Self {
            title: t.text(&format!("stats-by-{}", dimension.as_str())),
            rows: first.iter().map(row).collect(),
            others: others.iter().map(row).collect(),
            sum,
            map: (is_of_countries && is_placed).then(|| map(values, t)),
            has_no_place: is_of_countries && !is_placed,
        }
    }
}

fn map(values: &RankedValues, t: &Locale) -> Markup {
    let country = |(code, count): &(String, VisitCount)| Value {
        label: code.clone(),
        number: count.total,
        text: format!("{}: {}", name(Dimension::Country, code, t), t.count("count-visits", &count.total)),
    };
    let countries: Vec<Value> = values.iter().map(country).collect();
    Markup::of(&WorldMap::new(t.text("stats-map"), &countries))
}

/// Returns a value as people read it. Those that the language has no text for stay as they are.
fn name(dimension: Dimension, value: &str, t: &Locale) -> String {
    let named = |id: String| t.try_text(&id).unwrap_or_else(|| value.to_owned());
    match (dimension, value) {
        (_, OTHER) => t.text("stats-other"),
        (Dimension::Referrer, "") => t.text("stats-no-referrer"),
        (Dimension::Rule, "") => t.text("stats-no-rule"),
        (Dimension::Rule, _) => t.with("rules-rule", value),
        (_, "" | "unknown") => t.text("stats-unknown"),
        (Dimension::City, _) => place(value),
        (Dimension::Country, _) => country(value, t),
        (Dimension::Device, _) => named(format!("stats-device-{value}")),
        (Dimension::Outcome, _) => named(format!("stats-outcome-{value}")),
        _ => value.to_owned(),
    }
}

/// Returns the name of a country. Only names that differ from the English ones are in `locales/`.
fn country(code: &str, t: &Locale) -> String {
    let english = || CountryCode::parse(code)?.name().map(str::to_owned);
    t.try_text(&format!("country-{code}")).or_else(english).unwrap_or_else(|| code.to_owned())
}

/// Writes `DE/Bayern/München` as `München, Bayern, DE`. Parts that are unknown are left out.
fn place(value: &str) -> String {
    let parts: Vec<&str> = value.splitn(3, '/').filter(|part| !part.is_empty()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use visits::Outcome;

    use super::{super::sample::stats, *};
    use crate::locale::{Locales, english};

    #[test]
    fn values_are_named_in_every_language() {
        for t in &Locales::embedded().0 {
            for outcome in Outcome::ALL {
                assert_ne!(name(Dimension::Outcome, outcome.as_str(), t), outcome.as_str(), "{}", t.tag);
            }
            assert_eq!(name(Dimension::Device, "toaster", t), "toaster", "of a later release");
            assert!(["Germany", "德国"].contains(&&*name(Dimension::Country, "DE", t)));
            assert_eq!(name(Dimension::Country, "QX", t), "QX", "no country");
            assert_ne!(name(Dimension::Referrer, "", t), name(Dimension::Browser, "", t));
            for dimension in SHOWN {
                let id = format!("stats-by-{}", dimension.as_str());
                assert!(t.try_text(&id).is_some(), "{} {id}", t.tag);
            }
        }
    }

    #[test]
    fn places_begin_with_the_smallest() {
        assert_eq!(place("DE/Bayern/München"), "München, Bayern, DE");
        assert_eq!(place("SG//Singapore"), "Singapore, SG");
        assert_eq!(place("DE/a/b/c"), "b/c, a, DE");
    }

    #[test]
    fn values_behind_the_tenth_are_one_row_and_those_of_countries_are_kept() {
        let count = VisitCount { total: 5, bots: 0 };
        let values: Vec<_> = (0..30).map(|number| (format!("value-{number}"), count)).collect();
        let ranking = |dimension| Ranking::new(dimension, &values, english());
        let cities = ranking(Dimension::City);
        let last = cities.rows.last().unwrap();
        assert_eq!((cities.rows.len(), last.visits, last.share.as_str()), (11, 100, "66.7 %"));
        assert_eq!(last.name, name(Dimension::City, OTHER, english()));
        assert!(cities.others.is_empty());
        let countries = ranking(Dimension::Country);
        assert_eq!((countries.rows.len(), countries.others.len()), (10, 20));
    }

    #[test]
    fn rules_are_shown_once_one_has_matched() {
        let count = VisitCount { total: 5, bots: 0 };
        let shown = |values: &[&str]| {
            let values = values.iter().map(|value| ((*value).to_owned(), count)).collect();
            let stats = VisitStats { dimensions: vec![(Dimension::Rule, values)], ..stats(&[5], None) };
            let names = |ranking: Ranking| ranking.rows.into_iter().map(|row| row.name).collect();
            Ranking::all(&stats, english()).into_iter().map(names).collect::<Vec<Vec<String>>>()
        };
        assert_eq!(shown(&[""]), Vec::<Vec<String>>::new());
        assert_eq!(shown(&["2", ""]), [["Rule 2", "No rule: the long URL of the link"]]);
    }

    #[test]
    fn a_map_needs_a_country() {
        let count = VisitCount { total: 1, bots: 0 };
        let drawn = |dimension, countries: &[&str]| {
            let values: Vec<_> = countries.iter().map(|code| ((*code).to_owned(), count)).collect();
            let ranking = Ranking::new(dimension, &values, english());
            (ranking.map.is_some(), ranking.has_no_place)
        };
        assert_eq!(drawn(Dimension::Country, &["", "DE"]), (true, false));
        assert_eq!(drawn(Dimension::Country, &["", OTHER]), (false, true));
        assert_eq!(drawn(Dimension::City, &[""]), (false, false));
    }

    #[test]
    fn shares_are_those_of_the_table() {
        let values = [("a", 3), ("b", 1)]
            .map(|(value, total)| (value.to_owned(), VisitCount { total, bots: 0 }))
            .to_vec();
        let ranking = Ranking::new(Dimension::Browser, &values, english());
        let shares: Vec<&str> = ranking.rows.iter().map(|row| row.share.as_str()).collect();
        assert_eq!((ranking.sum, shares), (4, vec!["75.0 %", "25.0 %"]));
    }
}
