//! Which calls use a field of a link, and how.

use serde::{Deserialize, Serialize};

/// How the calls use a field. The default is that all of them take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Use {
    pub(super) create: bool,
    pub(super) bulk: bool,
    pub(super) fill: bool,
    pub(super) edit: EditUse,
}

/// How an edit uses a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EditUse {
    /// The edit changes it.
    Taken,
    /// The edit ignores it. The code of a link never changes, and `move` changes its domain;
    /// Shlink's clients have one form for creates and edits.
    Ignored,
    /// The edit refuses it.
    Refused,
}

impl Use {
    pub(super) const ALL: Self = Self { create: true, bulk: true, fill: true, edit: EditUse::Taken };
    pub(super) const SINGLE: Self = Self { bulk: false, fill: false, ..Self::ALL };
    pub(super) const CREATE: Self = Self { edit: EditUse::Ignored, ..Self::ALL };
    pub(super) const SINGLE_CREATE: Self = Self { edit: EditUse::Ignored, ..Self::SINGLE };
    pub(super) const CODE: Self = Self { edit: EditUse::Refused, ..Self::ALL };
    pub(super) const FILL: Self = Self { create: false, bulk: false, fill: true, edit: EditUse::Ignored };
}
