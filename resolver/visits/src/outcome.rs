//! Outcomes of visits.

codes::named_values! {
    /// The outcome of a request to the public site, with its name in statistics. The numbers are
    /// stored: one is never reused.
    pub enum Outcome {
        /// The visitor was redirected to the link's target, or to that of a rule.
        Redirected = 0 => "redirected",
        /// The link is disabled.
        Disabled = 1 => "disabled",
        /// The link has expired.
        Expired = 2 => "expired",
        /// The link is not valid yet.
        NotYetValid = 3 => "not-yet-valid",
        /// The link's visit limit is used up.
        LimitReached = 4 => "limit-reached",
        /// A wrong password was entered.
        WrongPassword = 5 => "wrong-password",
        /// No link has the requested code.
        UnknownCode = 6 => "unknown-code",
        /// No link can have the requested path.
        InvalidPath = 7 => "invalid-path",
        /// The root path of a domain was requested.
        BaseUrl = 8 => "base-url",
        /// The link was taken down, or its target is denied.
        TakenDown = 9 => "taken-down",
        /// The tracking pixel of a link was requested: a visit of the link, without a redirect.
        Tracked = 10 => "tracked",
    }
}

impl Outcome {
    /// Returns the outcome with a stored number, if there is one.
    pub fn from_stored(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the stored number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns whether it is a visit of its link: a redirect, or a request for its pixel.
    #[inline]
    pub fn is_of_link(self) -> bool {
        self.orphan().is_none()
    }

    /// Returns the kind of orphan visit; `None` for a visit of a link.
    #[inline]
    pub fn orphan(self) -> Option<OrphanKind> {
        match self {
            Self::Redirected | Self::Tracked => None,
            Self::BaseUrl => Some(OrphanKind::BaseUrl),
            Self::InvalidPath => Some(OrphanKind::RegularNotFound),
            Self::Disabled
            | Self::Expired
            | Self::NotYetValid
            | Self::LimitReached
            | Self::WrongPassword
            | Self::UnknownCode
            | Self::TakenDown => Some(OrphanKind::InvalidShortUrl),
        }
    }
}

codes::named_values! {
    /// A kind of visit that no link redirected, with its name in Shlink's API. The numbers are
    /// stored.
    pub enum OrphanKind {
        /// The root path of a domain.
        BaseUrl = 1 => "base_url",
        /// A code whose link does not exist or does not redirect.
        InvalidShortUrl = 2 => "invalid_short_url",
        /// A path that no link can have.
        RegularNotFound = 3 => "regular_404",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_found_by_their_numbers_and_redirects_and_pixels_are_no_orphans() {
        for (number, outcome) in (0..).zip(Outcome::ALL) {
            assert_eq!((outcome.number(), Outcome::from_stored(number)), (number, Some(outcome)));
            assert_eq!(outcome.is_of_link(), matches!(outcome, Outcome::Redirected | Outcome::Tracked));
        }
        assert_eq!(Outcome::from_stored(11), None);
    }
}
