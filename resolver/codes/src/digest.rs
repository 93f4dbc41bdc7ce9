//! Codes from a digest of the long URL: the second strategy beside minting.
//!
//! The digest is keyed with the deployment's secret, so outsiders cannot compute the code of a URL.
//! Otherwise they could find out whether a URL has been shortened, or claim its codes before its
//! owner does. Prefixing the key is enough: of each digest's 512 bits at most 48 are published, too
//! few for a length extension to a longer text. Assigned codes are stored. So links whose code was
//! computed without the key still redirect, and the same URL gets another code with the key.
//!
//! SHA-512 of the key and the URL gives four candidates of 128 bits each, and each candidate's
//! characters are its digits in base 62. With that many bits every character of the alphabet is
//! equally likely, except for one part in 2^80. When all four candidates are taken the input is
//! salted, which gives four others. So candidates do not run out before the codes do.
//!
//! A code longer than a minted one continues with the digits of further digests, eight from each,
//! so that no character depends on fewer bits. Random codes, for lengths that no keyspace has, are
//! made of random bits in the same way.

use sha2::{Digest, Sha512};

use super::code::{ALPHABET, BASE, Code};

const CANDIDATES: usize = 4;

/// Returns the candidates of `len` characters after `salt` digests without a free one.
pub(super) fn candidates(key: &[u8; 32], long_url: &str, salt: u32, len: usize) -> [String; CANDIDATES] {
    let mut codes: [String; CANDIDATES] = Default::default();
    for (piece, first) in (0..len).step_by(Code::MAX_LEN).enumerate() {
        let digest = digest(key, long_url, salt, u32::try_from(piece).unwrap_or(u32::MAX));
        for (candidate, code) in codes.iter_mut().enumerate() {
            let part = &digest[candidate * 16..candidate * 16 + 16];
            let number = u128::from_be_bytes(part.try_into().expect("a quarter of 64 bytes has 16"));
            code.extend(letters(number).take(Code::MAX_LEN.min(len - first)));
        }
    }
    codes
}

/// Returns the digest of a URL for a salt and a piece. No URL begins with a zero byte, so an input
/// with a salt or a piece number is never the input of another URL.
fn digest(key: &[u8; 32], long_url: &str, salt: u32, piece: u32) -> [u8; 64] {
    let mut digest = Sha512::new();
    digest.update(key);
    if salt > 0 {
        digest.update(salt.to_be_bytes());
        digest.update([0]);
    }
    if piece > 0 {
        digest.update([0, 0]);
        digest.update(piece.to_be_bytes());
    }
    digest.update(long_url);
    digest.finalize().into()
}

/// Returns a random code of `len` characters.
pub fn random_code(len: usize) -> Result<String, getrandom::Error> {
    let mut code = String::with_capacity(len);
    while code.len() < len {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        code.extend(letters(u128::from_be_bytes(bytes)).take(Code::MAX_LEN.min(len - code.len())));
    }
    Ok(code)
}

/// Returns the digits of a number in base 62, the least significant first.
fn letters(mut number: u128) -> impl Iterator<Item = char> {
    std::iter::repeat_with(move || {
        let digit = number % u128::from(BASE);
        number /= u128::from(BASE);
        char::from(ALPHABET[usize::try_from(digit).expect("a remainder of 62 fits")])
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const KEY: [u8; 32] = [7; 32];
    const GOLDEN: [&str; CANDIDATES] = ["uiM2pSau", "5qzeCaMz", "aLKFEFFJ", "Sajr1QaB"];

    /// A million URLs, every position of the first candidate and the first position of every
    /// candidate: chi-square with 61 degrees of freedom has a mean of 61 and a standard deviation
    /// of 11; the bound is at five of them.
    #[test]
    fn every_character_is_as_likely_as_any_other() {
        const URLS: u32 = 1_000_000;
        let mut counts = [[0_u32; 128]; Code::MAX_LEN + CANDIDATES];
        for n in 0..URLS {
            let codes = candidates(&KEY, &format!("https://example.com/page/{n}"), 0, Code::MAX_LEN);
            for (place, letter) in codes[0].bytes().enumerate() {
                counts[place][usize::from(letter)] += 1;
            }
            for (candidate, code) in codes.iter().enumerate() {
                counts[Code::MAX_LEN + candidate][usize::from(code.as_bytes()[0])] += 1;
            }
        }
        let expected = f64::from(URLS) / 62.0;
        for (place, counts) in counts.iter().enumerate() {
            assert_eq!(counts.iter().sum::<u32>(), URLS);
            let of = |letter: &u8| f64::from(counts[usize::from(*letter)]);
            let chi: f64 = ALPHABET.iter().map(|letter| (of(letter) - expected).powi(2) / expected).sum();
            assert!((5.0..117.0).contains(&chi), "chi-square of place {place}: {chi}");
        }
    }

    #[test]
    fn a_url_has_the_same_candidates_for_ever_and_a_salt_gives_others() {
        let url = "https://example.com/";
        let candidates = |url, salt, len| candidates(&KEY, url, salt, len);
        assert_eq!(candidates(url, 0, 8), GOLDEN);
        assert_ne!(super::candidates(&[8; 32], url, 0, 8), GOLDEN, "another deployment's");
        let all: HashSet<String> = (0..50).flat_map(|salt| candidates(url, salt, 8)).collect();
        assert_eq!(all.len(), 50 * CANDIDATES);
        assert_eq!(candidates(url, 0, 3)[0], candidates(url, 0, 8)[0][..3]);
        let long = candidates(url, 0, 20);
        assert_eq!(long[0][..8], candidates(url, 0, 8)[0]);
        assert_eq!(long[0][..17], candidates(url, 0, 17)[0]);
        assert!(long.iter().all(|code| code.len() == 20 && code[..8] != code[8..16]));
    }

    #[test]
    fn random_codes_have_their_length_and_are_all_different() {
        for len in [1, 9, 64, 65, 255] {
            let code = random_code(len).unwrap();
            assert_eq!(code.len(), len);
            assert!(code.bytes().all(|byte| ALPHABET.contains(&byte)), "{code}");
        }
        assert_ne!(random_code(32).unwrap(), random_code(32).unwrap());
    }
}
