//! Base64 with padding (RFC 4648, section 4), as etcd's JSON gateway encodes keys and values.
//!
//! Forty lines replace a dependency: the gateway is the only user, and speed does not matter here.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes as base64, padded with `=` to a multiple of four characters.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let sextet = word >> (18 - 6 * place) & 0x3f;
            // A group of n bytes fills n + 1 characters; the others are padding.
            let character = if place <= group.len() { ALPHABET[sextet as usize] } else { b'=' };
            text.push(char::from(character));
        }
    }
    text
}

/// Decodes padded base64.
///
/// # Errors
/// Returns an error if the text has a character outside the alphabet, or a length or padding that
/// no encoder produces.
pub fn decode(text: &str) -> anyhow::Result<Vec<u8>> {
    anyhow::ensure!(
        text.len().is_multiple_of(4),
        "base64 of {} characters: not a multiple of four",
        text.len()
    );
    let digits = text.trim_end_matches('=');
    anyhow::ensure!(text.len() - digits.len() <= 2, "base64 with more than two characters of padding");
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut word, mut bits) = (0_u32, 0_u32);
    for character in digits.bytes() {
        let sextet = ALPHABET.iter().position(|known| *known == character);
        let sextet = sextet.ok_or_else(|| anyhow::anyhow!("{character:#04x} is not a base64 character"))?;
        word = word << 6 | u32::try_from(sextet)?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(word >> bits & 0xff)?);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn the_vectors_of_rfc_4648_hold_both_ways() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn every_byte_survives_a_round_trip() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(decode(&encode(&all)).unwrap(), all);
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["Zg=", "Z===", "Zm9*", "Zg==Zg=="] {
            assert!(decode(text).is_err(), "{text}");
        }
    }
}
