//! What all ports have in common.

/// A database behind a port.
pub trait Database: Send + Sync + 'static {
    /// Returns whether other processes use the same database.
    fn is_shared(&self) -> bool;
}
