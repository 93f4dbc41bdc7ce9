//! The state of the platform, for operators: who leads, who holds numbers, and where they are.

use app::cluster::{ClusterStatus, balances, left};
use askama::Template;
use hyper::StatusCode;
use web::Answer;

use crate::{context::Context, error::PageError, frame::Frame, locale::Locale};

pub(crate) const PATH: &str = "/cluster";

#[derive(Template)]
#[template(path = "cluster.html")]
struct ClusterPage<'a> {
    frame: Frame<'a>,
    status: ClusterStatus,
}

fn percent(part: &u64, whole: &u64) -> String {
    let hundredths = (u128::from(*part) * 10_000).checked_div(u128::from(*whole)).unwrap_or(0);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Says how long something lasts; `None` if it is not used.
fn lasts(seconds: &Option<f64>, t: &Locale) -> String {
    let seconds = seconds.unwrap_or(f64::INFINITY);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of hours")]
    match seconds / 3600.0 {
        hours if hours < 1.0 => t.count("cluster-minutes", &((seconds / 60.0) as u64)),
        hours if hours < 48.0 => t.count("cluster-hours", &(hours as u64)),
        hours if hours.is_finite() => t.count("cluster-days", &((hours / 24.0) as u64)),
        _ => t.text("cluster-unused"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds stay below 2^53")]
fn holder_lasts(ms: &Option<u64>, t: &Locale) -> String {
    lasts(&ms.map(|ms| (ms / 1_000) as f64), t)
}

pub(crate) async fn show(context: &Context<'_>) -> Result<Answer, PageError> {
    let status = context.links.cluster_status(context.by).await?;
    Ok(context.page(StatusCode::OK, &ClusterPage { frame: context.frame(PATH), status }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_down_and_survive_large_numbers() {
        assert_eq!(percent(&1, &3), "33.33 %");
        assert_eq!(percent(&0, &0), "0.00 %");
        assert_eq!(percent(&u64::MAX, &u64::MAX), "100.00 %");
    }
}
