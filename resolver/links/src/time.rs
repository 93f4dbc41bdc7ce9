//! Times as people, scripts and other systems write them: the one reader for requests, forms,
//! redirect rules and imported files.
//!
//! 1. RFC 3339, with a space or a `T`, and RFC 9557, which adds a time zone in brackets. A date
//!    alone is its first moment.
//! 2. A time without an offset and without a zone in brackets is in the zone of the caller, which
//!    is that of the server (`--time-zone`).
//! 3. An offset that the zone in brackets does not have at that time is refused, because one of the
//!    two is wrong. `Z` and `-00:00` say nothing of a zone (RFC 9557, section 2), and fit any.
//! 4. A local time that a change of the clocks skips counts by the offset before the change, so it
//!    is moved behind the gap; of one that occurs twice the first is taken. An offset decides.
//! 5. A tag that is marked as critical is refused; other tags are ignored (RFC 9557, section 3.3).
//! 6. A leap second counts as the second before it.
//! 7. Years are 0001 to 9999. The last moments of 9999, with which systems write "never", count as
//!    the latest time that can be stored.
//! 8. A number of 9 to 11 digits is seconds since 1970: from 1973 on, and no date without dashes.
//!    One of 12 or 13 digits is refused as milliseconds.
//!
//! Rejected: dates without dashes, and smaller numbers, because they may mean something else.

use std::borrow::Cow;

use jiff::{
    Timestamp,
    civil::{DateTime, Time},
    fmt::temporal::{Pieces, PiecesOffset},
    tz::{Offset, TimeZone},
};

use super::{Date, Text};

/// The length of a date with dashes, and of one without.
const DATE_LEN: usize = "2026-11-22".len();
const SHORT_DATE_LEN: usize = "20261122".len();
/// The length of a day. Offsets are shorter.
const DAY_SECONDS: i32 = 24 * 60 * 60;

/// Why a text is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The text is not in a form that is read.
    #[error(
        "not a time: write it like 2026-11-22T10:00:00+01:00, 2026-11-22T10:00:00[Europe/Berlin] or 2026-11-22"
    )]
    Form,
    /// The text is a number of milliseconds.
    #[error("a number is read as seconds since 1970, and this one looks like milliseconds")]
    Milliseconds,
    /// The zone in brackets is unknown.
    #[error("the time zone in brackets is unknown: write a name such as Europe/Berlin")]
    Zone,
    /// The zone in brackets has another offset at that time.
    #[error(
        "the offset {offset} is not that of the time zone in brackets at that time: leave one of them out"
    )]
    Offset {
        /// The offset of the text.
        offset: Offset,
    },
    /// The time is outside of the years that are stored.
    #[error("the year must be 0001 to 9999")]
    Range,
}

/// Reads a time. Without an offset and a zone of its own it is in `zone`.
pub fn read_time(text: &str, zone: &TimeZone) -> Result<Timestamp, TimeError> {
    let text = text.trim();
    if let Some(time) = epoch(text) {
        return time;
    }
    let (head, tags) = text.find('[').map_or((text, ""), |at| text.split_at(at));
    let head = with_offset_attached(head.trim_end());
    if !has_date(&head) {
        return Err(TimeError::Form);
    }
    let whole = format!("{head}{tags}");
    let pieces = Pieces::parse(&whole).map_err(|_| TimeError::Form)?;
    let civil = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
    if civil.year() < 1 {
        return Err(TimeError::Range);
    }
    let own = pieces.to_time_zone().map_err(|_| TimeError::Zone)?;
    match pieces.offset() {
        None => latest(civil, own.as_ref().unwrap_or(zone).to_timestamp(civil)),
        Some(offset) => at_offset(civil, offset, own.as_ref()),
    }
}

/// Reads a number of seconds since 1970. Returns `None` for a text that is none.
fn epoch(text: &str) -> Option<Result<Timestamp, TimeError>> {
    let is_number = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.len() {
        9..=11 if is_number => {
            let time = text.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
            Some(time.ok_or(TimeError::Range))
        }
        12 | 13 if is_number => Some(Err(TimeError::Milliseconds)),
        _ => None,
    }
}

/// Returns a time in the form in which a redirect rule keeps it. It stays as it was written if it
/// says the moment by itself; otherwise it gets its offset, so that it keeps its meaning when the
/// operator changes the zone.
pub fn stored_time(text: &str, zone: &TimeZone) -> Result<String, TimeError> {
    let text = text.trim();
    let time = read_time(text, zone)?;
    let alone = Text::parse(text).and_then(Date::parse).filter(|_| !text.contains('['));
    if alone.is_some_and(|date| date.time == time) {
        return Ok(text.to_owned());
    }
    Ok(time.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string())
}

/// Finds a time zone by its name in the database of the system.
pub fn find_zone(name: &str) -> Option<TimeZone> {
    // UTC needs no installed database.
    if name == "UTC" { Some(TimeZone::UTC) } else { TimeZone::get(name).ok() }
}

/// Attaches an offset that a space separates from the time, as some systems write it; also one
/// whose plus sign a query has decoded to a space.
fn with_offset_attached(text: &str) -> Cow<'_, str> {
    let Some((time, offset)) = text.rsplit_once(' ').filter(|(time, _)| time.contains(':')) else {
        return Cow::Borrowed(text);
    };
    let time = time.trim_end();
    Cow::Owned(match offset {
        "UTC" | "GMT" => format!("{time}Z"),
        offset if offset.starts_with(['+', '-', 'Z', 'z']) => format!("{time}{offset}"),
        offset => format!("{time}+{offset}"),
    })
}

/// Returns whether a text begins with a date; without dashes, a time has to follow.
fn has_date(text: &str) -> bool {
    let is_date =
        |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    let next = text.as_bytes().get(DATE_LEN);
    let has_dashes = text.len() >= DATE_LEN
        && text.bytes().take(DATE_LEN).enumerate().all(is_date)
        && next.is_none_or(|next| matches!(next, b'T' | b't' | b' '));
    let is_short = text.len() > SHORT_DATE_LEN
        && text.bytes().take(SHORT_DATE_LEN).all(|byte| byte.is_ascii_digit())
        && text.as_bytes()[SHORT_DATE_LEN].eq_ignore_ascii_case(&b't');
    has_dashes || is_short
}

/// Returns the time at an offset, which has to be that of the zone.
fn at_offset(civil: DateTime, offset: PiecesOffset, zone: Option<&TimeZone>) -> Result<Timestamp, TimeError> {
    let numeric = offset.to_numeric_offset();
    if numeric.seconds().abs() >= DAY_SECONDS {
        return Err(TimeError::Form);
    }
    let time = latest(civil, numeric.to_timestamp(civil))?;
    let says_nothing = match offset {
        PiecesOffset::Numeric(offset) => offset.offset() == Offset::UTC && offset.is_negative(),
        // `Z`.
        _ => true,
    };
    let fits = |zone: &TimeZone| {
        let real = zone.to_offset(time);
        // Offsets of long ago have seconds, which RFC 3339 cannot write.
        real == numeric || real.seconds().abs_diff(numeric.seconds()) < 60
    };
    if says_nothing || zone.is_none_or(fits) { Ok(time) } else { Err(TimeError::Offset { offset: numeric }) }
}

/// Returns a computed time, or the latest one for the end of the year 9999.
fn latest(civil: DateTime, time: Result<Timestamp, jiff::Error>) -> Result<Timestamp, TimeError> {
    time.or(if civil.year() == 9999 { Ok(Timestamp::MAX) } else { Err(TimeError::Range) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    #[test]
    fn a_time_is_read_as_the_moment_that_it_means() {
        let same = "2026-11-22T10:00:00+00:00|2026-11-22T12:00:00+02:00|2026-11-22T12:00:00 02:00|\
                    2026-11-22T10:00:00Z|2026-11-22t10:00:00z|2026-11-22 10:00:00Z|2026-11-22 10:00:00 UTC|\
                    2026-11-22 12:00:00 +0200|2026-11-22 12:00:00+02|2026-11-22T06:00:00.000-04:00|\
                    2026-11-22T10:00:00-00:00|2026-11-22T10:00Z|20261122T100000Z| 2026-11-22T10:00:00Z ";
        let others = [
            // Without an offset it is in the zone of the caller, or in its own.
            ("2030-07-01 12:00:00", "2030-07-01T10:00:00Z"),
            ("2030-01-01T12:00", "2030-01-01T11:00:00Z"),
            ("2030-07-01T12:00:00.25", "2030-07-01T10:00:00.25Z"),
            ("2030-07-01", "2030-06-30T22:00:00Z"),
            ("2030-05-13T00:07:19[Asia/Tokyo]", "2030-05-12T15:07:19Z"),
            ("2030-05-13 00:07:19 [asia/tokyo]", "2030-05-12T15:07:19Z"),
            ("2030-05-13[Asia/Tokyo]", "2030-05-12T15:00:00Z"),
            ("2030-05-13T00:07:19[+09:00]", "2030-05-12T15:07:19Z"),
            ("2030-05-13T00:07:19+02:00[Europe/Paris]", "2030-05-12T22:07:19Z"),
            ("2030-05-13T00:07:19+02:00[!Europe/Paris][u-ca=hebrew]", "2030-05-12T22:07:19Z"),
            ("2030-05-13T00:07:19Z[Europe/Paris]", "2030-05-13T00:07:19Z"),
            ("2030-05-13T00:07:19-00:00[Europe/Paris]", "2030-05-13T00:07:19Z"),
            ("2030-05-13T00:07:19[u-ca=japanese]", "2030-05-12T22:07:19Z"),
            // A skipped time is moved behind the gap; one that occurs twice is the first.
            ("2026-03-29T02:30:00", "2026-03-29T01:30:00Z"),
            ("2026-03-29T02:30:00[Europe/Paris]", "2026-03-29T01:30:00Z"),
            ("2026-10-25T02:30:00", "2026-10-25T00:30:00Z"),
            ("2026-10-25T02:30:00+01:00[Europe/Berlin]", "2026-10-25T01:30:00Z"),
            ("2026-09-06[America/Santiago]", "2026-09-06T04:00:00Z"),
            // Leap seconds and the ends of time.
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
            ("2017-01-01T00:59:60", "2016-12-31T23:59:59Z"),
            ("2017-01-01T08:59:60+09:00", "2016-12-31T23:59:59Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59Z", "9999-12-30T22:00:00.999999999Z"),
            ("9999-12-31", "9999-12-30T22:00:00.999999999Z"),
            // Seconds since 1970.
            (" 1525132800 ", "2018-05-01T00:00:00Z"),
            ("100000000", "1973-03-03T09:46:40Z"),
            ("99999999999", "5138-11-16T09:46:39Z"),
        ];
        let same = same.split('|').map(|text| (text, "2026-11-22T10:00:00Z"));
        for (text, expected) in same.chain(others) {
            assert_eq!(read_time(text, &berlin()), Ok(expected.parse().unwrap()), "{text:?}");
        }
    }

    #[test]
    fn a_text_that_is_no_time_or_contradicts_itself_is_refused_with_the_reason() {
        let offset = |hours| TimeError::Offset { offset: jiff::tz::offset(hours) };
        for (text, error) in [
            ("2030-05-13T00:07:19+01:00[Europe/Paris]", offset(1)),
            ("2030-05-13T00:07:19+00:00[Europe/Paris]", offset(0)),
            ("2030-05-13T00:07:19+02:00[+01:00]", offset(2)),
            ("2026-03-29T02:30:00+01:00[Europe/Berlin]", offset(1)),
            ("2030-05-13T00:07:19[Europe/Atlantis]", TimeError::Zone),
            ("2030-05-13T00:07:19Z[!Europe/Atlantis]", TimeError::Zone),
            ("0000-01-01", TimeError::Range),
            ("1525132800000", TimeError::Milliseconds),
            ("100000000000", TimeError::Milliseconds),
        ] {
            assert_eq!(read_time(text, &berlin()), Err(error), "{text}");
        }
        let wrong = "2030-05-13T00:07:19Z[!u-ca=hebrew]|2030-05-13T00:07:19[Europe/Paris][!knort=blargel]|\
                     2016-12-31T23:59:61Z|| |tomorrow|now|2026|2026-13-01|2026-02-30|10:00|20261122|\
                     99999999|-1525132800|1525132800.5|0152513280|20261122100000|2026-11-22x10:00|2026-11-22 25:00|2026-11-22T|2026-1-1|\
                     22.11.2026|11/22/2026|0000-00-00 00:00:00|99999-01-01|+012026-01-01|-002026-01-01|\
                     ２０２６-01-01|2026-11-22T10:00:00+25:00|2026-11-22T10:00:00[Europe/Berlin|\
                     2026-11-22T10:00:00[]|[Europe/Berlin]|2026-11-22T10:00:00Z junk|\
                     2026-11-22T10:00:00[Europe/Berlin]x|ä";
        for text in wrong.split('|') {
            assert_eq!(read_time(text, &berlin()), Err(TimeError::Form), "{text:?}");
        }
    }

    #[test]
    fn a_rule_keeps_a_time_as_it_was_written_or_with_its_offset() {
        for (text, utc, local) in [
            ("2031-01-01", "2031-01-01", "2031-01-01T00:00:00+01:00"),
            ("2031-01-01T10:00:00Z", "2031-01-01T10:00:00Z", "2031-01-01T10:00:00Z"),
            (" 2031-07-01 10:00 ", "2031-07-01T10:00:00+00:00", "2031-07-01T10:00:00+02:00"),
            ("2031-07-01T10:00:00.5", "2031-07-01T10:00:00.5+00:00", "2031-07-01T10:00:00.5+02:00"),
            ("2031-07-01T10:00:00[Asia/Tokyo]", "2031-07-01T01:00:00+00:00", "2031-07-01T03:00:00+02:00"),
            ("1767225600", "2026-01-01T00:00:00+00:00", "2026-01-01T01:00:00+01:00"),
        ] {
            assert_eq!(stored_time(text, &TimeZone::UTC).as_deref(), Ok(utc), "{text}");
            assert_eq!(stored_time(text, &berlin()).as_deref(), Ok(local), "{text}");
        }
        assert_eq!(stored_time("tomorrow", &berlin()), Err(TimeError::Form));
    }
}
