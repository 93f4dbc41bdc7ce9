//! Partial updates: a field without a value stays as it is.

/// Overwrites `place` if a value is given.
pub(super) fn set<T: Clone>(place: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        place.clone_from(value);
    }
}
