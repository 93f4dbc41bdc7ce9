//! Parameters that a domain adds to the destinations of its links, by its template.

use links::{Authority, Finding, location_with_added};

use crate::{Redirector, asked::Asked, follow::FoundLink};

/// Returns a `Location` with the parameters of the visited domain that it lacks.
pub(crate) fn add_query(
    redirector: &Redirector,
    asked: &Asked<'_>,
    FoundLink { link, visited, .. }: &FoundLink,
    location: String,
) -> String {
    let Some(template) = &visited.settings.query_template else { return location };
    let domain = visited.authority.as_ref().map_or(redirector.domain_cache.default_name(), Authority::as_str);
    let added = template.fill(&redirector.lookup.name_of(link).unwrap_or_default(), domain);
    let Some(to) = location_with_added(&location, &added) else { return location };
    asked.step(|| (Finding::QueryAdded, added));
    to
}
