//! Random secrets, different in each run.

use std::fmt::Write;

const KEY_BYTES: usize = 32;

/// Returns a new secret of 64 hexadecimal characters, valid as a code key and as an API key.
///
/// # Errors
/// Returns an error if the operating system provides no random bytes.
pub fn random_hex() -> anyhow::Result<String> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|failed| anyhow::anyhow!("read random bytes: {failed}"))?;
    let mut text = String::with_capacity(2 * KEY_BYTES);
    for byte in bytes {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}
