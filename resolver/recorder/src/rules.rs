//! The operator's rules for which visits are recorded, and how much of each.

use std::net::IpAddr;

use ipnet::IpNet;
use url::form_urlencoded;
use visits::Outcome;

/// Which visits are recorded, and how much of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureRules {
    /// The name of a query parameter with which a visit is left out, whatever its value.
    pub skip_param: Option<Box<str>>,
    /// Networks whose visits are left out.
    pub skip_from: Vec<IpNet>,
    /// Whether visits are recorded that no link redirected.
    pub orphans: bool,
    /// Whether the `Referer` header is recorded.
    pub referrers: bool,
    /// Whether the `User-Agent` header is recorded.
    pub user_agents: bool,
    /// Whether it is recorded that a visitor asked not to be tracked.
    pub opt_out: bool,
}

impl Default for CaptureRules {
    /// Every visit. Requests not to be tracked are not respected.
    fn default() -> Self {
        Self {
            skip_param: None,
            skip_from: Vec::new(),
            orphans: true,
            referrers: true,
            user_agents: true,
            opt_out: false,
        }
    }
}

impl CaptureRules {
    /// The rules of a process that keeps no visits: only those of links are recorded, for the
    /// removal of unvisited links, and without their headers.
    pub fn least() -> Self {
        Self { orphans: false, referrers: false, user_agents: false, ..Self::default() }
    }

    /// Returns whether a visit is recorded.
    #[inline]
    pub fn record(&self, outcome: Outcome, client: IpAddr, query: Option<&str>) -> bool {
        (self.orphans || outcome.is_of_link())
            && (self.skip_from.is_empty() || !self.skips_from(client))
            && (self.skip_param.is_none() || !query.is_some_and(|query| self.skips_query(query)))
    }

    fn skips_from(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        self.skip_from.iter().any(|network| network.contains(&client))
    }

    fn skips_query(&self, query: &str) -> bool {
        let mut names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
        names.any(|name| self.skip_param.as_deref() == Some(&*name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_left_out_by_parameter_network_and_outcome() {
        let rules = CaptureRules {
            skip_param: Some("no track".into()),
            skip_from: vec!["192.0.2.0/24".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
            orphans: false,
            ..CaptureRules::default()
        };
        let records = |outcome, client: &str, query| rules.record(outcome, client.parse().unwrap(), query);
        let redirected = |client, query| records(Outcome::Redirected, client, query);
        for query in [None, Some(""), Some("a=no+track"), Some("notrack"), Some("no%20tracking=1")] {
            assert!(redirected("198.51.100.1", query), "{query:?}");
        }
        for query in ["no+track", "a=1&no%20track=0", "no%20track=&a"] {
            assert!(!redirected("198.51.100.1", Some(query)), "{query}");
        }
        for client in ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1"] {
            assert!(!redirected(client, None), "{client}");
        }
        assert!(!records(Outcome::UnknownCode, "198.51.100.1", None));
        let all = CaptureRules::default();
        assert!(all.record(Outcome::BaseUrl, "192.0.2.7".parse().unwrap(), Some("no+track")));
    }
}
