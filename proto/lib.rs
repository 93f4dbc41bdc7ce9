//! The gRPC contracts of Shortmint, generated from the `.proto` files beside this one.
//!
//! A contract is versioned by its package (`shortmint.issuer.v1`). Fields are added, but never
//! renumbered or given another meaning. The comments in the `.proto` files are the documentation.

/// The package `shortmint.issuer.v1`: allocation of blocks of numbers to resolvers.
pub mod issuer {
    #[expect(missing_docs, reason = "the generator documents messages and fields, not its own modules")]
    pub mod v1 {
        tonic::include_proto!("shortmint.issuer.v1");
    }
}

/// The package `shortmint.links.v1`: creation and management of short links by other services.
pub mod links {
    #[expect(missing_docs, reason = "the generator documents messages and fields, not its own modules")]
    pub mod v1 {
        tonic::include_proto!("shortmint.links.v1");
    }
}

/// Encoded file descriptors of all contracts, for gRPC server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
