//! `POST /rest/v3/short-urls/{code}/restore`, an addition to Shlink's API.

use app::find_link::LinkName;
use links::api_key::Grant;

use super::{problem::Problem, short_url};
use crate::http::{Answer, App};

/// Restores the link that was deleted last under a name.
pub(super) async fn restore(app: &App, name: &LinkName, by: &Grant) -> Result<Answer, Problem> {
    short_url::answer(app, &app.links.restore_link(name, by).await?).await
}
