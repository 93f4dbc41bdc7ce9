//! The gRPC contracts of Shortmint, generated from the `.proto` files beside this one.
//!
//! A contract is versioned by its package (`shortmint.issuer.v1`): fields are added, never renumbered or
//! given another meaning. The comments in the `.proto` files are the documentation.

/// `shortmint.issuer.v1`: how resolvers get blocks of numbers from the issuer.
pub mod issuer {
    #[expect(missing_docs, reason = "the generator documents messages and fields, not its own modules")]
    pub mod v1 {
        tonic::include_proto!("shortmint.issuer.v1");
    }
}

/// `shortmint.links.v1`: how other services create and manage short links.
pub mod links {
    #[expect(missing_docs, reason = "the generator documents messages and fields, not its own modules")]
    pub mod v1 {
        tonic::include_proto!("shortmint.links.v1");
    }
}

/// The encoded descriptors of every contract, for gRPC server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
