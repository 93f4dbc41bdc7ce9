//! Why a request for a short URL is answered as it is: an example of a request, and the steps of
//! the decision about it.

use std::{net::IpAddr, sync::Arc};

use jiff::Timestamp;

use crate::{Link, LinkState, Protocol};

/// An example of a request for a short URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Scheme of the connection.
    pub scheme: Protocol,
    /// Host, with the port if the URL has one, as browsers send it.
    pub host: String,
    /// Path, escaped as browsers send it.
    pub path: String,
    /// Query without the question mark; empty if there is none.
    pub query: String,
    /// `User-Agent` header; empty if absent.
    pub user_agent: String,
    /// `Accept-Language` header; empty if absent.
    pub accept_language: String,
    /// Address of the visitor.
    pub ip: IpAddr,
    /// Country that a proxy names; `None` to locate the address.
    pub country: Option<String>,
    /// Moment of the visit; `None` for now.
    pub at: Option<Timestamp>,
}

codes::named_values! {
    /// A step of the decision and its outcome. The name of the step ends at the first dash.
    pub enum Finding {
        /// The host is that of the default domain.
        DomainDefault => "domain-default",
        /// The host is that of another domain.
        DomainOther => "domain-other",
        /// No domain has the host: the default domain answers.
        DomainUnknown => "domain-unknown",
        /// The domain of the host is disabled.
        DomainDisabled => "domain-disabled",
        /// The path is the root of the domain.
        NameRoot => "name-root",
        /// No link can have the path, nor another name that it may be meant as.
        NameImpossible => "name-impossible",
        /// A link has exactly this name.
        NameExact => "name-exact",
        /// A link has the name in small letters.
        NameLowered => "name-lower-case",
        /// A link has the name before a slash or punctuation mark at the end.
        NameTrailing => "name-trailing",
        /// A link has the name that the path continues.
        NamePrefix => "name-prefix",
        /// The link that catches all paths of the domain answers.
        NameCatchAll => "name-catch-all",
        /// A link has the name that the path continues, and such a path is not for it.
        NameRefused => "name-refused",
        /// No link has any of the names.
        NameUnknown => "name-unknown",
        /// It is not known now whether a link has the name.
        NameUnanswered => "name-unanswered",
        /// The link redirects.
        StateLive => "state-live",
        /// The link is deleted.
        StateDeleted => "state-deleted",
        /// The link was taken down.
        StateBlocked => "state-blocked",
        /// The link is disabled.
        StateDisabled => "state-disabled",
        /// The link has expired.
        StateExpired => "state-expired",
        /// The link is not valid yet.
        StateNotYetValid => "state-not-yet-valid",
        /// Only a later release can read the link.
        StateUnreadable => "state-unreadable",
        /// The path asks for a preview of the link.
        PreviewShown => "preview-shown",
        /// The crawler of a chat or a social network gets the link's own preview.
        PreviewOwn => "preview-own",
        /// The link has a password; the steps behind this one are those of a visitor with it.
        PasswordAsked => "password-asked",
        /// The link has visits left.
        VisitsLeft => "visits-left",
        /// The visits of the link are used up.
        VisitsSpent => "visits-spent",
        /// The request is a crawler's, which uses up no visit and does not get the target.
        VisitsCrawler => "visits-crawler",
        /// The visitor has to confirm that a visit of the limit is to be used up.
        VisitsConfirm => "visits-confirm",
        /// All conditions of the rule hold.
        RuleMatches => "rule-matches",
        /// A condition of the rule does not hold.
        RuleDiffers => "rule-differs",
        /// Only a later release can read the rule, which matches no request in this one.
        RuleUnreadable => "rule-unreadable",
        /// The target rules allow the target.
        TargetAllowed => "target-allowed",
        /// A target rule denies the target.
        TargetDenied => "target-denied",
        /// The pattern of the rule that denies the target.
        TargetPattern => "target-pattern",
        /// The path behind the link's name is made part of the target, or passed over.
        PathApplied => "path-applied",
        /// The query is made part of the target.
        QueryForwarded => "query-forwarded",
        /// The query is not passed on.
        QueryDropped => "query-dropped",
        /// The domain's parameters are added to the target, as far as it lacks them.
        QueryAdded => "query-added",
        /// The link has ended, and its own URL for that is used.
        FallbackExpiredLink => "fallback-expired-link",
        /// The link has ended, and the domain's URL for that is used.
        FallbackExpiredDomain => "fallback-expired-domain",
        /// The keyspace's fallback target is used.
        FallbackKeyspace => "fallback-keyspace",
        /// The domain's fallback target is used.
        FallbackDomain => "fallback-domain",
        /// The operator's fallback target is used.
        FallbackOperator => "fallback-operator",
        /// A fallback target is too long with this path, or denied.
        FallbackUnusable => "fallback-unusable",
        /// There is no fallback target, so a page is shown.
        FallbackNone => "fallback-none",
    }
}

impl Finding {
    /// Returns the names of the step and of its outcome.
    pub fn parts(self) -> (&'static str, &'static str) {
        self.as_str().split_once('-').unwrap_or((self.as_str(), ""))
    }
}

impl From<LinkState> for Finding {
    fn from(state: LinkState) -> Self {
        match state {
            LinkState::Deleted => Self::StateDeleted,
            LinkState::Blocked => Self::StateBlocked,
            LinkState::Disabled => Self::StateDisabled,
            LinkState::Expired => Self::StateExpired,
            LinkState::NotYetValid => Self::StateNotYetValid,
            LinkState::Live => Self::StateLive,
        }
    }
}

/// A step of the decision about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The step and its outcome.
    pub finding: Finding,
    /// What it is about, in no language: a domain, names, a time, a rule, a URL; may be empty.
    pub detail: String,
}

/// Why a request is answered as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The steps in their order.
    pub steps: Vec<Step>,
    /// The link that was found, whatever its state.
    pub link: Option<Arc<Link>>,
    /// Status of the answer.
    pub status: u16,
    /// `Location` of the answer, if it is a redirect.
    pub location: Option<String>,
    /// Name of the page that is shown in place of a redirect.
    pub page: Option<&'static str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_names_a_step_and_an_outcome() {
        for finding in Finding::ALL {
            let (step, outcome) = finding.parts();
            assert!(!step.is_empty() && !outcome.is_empty(), "{finding:?}");
        }
        assert_eq!(Finding::NameLowered.parts(), ("name", "lower-case"));
    }
}
