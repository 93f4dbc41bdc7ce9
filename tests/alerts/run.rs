//! Runs the cases of each part on one platform, and says what was seen.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{
    case::Case,
    rules::Name,
    stage::{Setup, Stage},
};

/// How long an alert may take to fire.
const FIRES_WITHIN: Duration = Duration::from_secs(420);
/// How long all alerts of a part may take to clear. The longest short window of an objective takes
/// a quarter of an hour.
const CLEARS_WITHIN: Duration = Duration::from_secs(1_200);
/// How long pages of one case may take to clear before the next one begins.
const QUIET_WITHIN: Duration = Duration::from_secs(400);
const LOOK: Duration = Duration::from_millis(500);

/// Cases that share a platform.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// Divides the times of the rules once more: those of the objectives are the longest.
    pub(crate) faster: u32,
    pub(crate) setup: Setup,
    pub(crate) cases: Vec<Case>,
}

/// The result of a case.
pub(crate) struct Row {
    pub(crate) name: Name,
    pub(crate) fault: &'static str,
    /// Divisor of all times of the rules.
    pub(crate) factor: u32,
    /// From the fault until it fired.
    pub(crate) fired_after: Option<Duration>,
    /// From the fault's end until it did not fire any more.
    pub(crate) cleared_after: Option<Duration>,
    /// Critical alerts that fired as well and were expected.
    pub(crate) expected: Vec<String>,
    /// Critical alerts that fired as well and were not.
    pub(crate) unexpected: Vec<String>,
    /// Other alerts that fired as well, and reached nobody at night.
    pub(crate) others: Vec<String>,
    pub(crate) failure: Option<String>,
}

impl Row {
    /// Returns whether the alert fired, cleared, and sent no page that was not expected.
    pub(crate) fn is_good(&self) -> bool {
        self.failure.is_none() && self.cleared_after.is_some() && self.unexpected.is_empty()
    }
}

/// A case that ran and has perhaps not cleared yet.
struct Ran {
    case: Case,
    struck: Instant,
    fired: Option<Instant>,
    mended: Instant,
    failure: Option<String>,
}

impl Ran {
    /// Says at once what the row will say, for whoever waits.
    fn outcome(&self) -> String {
        match (&self.failure, self.fired) {
            (Some(failure), _) => failure.clone(),
            (None, fired) => format!("fired after {:.0?}", fired.map(|fired| fired - self.struck)),
        }
    }
}

/// Runs the cases of a part.
///
/// # Errors
/// Returns an error if the platform does not start.
pub(crate) async fn run(part: Part, factor: u32, tell: &dyn Fn(&str)) -> anyhow::Result<Vec<Row>> {
    let factor = factor * part.faster;
    let mut rows = Vec::new();
    let mut cases = part.cases.into_iter().peekable();
    while cases.peek().is_some() {
        tell(&format!("{}: starting the platform", part.name));
        let mut stage = Stage::start(part.setup.clone(), factor).await?;
        let mut ran: Vec<Ran> = Vec::new();
        // A failed case leaves an unknown state behind, so that the next one has a new platform.
        while ran.last().is_none_or(|last| last.failure.is_none()) {
            let Some(case) = cases.next() else { break };
            tell(&format!("{}: {}, {}", part.name, case.alert, case.fault));
            let next = try_case(&mut stage, case).await;
            tell(&format!("{}: {}", part.name, next.outcome()));
            ran.push(next);
        }
        tell(&format!("{}: waiting until all have cleared", part.name));
        clear(&stage, &ran).await;
        rows.extend(ran.into_iter().map(|ran| row(&stage, ran)));
    }
    Ok(rows)
}

async fn try_case(stage: &mut Stage, case: Case) -> Ran {
    quiet(stage, &case.name()).await;
    stage.begin(case.name(), FIRES_WITHIN);
    let outcome = (case.act)(stage).await;
    let fired = stage.fired().map(|span| span.from);
    let silent = fired.is_none().then(|| "it did not fire".to_owned());
    let failure = outcome.err().map(|failed| format!("{failed:#}")).or(silent);
    Ran { case, struck: stage.struck(), fired, mended: stage.mended(), failure }
}

/// Waits until nothing of earlier cases can be taken for the next one's.
async fn quiet(stage: &Stage, next: &Name) {
    let deadline = Instant::now() + QUIET_WITHIN;
    while Instant::now() < deadline
        && stage.watcher.firing().iter().any(|span| span.name == *next || span.is_page())
    {
        sleep(LOOK).await;
    }
}

/// Waits until all that fired has cleared.
async fn clear(stage: &Stage, ran: &[Ran]) {
    let deadline = Instant::now() + CLEARS_WITHIN;
    let is_open = |ran: &Ran| {
        ran.failure.is_none() && stage.watcher.firing().iter().any(|span| span.name == ran.case.name())
    };
    while Instant::now() < deadline && ran.iter().any(is_open) {
        sleep(LOOK).await;
    }
}

fn row(stage: &Stage, ran: Ran) -> Row {
    let name = ran.case.name();
    let spans = stage.watcher.spans();
    let is_within = |at: Instant| at >= ran.struck && at <= ran.mended;
    let own = spans.iter().find(|span| span.name == name && Some(span.from) == ran.fired);
    let mut row = Row {
        name: name.clone(),
        fault: ran.case.fault,
        factor: stage.factor,
        fired_after: ran.fired.map(|fired| fired - ran.struck),
        cleared_after: own.and_then(|span| Some(span.until?.saturating_duration_since(ran.mended))),
        expected: Vec::new(),
        unexpected: Vec::new(),
        others: Vec::new(),
        failure: ran.failure,
    };
    for span in spans.iter().filter(|span| span.name != name && is_within(span.from)) {
        let of = match span.is_page() {
            false => &mut row.others,
            true if ran.case.pages.contains(&span.name.alert.as_str()) => &mut row.expected,
            true => &mut row.unexpected,
        };
        if !of.contains(&span.name.alert) {
            of.push(span.name.alert.clone());
        }
    }
    row
}
