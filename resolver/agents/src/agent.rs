//! What one user agent says.

use crate::{DeviceKind, Name};

/// What a user agent says about the client, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The browser, app or bot, such as `Chrome Mobile` or `GPTBot`.
    pub browser: Name,
    /// The major version of the browser.
    pub browser_version: Name,
    /// The operating system, such as `Windows` or `iOS`.
    pub os: Name,
    /// The major version of the operating system; for Windows also `XP` and the like.
    pub os_version: Name,
    /// The kind of device, [`DeviceKind::Bot`] for every bot.
    pub device: DeviceKind,
    /// The brand of the device, such as `Apple`.
    pub brand: Name,
    /// The model of the device, such as `iPhone` or `SM-S918B`.
    pub model: Name,
    /// Whether the client is a bot: a crawler, preview, monitor or library.
    pub bot: bool,
}

impl Agent {
    /// Returns the number of bytes of the names, which lie outside the struct.
    pub(crate) fn names_len(&self) -> usize {
        let names =
            [&self.browser, &self.browser_version, &self.os, &self.os_version, &self.brand, &self.model];
        names.into_iter().filter(|name| name.is_known()).map(|name| name.as_str().len()).sum()
    }
}
