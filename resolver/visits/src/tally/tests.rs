//! Tallies of any visits: divided into batches, compacted, taken away, and damaged.

use proptest::prelude::*;

use super::*;
use crate::QUARTER;

/// A visit, whose values are beside it.
type Visit = (Counted<'static>, [String; 10]);

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("DE".to_owned()),
        Just("DE/Bayern".to_owned()),
        Just("Chrome".to_owned()),
        Just("redirected".to_owned()),
        Just(OTHER.to_owned()),
        "[a-c]{1,3}",
        "[\u{e4}\u{20ac}a]{20,40}",
    ]
}

fn visit() -> impl Strategy<Value = Visit> {
    let key = || prop::option::of(0..40_u64);
    let flags = any::<[bool; 3]>();
    (0..Quarter::COUNT, flags, key(), key(), prop::array::uniform10(value())).prop_map(
        |(quarter, [is_bot, is_listed, is_redirected], visitor, address, values)| {
            let quarter = Quarter::of(i64::from(quarter) * QUARTER);
            let none = [""; 10];
            (Counted { quarter, is_bot, is_listed, is_redirected, visitor, address, values: none }, values)
        },
    )
}

fn visits() -> impl Strategy<Value = Vec<Visit>> {
    prop::collection::vec(visit(), 0..80)
}

fn tally<'a>(visits: impl IntoIterator<Item = &'a Visit>) -> Tally {
    let mut tally = Tally::default();
    for (visit, values) in visits {
        tally.add(&Counted { values: values.each_ref().map(String::as_str), ..*visit });
    }
    tally
}

fn read(stored: &Counters) -> Tally {
    Tally::from_chunks(stored).unwrap()
}

/// Values that no two visits share, so that dimensions are folded.
fn garbage(numbers: std::ops::Range<u64>) -> Vec<Visit> {
    let visit = |number: u64| {
        let visit = Counted {
            quarter: Quarter::of(QUARTER),
            is_bot: number.is_multiple_of(3),
            is_listed: true,
            is_redirected: true,
            visitor: Some(number),
            address: None,
            values: [""; 10],
        };
        (visit, std::array::from_fn(|dimension| format!("{dimension} {number}")))
    };
    numbers.map(visit).collect()
}

proptest! {
    #[test]
    fn deltas_of_any_batches_add_up_to_one_tally(batches in prop::collection::vec(visits(), 0..6)) {
        let mut stored = Counters::default();
        for batch in &batches {
            stored.append(&tally(batch).delta());
        }
        let all = tally(batches.iter().flatten());
        let divided = read(&stored);
        prop_assert_eq!(&divided, &all);
        prop_assert_eq!((stored.total, stored.bots), (all.delta().total, all.delta().bots));
    }

    #[test]
    fn compaction_changes_nothing_that_is_read(
        added in visits(), removed in visits(), later in visits(),
        junk in prop_oneof![9 => Just(0), 1 => 500..2_000_u64],
    ) {
        let mut stored = tally(&added).delta();
        stored.append(&tally(&removed).negated().delta());
        stored.append(&tally(&garbage(0..junk)).delta());
        stored.append(&tally(&garbage(junk..junk * 3 / 2)).delta());
        let read_before = read(&stored);
        let compacted = read_before.delta();
        let read_after = read(&compacted);
        prop_assert_eq!(&read_after, &read_before);
        prop_assert_eq!((compacted.total, compacted.bots), (stored.total, stored.bots));
        prop_assert_eq!(&read_after.delta(), &compacted);
        let [mut one, mut other] = [stored, compacted];
        one.append(&tally(&later).delta());
        other.append(&tally(&later).delta());
        let [one, other] = [read(&one), read(&other)];
        for dimension in Dimension::ALL {
            prop_assert_eq!(one.dimensions.sum(dimension), other.dimensions.sum(dimension));
        }
        prop_assert_eq!((one.quarters, one.visitors), (other.quarters, other.visitors));
    }

    #[test]
    fn visits_added_and_taken_away_leave_nothing_but_visitors(visits in visits()) {
        let tally = tally(&visits);
        let mut stored = tally.delta();
        stored.append(&tally.negated().delta());
        let left = read(&stored);
        prop_assert_eq!((left.quarters, left.dimensions), Default::default());
        prop_assert_eq!((&left.visitors, &left.addresses), (&tally.visitors, &tally.addresses));
        prop_assert_eq!((stored.total, stored.bots), (0, 0));
    }

    #[test]
    fn each_dimension_adds_up(
        visits in visits(), junk in prop_oneof![3 => Just(0), 1 => 0..5_000_u64],
    ) {
        let junk = garbage(0..junk);
        let stored = tally(visits.iter().chain(&junk)).delta();
        let tally = read(&stored);
        let count = |is_counted: fn(&Counted<'_>) -> bool| {
            let mut sum = ValueCount::default();
            let counted = visits.iter().chain(&junk).filter(|(visit, _)| is_counted(visit));
            counted.for_each(|(visit, _)| sum += ValueCount::one(visit.is_bot));
            sum
        };
        for dimension in Dimension::ALL {
            let expected = match dimension {
                Dimension::Outcome => count(|_| true),
                _ => count(|visit| visit.is_redirected),
            };
            prop_assert_eq!(tally.dimensions.sum(dimension), expected, "{:?}", dimension);
        }
        let Counts { total, bots, .. } = tally.quarters.total();
        prop_assert_eq!(ValueCount { total, bots }, count(|visit| visit.is_redirected));
        prop_assert_eq!((stored.total, stored.bots), (total, bots));
    }

    #[test]
    fn arbitrary_bytes_give_a_tally_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..3_000)) {
        let [quarters, dimensions, visitors, addresses] = [0; 4].map(|_| bytes.clone());
        check_bounds(Counters { total: 0, bots: 0, quarters, dimensions, visitors, addresses })?;
    }

    #[test]
    fn a_damaged_column_gives_a_tally_or_an_error(
        visits in visits(), many in any::<bool>(),
        changes in prop::collection::vec(any::<(usize, u8)>(), 1..8),
    ) {
        let mut visits = visits;
        if many {
            visits.extend(garbage(0..2_100));
        }
        let mut stored = tally(&visits).delta();
        for bytes in
            [&mut stored.quarters, &mut stored.dimensions, &mut stored.visitors, &mut stored.addresses]
        {
            for (place, byte) in &changes {
                // Headers and counts are at the beginning, so half of the changes fall there.
                let end = if place.is_multiple_of(2) { bytes.len() } else { bytes.len().min(16) };
                if let Some(changed) = place.checked_rem(end) {
                    bytes[changed] = *byte;
                }
            }
        }
        check_bounds(stored)?;
    }
}

/// Reads each column by itself, and checks the memory that it takes and that it can be used.
fn check_bounds(stored: Counters) -> Result<(), TestCaseError> {
    let Counters { quarters, dimensions, visitors, addresses, .. } = stored;
    for column in [
        Counters { quarters, ..Counters::default() },
        Counters { dimensions, ..Counters::default() },
        Counters { visitors, ..Counters::default() },
        Counters { addresses, ..Counters::default() },
    ] {
        let Ok(tally) = Tally::from_chunks(&column) else { continue };
        prop_assert_eq!(&read(&tally.delta()), &tally);
        prop_assert!(tally.quarters.iter().count() <= usize::from(Quarter::COUNT));
        for dimension in Dimension::ALL {
            prop_assert!(tally.dimensions.values(dimension).len() <= VALUES_MAX + 1);
            prop_assert!(tally.dimensions.values(dimension).all(|(value, _)| value.len() <= VALUE_BYTES_MAX));
        }
        prop_assert!(tally.visitors.chunk().len() <= 60_000);
        prop_assert!(tally.visitors.chunk().is_empty() || tally.visitors.estimate().count > 0);
    }
    Ok(())
}

#[test]
fn bots_and_lost_visitors_count_neither_as_visitors_nor_as_addresses() {
    let [mut person, mut bot, mut lost] = [0; 3].map(|_| garbage(1..2).remove(0));
    person.0.address = Some(1);
    (bot.0.is_bot, bot.0.visitor, bot.0.address) = (true, Some(2), Some(2));
    (lost.0.is_redirected, lost.0.visitor, lost.0.address) = (false, Some(3), Some(3));
    let tally = tally([&person, &bot, &lost]);
    let one = Estimate { count: 1, is_exact: true };
    assert_eq!((tally.visitors.estimate(), tally.addresses.estimate()), (one, one));
    assert_eq!(tally.quarters.total(), Counts { total: 2, bots: 1, unlisted: 0, unlisted_bots: 0 });
    assert_eq!(tally.dimensions.sum(Dimension::Outcome), ValueCount { total: 3, bots: 1 });
}

#[test]
fn a_typical_visit_appends_less_than_fifty_bytes_to_four_columns() {
    let visit = Counted {
        quarter: Quarter::of(40 * QUARTER),
        is_bot: false,
        is_listed: true,
        is_redirected: true,
        visitor: Some(7),
        address: Some(8),
        values: Dimension::ALL.map(|dimension| match dimension {
            Dimension::Browser => "Chrome",
            Dimension::Os => "Windows",
            Dimension::Device => "desktop",
            Dimension::Country => "DE",
            Dimension::Region => "DE/Bayern",
            Dimension::City => "DE/Bayern/M\u{fc}nchen",
            Dimension::Language => "de-DE",
            Dimension::Outcome => "redirected",
            _ => "",
        }),
    };
    let mut tally = Tally::default();
    tally.add(&visit);
    let delta = tally.delta();
    let lens = [&delta.quarters, &delta.dimensions, &delta.visitors, &delta.addresses].map(Vec::len);
    assert_eq!(lens, [4, 33, 5, 5]);
}
