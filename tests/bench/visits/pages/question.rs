//! Questions to the API, and the same ones to the rows.

use std::time::Duration;

use anyhow::ensure;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;
use tokio_postgres::Client;
use visits::{BOT, DAY, QUARTER, VisitId};

use super::{
    Set,
    load::{Loaded, TAG},
};
use crate::named::named_values;

/// How often the statement on the rows is run: its median counts.
const RAW_RUNS: usize = 3;

named_values! {
    /// The kinds of questions, by their bound.
    pub(super) enum Kind {
        SmallPage => "pages of 100",
        LargePage => "pages of 5,000",
        Statistics => "statistics",
    }
}

impl Kind {
    /// Returns the bound of the 99th percentile.
    pub(super) fn most_ms(self) -> f64 {
        match self {
            Self::SmallPage => 20.0,
            Self::LargePage | Self::Statistics => 50.0,
        }
    }
}

/// A question.
pub(super) struct Question {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// The path, without the number of the page.
    path: String,
    /// The condition on rows.
    condition: String,
    of: Of,
}

/// The part that is asked for: a page of visits, or their statistics.
enum Of {
    Page { place: Place, size: u64 },
    Statistics,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    First,
    Middle,
    Last,
}

/// The answer by the rows.
pub(super) struct Expected {
    total: u64,
    bots: u64,
    /// Ids and flags of a page, the latest first.
    page: Vec<(i64, i16)>,
    /// Visits by UTC day.
    days: Vec<(i64, u64)>,
}

/// Visits to ask for, by their subject.
struct Base {
    name: &'static str,
    path: String,
    stats: String,
    condition: String,
}

fn bases(set: Set, stored: &Loaded) -> Vec<Base> {
    let base = |name, path: String, stats: String, condition: String| Base { name, path, stats, condition };
    let code = &stored.code;
    let mut bases = vec![base(
        "link",
        format!("short-urls/{code}/visits"),
        format!("&shortCode={code}"),
        format!("link_id = {}", stored.link),
    )];
    if set != Set::Year {
        let tagged = format!("link_id IN (SELECT link_id FROM link_tag WHERE tag_id = {})", stored.tag);
        bases.push(base("tag", format!("tags/{TAG}/visits"), format!("&tag={TAG}"), tagged));
        bases.push(base("all", "visits/non-orphan".to_owned(), String::new(), "link_id <> 0".to_owned()));
        bases.push(base(
            "domain",
            "domains/DEFAULT/visits".to_owned(),
            "&domain=DEFAULT".to_owned(),
            "link_id <> 0 AND domain = 0".to_owned(),
        ));
    }
    bases
}

/// Returns all questions to a set.
pub(super) fn all(set: Set, stored: &Loaded) -> Vec<Question> {
    let mut questions = Vec::new();
    for base in bases(set, stored) {
        for range in ranges(set, stored) {
            pages(&base, &range, &mut questions);
        }
        statistics(&base, stored, &mut questions);
    }
    questions
}

/// A choice of visits.
struct Range {
    name: &'static str,
    query: String,
    condition: String,
}

fn bounds(from: i64, before: i64) -> (String, String) {
    let time = |micros: i64| Timestamp::from_microsecond(micros).unwrap_or_default();
    // The last second is included.
    let query = format!("&startDate={}&endDate={}", time(from), time(before - 1_000_000));
    let condition =
        format!(" AND id >= {} AND id < {}", VisitId::floor(from).get(), VisitId::floor(before).get());
    (query, condition)
}

fn ranges(set: Set, stored: &Loaded) -> Vec<Range> {
    let half_hour = 2 * QUARTER;
    let (from, before) = match set {
        Set::Burst => {
            (stored.first.start() + 9 * 3_600_000_000, stored.first.start() + 10 * 3_600_000_000 + half_hour)
        }
        Set::Year | Set::Links => {
            let middle = stored.first.start() + (stored.last.start() - stored.first.start()) / DAY / 2 * DAY;
            (middle + 7 * half_hour, middle + 9 * DAY + 21 * half_hour)
        }
    };
    let (query, condition) = bounds(from, before);
    let people = format!(" AND flags & {BOT} = 0");
    vec![
        Range { name: "", query: String::new(), condition: String::new() },
        Range { name: ", no bots", query: "&excludeBots=true".to_owned(), condition: people.clone() },
        Range {
            name: ", half-hour bounds, no bots",
            query: format!("{query}&excludeBots=true"),
            condition: format!("{condition}{people}"),
        },
    ]
}

fn pages(base: &Base, range: &Range, questions: &mut Vec<Question>) {
    for (kind, size) in [(Kind::SmallPage, 100), (Kind::LargePage, 5_000)] {
        for place in [Place::First, Place::Middle, Place::Last] {
            let name = format!("{} visits of a {}, {place:?} page{}", size, base.name, range.name);
            questions.push(Question {
                kind,
                name,
                path: format!("{}?itemsPerPage={size}{}", base.path, range.query),
                condition: format!("{}{}", base.condition, range.condition),
                of: Of::Page { place, size },
            });
        }
    }
}

fn statistics(base: &Base, stored: &Loaded, questions: &mut Vec<Question>) {
    let end = stored.last.next().start();
    for (name, days, interval) in [
        ("a day by hour", 1, "hour"),
        ("30 days by day", 30, "day"),
        ("a year by day", 365, "day"),
        ("a year by month", 365, "month"),
    ] {
        let (query, condition) = bounds(end - days * DAY, end);
        questions.push(Question {
            kind: Kind::Statistics,
            name: format!("statistics of a {}, {name}", base.name),
            path: format!("stats?interval={interval}&timeZone=UTC{query}{}", base.stats),
            condition: format!("{}{condition}", base.condition),
            of: Of::Statistics,
        });
    }
}

impl Question {
    /// Returns the path to ask for, below `/rest/v3/`.
    pub(super) fn path(&self, expected: &Expected) -> String {
        match &self.of {
            Of::Page { place, size } => format!("{}&page={}", self.path, place.number(expected.total, *size)),
            Of::Statistics => self.path.clone(),
        }
    }

    /// Asks the rows: counts them, and sorts a page or sums up days and agents. Returns the time of
    /// the statements too.
    pub(super) async fn ask_rows(&self, sql: &Client) -> anyhow::Result<(Duration, Expected)> {
        let mut times = Vec::new();
        let mut expected = Expected { total: 0, bots: 0, page: Vec::new(), days: Vec::new() };
        for _ in 0..RAW_RUNS {
            let begun = Instant::now();
            let count = format!(
                "SELECT count(*), count(*) FILTER (WHERE flags & {BOT} <> 0) FROM visit WHERE {}",
                self.condition
            );
            let row = sql.query_one(&count, &[]).await?;
            expected.total = row.get::<_, i64>(0).unsigned_abs();
            expected.bots = row.get::<_, i64>(1).unsigned_abs();
            match &self.of {
                Of::Page { place, size } => {
                    let skip = (place.number(expected.total, *size) - 1) * size;
                    let page = format!(
                        "SELECT id, flags FROM visit WHERE {} ORDER BY id DESC OFFSET {skip} LIMIT {size}",
                        self.condition
                    );
                    let rows = sql.query(&page, &[]).await?;
                    expected.page = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
                }
                Of::Statistics => {
                    // Ids of a day, which begin at midnight.
                    let day = VisitId::floor(DAY * 20_001).get() - VisitId::floor(DAY * 20_000).get();
                    let days =
                        format!("SELECT id / {day}, count(*) FROM visit WHERE {} GROUP BY 1", self.condition);
                    let rows = sql.query(&days, &[]).await?;
                    expected.days =
                        rows.iter().map(|row| (row.get(0), row.get::<_, i64>(1).unsigned_abs())).collect();
                    for column in ["user_agent", "referrer", "language"] {
                        let group = format!(
                            "SELECT {column}, count(*) FROM visit WHERE {} GROUP BY 1",
                            self.condition
                        );
                        sql.query(&group, &[]).await?;
                    }
                }
            }
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        Ok((times[RAW_RUNS / 2], expected))
    }

    /// Compares an answer with the rows.
    pub(super) fn compare(&self, answer: &Value, expected: &Expected) -> anyhow::Result<()> {
        match self.of {
            Of::Page { .. } => {
                let visits = &answer["visits"];
                let total = visits["pagination"]["totalItems"].as_u64();
                ensure!(total == Some(expected.total), "{total:?} visits, expected {}", expected.total);
                let data: Vec<&Value> = visits["data"].as_array().into_iter().flatten().collect();
                ensure!(
                    data.len() == expected.page.len(),
                    "{} on the page, expected {}",
                    data.len(),
                    expected.page.len()
                );
                for (visit, (id, flags)) in data.iter().zip(&expected.page) {
                    let at = VisitId::from_stored(*id).at().as_second();
                    let date: Timestamp = visit["date"].as_str().unwrap_or_default().parse()?;
                    ensure!(date.as_second() == at, "{date}, expected {at}");
                    let is_bot = flags & BOT != 0;
                    ensure!(visit["potentialBot"] == is_bot, "{visit}");
                }
            }
            Of::Statistics => {
                let visits = &answer["visits"];
                ensure!(visits["total"] == expected.total, "{visits}, expected {}", expected.total);
                ensure!(visits["bots"] == expected.bots, "{visits}, expected {} bots", expected.bots);
                let series = answer["series"].as_array().into_iter().flatten();
                let sum: u64 = series.filter_map(|point| point["total"].as_u64()).sum();
                let days: u64 = expected.days.iter().map(|(_, visits)| visits).sum();
                ensure!(sum == days, "{sum} in the series, expected {days}");
                let browsers = answer["dimensions"]["browser"].as_array().into_iter().flatten();
                let sum: u64 = browsers.filter_map(|value| value["total"].as_u64()).sum();
                ensure!(sum == expected.total, "{sum} by browser, expected {}", expected.total);
            }
        }
        Ok(())
    }
}

impl Place {
    /// Returns the number of the page, from 1.
    fn number(self, total: u64, size: u64) -> u64 {
        let pages = total.div_ceil(size).max(1);
        match self {
            Self::First => 1,
            Self::Middle => pages.div_ceil(2),
            Self::Last => pages,
        }
    }
}
