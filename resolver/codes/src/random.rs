//! Random codes, for lengths that no keyspace has.

use super::alphabet::{ALPHABET, BASE};

/// Returns a random code of `len` characters, drawn uniformly from the alphabet.
pub fn random_code(len: usize) -> Result<String, getrandom::Error> {
    // Bytes from this value on are rejected: they would make the first characters likelier.
    let fair = 256 - 256 % BASE;
    let mut code = String::with_capacity(len);
    let mut bytes = [0; 64];
    while code.len() < len {
        getrandom::fill(&mut bytes)?;
        let digits = bytes.iter().map(|byte| u64::from(*byte)).filter(|digit| *digit < fair);
        let letters = digits.map(|digit| {
            let position = usize::try_from(digit % BASE).expect("a remainder of 62 fits");
            char::from(ALPHABET[position])
        });
        code.extend(letters.take(len - code.len()));
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_length_and_are_all_different() {
        for len in [1, 9, 64, 65, 255] {
            let code = random_code(len).unwrap();
            assert_eq!(code.len(), len);
            assert!(code.bytes().all(|byte| ALPHABET.contains(&byte)), "{code}");
        }
        assert_ne!(random_code(32).unwrap(), random_code(32).unwrap());
    }
}
