//! `GET /rest/v3/short-urls/{code}`

use app::find_link::LinkName;
use links::api_key::Grant;

use super::{problem::Problem, short_url};
use crate::http::{Answer, App};

/// Shows a link.
pub(super) async fn get(app: &App, name: &LinkName, by: &Grant) -> Result<Answer, Problem> {
    short_url::answer(app, &app.links.get_link(name, by).await?).await
}
