//! An append-only spool of blocks on disk: checksummed, bounded, repaired after a crash.
