//! Codes from a digest of the long URL: the second strategy beside minting.
//!
//! SHA-512 of the URL gives four candidates of 128 bits each, and each candidate's characters are its digits in base 62. That many bits make
//! every character of the alphabet as likely as any other, but for one part in 2^80. When all four are taken the input is salted, and gives four
//! others: so it never runs out before the codes do.

use sha2::{Digest, Sha512};

use super::{
    alphabet::{ALPHABET, BASE},
    code::MAX_LEN,
};

/// Candidates of one digest.
const CANDIDATES: usize = 4;

/// The candidates of a URL, after so many digests that were of no use. Codes have 1 to 8 characters.
#[must_use]
pub fn candidates(long_url: &str, salt: u32, len: usize) -> [String; CANDIDATES] {
    debug_assert!((1..=MAX_LEN).contains(&len));
    let mut digest = Sha512::new();
    if salt > 0 {
        digest.update(salt.to_be_bytes());
        // No URL begins with this byte, so no salted input is another URL's.
        digest.update([0]);
    }
    digest.update(long_url);
    let digest = digest.finalize();
    std::array::from_fn(|candidate| {
        let part = &digest[candidate * 16..candidate * 16 + 16];
        let mut rest = u128::from_be_bytes(part.try_into().expect("a quarter of 64 bytes has 16"));
        (0..len)
            .map(|_| {
                let digit = rest % u128::from(BASE);
                rest /= u128::from(BASE);
                char::from(ALPHABET[usize::try_from(digit).expect("a remainder of 62 fits")])
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A million URLs, each place of the first candidate and the first place of each: chi-square with 61 degrees of freedom has a mean of 61 and a
    /// standard deviation of 11; the bound is at five of them.
    #[test]
    fn every_character_is_as_likely_as_any_other() {
        const URLS: u32 = 1_000_000;
        let mut counts = [[0_u32; 128]; MAX_LEN + CANDIDATES];
        for n in 0..URLS {
            let codes = candidates(&format!("https://example.com/page/{n}"), 0, MAX_LEN);
            for (place, letter) in codes[0].bytes().enumerate() {
                counts[place][usize::from(letter)] += 1;
            }
            for (candidate, code) in codes.iter().enumerate() {
                counts[MAX_LEN + candidate][usize::from(code.as_bytes()[0])] += 1;
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
        assert_eq!(candidates(url, 0, 8), candidates(url, 0, 8));
        assert_eq!(candidates(url, 0, 8), ["MtHOB5Gv", "XE5zpjVn", "KSQinal8", "jwCChCAY"], "golden values");
        let all: HashSet<String> = (0..50).flat_map(|salt| candidates(url, salt, 8)).collect();
        assert_eq!(all.len(), 50 * CANDIDATES);
        assert_eq!(candidates(url, 0, 3)[0], candidates(url, 0, 8)[0][..3]);
    }
}
