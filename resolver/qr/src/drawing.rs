//! The modules of a QR code, and their place in the image.

use fast_qr::QRCode;

use super::options::{QUIET_MODULES, QrError, QrOptions};

/// A QR code with the position of its modules in the image.
pub(super) struct Drawing<'a> {
    code: QRCode,
    pub(super) options: &'a QrOptions,
    pub(super) modules: u16,
    /// Pixels on each side of a module.
    pub(super) scale: u16,
    /// Pixels above the first row of modules, and left of the first column.
    pub(super) offset: u16,
    /// Pixels on each side of the image.
    pub(super) side: u16,
}

impl<'a> Drawing<'a> {
    pub(super) fn new(code: QRCode, options: &'a QrOptions) -> Result<Self, QrError> {
        let modules = u16::try_from(code.size).expect("the largest QR code has 177 modules on a side");
        let scale = options.size / modules;
        if scale == 0 {
            // A longer text and a higher error correction need more modules.
            let expected = format!("at least {modules} pixels: this code has as many modules on a side");
            return Err(QrError::new("size", &expected));
        }
        let margin = options.margin.unwrap_or(QUIET_MODULES * scale);
        let side = options.size + 2 * margin;
        // An odd pixel goes to the right and to the bottom.
        let offset = (side - scale * modules) / 2;
        Ok(Self { code, options, modules, scale, offset, side })
    }

    /// Returns the rows of modules from the top; `true` is a dark module.
    pub(super) fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = bool>> {
        (0..usize::from(self.modules)).map(|row| self.code[row].iter().map(|module| module.value()))
    }
}
