//! Secrets that key hashes.

/// Defines a secret of 16 random bytes. Its debug form hides it.
macro_rules! secret {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Wraps 16 random bytes.
            pub fn new(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Returns the keyed hash of parts, one after another.
            fn keyed(&self, parts: &[&[u8]]) -> u64 {
                use std::hash::Hasher as _;

                use siphasher::sip128::Hasher128 as _;

                let mut hasher = siphasher::sip128::SipHasher13::new_with_key(&self.0);
                parts.iter().for_each(|part| hasher.write(part));
                hasher.finish128().h1
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(…)"))
            }
        }
    };
}

pub(crate) use secret;
