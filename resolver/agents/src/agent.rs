//! What one user agent says.

use crate::DeviceKind;

/// What a user agent says about the client, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The browser, app or bot, such as `Chrome Mobile` or `GPTBot`; `unknown` if not told.
    pub browser: Box<str>,
    /// The operating system, such as `Windows` or `iOS`; `unknown` if not told.
    pub os: Box<str>,
    /// The kind of device, [`DeviceKind::Bot`] for every bot.
    pub device: DeviceKind,
    /// Whether the client is a bot: a crawler, preview, monitor or library.
    pub bot: bool,
}
