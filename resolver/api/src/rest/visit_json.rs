//! Visits and their numbers as answers show them, in Shlink's shapes.

use app::list_visits::VisitView;
use store::VisitTotals;
use visits::{OrphanKind, PlaceText};

use super::json::atom;

/// Returns totals as answers show them.
pub(super) fn summary(totals: VisitTotals) -> dto::VisitsSummary {
    dto::VisitsSummary::new(totals.total, totals.bots)
}

pub(super) fn shown(visit: &VisitView) -> dto::Visit<'_> {
    dto::Visit {
        referer: &visit.referrer,
        date: atom(visit.at),
        user_agent: &visit.user_agent,
        visit_location: visit.place.as_deref().map(location),
        potential_bot: visit.is_bot,
        visited_url: visit.visited_url.as_deref(),
        redirect_url: visit.redirect_url.as_deref(),
        r#type: visit.orphan.map(OrphanKind::as_str),
    }
}

fn location(place: &PlaceText) -> dto::VisitLocation<'_> {
    dto::VisitLocation {
        country_code: &place.country,
        country_name: &place.country_name,
        region_name: &place.region,
        city_name: &place.city,
        latitude: place.latitude,
        longitude: place.longitude,
        timezone: &place.time_zone,
        is_empty: place.is_empty(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in super::super) fn visit() -> VisitView {
        VisitView {
            referrer: "https://a.b/".into(),
            at: "2026-11-25T10:00:00.999999Z".parse().unwrap(),
            user_agent: "curl".into(),
            place: None,
            is_bot: true,
            visited_url: Some("https://s.test/abc".into()),
            redirect_url: None,
            orphan: None,
        }
    }

    #[test]
    fn a_visit_has_shlinks_shape_and_only_an_orphan_visit_has_a_type() {
        let plain = serde_json::to_value(shown(&visit())).unwrap();
        let expected = json!({
            "referer": "https://a.b/", "date": "2026-11-25T10:00:00+00:00", "userAgent": "curl",
            "visitLocation": null, "potentialBot": true, "visitedUrl": "https://s.test/abc", "redirectUrl": null,
        });
        assert_eq!(plain, expected);
        let place = PlaceText { country: "DE".to_owned(), latitude: 52.5, ..PlaceText::default() };
        let orphan = VisitView { orphan: Some(OrphanKind::BaseUrl), place: Some(place.into()), ..visit() };
        let orphan = serde_json::to_value(shown(&orphan)).unwrap();
        assert_eq!(orphan["type"], "base_url");
        let location = json!({
            "countryCode": "DE", "countryName": "", "regionName": "", "cityName": "", "latitude": 52.5,
            "longitude": 0.0, "timezone": "", "isEmpty": false,
        });
        assert_eq!(orphan["visitLocation"], location);
    }
}
