//! Outcomes of visits.

/// What a request to the public site led to. The numbers are stored: one is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Outcome {
    /// The visitor was redirected to the link's target, or to that of a rule.
    Redirected = 0,
    /// The link is disabled.
    Disabled = 1,
    /// The link has expired.
    Expired = 2,
    /// The link is not valid yet.
    NotYetValid = 3,
    /// The link's visit limit is used up.
    LimitReached = 4,
    /// A wrong password was entered.
    WrongPassword = 5,
    /// No link has the requested code.
    UnknownCode = 6,
    /// No link can have the requested path.
    InvalidPath = 7,
    /// The root path of a domain was requested.
    BaseUrl = 8,
    /// The link was taken down, or its target is denied.
    TakenDown = 9,
    /// The tracking pixel of a link was requested: a visit of the link, without a redirect.
    Tracked = 10,
}

impl Outcome {
    /// All outcomes, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Redirected,
        Self::Disabled,
        Self::Expired,
        Self::NotYetValid,
        Self::LimitReached,
        Self::WrongPassword,
        Self::UnknownCode,
        Self::InvalidPath,
        Self::BaseUrl,
        Self::TakenDown,
        Self::Tracked,
    ];

    /// Returns the outcome with a stored number, if there is one.
    #[must_use]
    pub fn from_stored(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the stored number.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the name, as statistics show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Redirected => "redirected",
            Self::Disabled => "disabled",
            Self::Expired => "expired",
            Self::NotYetValid => "not-yet-valid",
            Self::LimitReached => "limit-reached",
            Self::WrongPassword => "wrong-password",
            Self::UnknownCode => "unknown-code",
            Self::InvalidPath => "invalid-path",
            Self::BaseUrl => "base-url",
            Self::TakenDown => "taken-down",
            Self::Tracked => "tracked",
        }
    }

    /// Returns whether it is a visit of its link: a redirect, or a request for its pixel.
    #[must_use]
    #[inline]
    pub fn is_of_link(self) -> bool {
        self.orphan().is_none()
    }

    /// Returns the kind of orphan visit; `None` for a visit of a link.
    #[must_use]
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

/// A kind of visit that no link redirected, as Shlink tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum OrphanKind {
    /// The root path of a domain.
    BaseUrl = 1,
    /// A code whose link does not exist or does not redirect.
    InvalidShortUrl = 2,
    /// A path that no link can have.
    RegularNotFound = 3,
}

impl OrphanKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::BaseUrl, Self::InvalidShortUrl, Self::RegularNotFound];

    /// Returns the name that Shlink's API uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BaseUrl => "base_url",
            Self::InvalidShortUrl => "invalid_short_url",
            Self::RegularNotFound => "regular_404",
        }
    }

    /// Returns the kind with a name of Shlink's API.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
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
        assert_eq!(OrphanKind::ALL.map(|kind| OrphanKind::parse(kind.name())), OrphanKind::ALL.map(Some));
    }
}
