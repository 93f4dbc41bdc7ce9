//! Secrets that no other run has.

use std::fmt::Write;

const KEY_BYTES: usize = 32;

/// A new secret: 64 characters in hexadecimal, as keys of the permutation and API keys may be.
///
/// # Errors
/// The operating system gives no random bytes.
pub fn random_hex() -> anyhow::Result<String> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|failed| anyhow::anyhow!("read random bytes: {failed}"))?;
    let mut text = String::with_capacity(2 * KEY_BYTES);
    for byte in bytes {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}
