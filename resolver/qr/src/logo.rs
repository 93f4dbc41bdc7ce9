//! A logo in the middle of a QR code. The highest error correction makes up for the modules that it
//! covers: it restores up to 30 % of a code, and a logo covers at most a twelfth.

use std::io::Cursor;

use ::png::{ColorType, Decoder, Limits, Transformations};

use super::Drawing;

const SIDE_MAX: u32 = 1024;
/// Maximum memory that the decoder of a logo may take, in bytes.
const DECODER_BYTES: usize = 16 << 20;
/// The part of the modules on a side that a logo takes, as a divisor.
const SIDE_DIVISOR: u16 = 4;

/// A logo. An SVG contains it as it is; for a PNG its own pixels are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logo {
    pub(super) url: String,
    pub(super) pixels: Option<Pixels>,
}

/// A decoded logo: four bytes for each pixel, red, green, blue and opacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pixels {
    width: usize,
    height: usize,
    rgba: Vec<u8>,
}

impl Logo {
    /// Makes a logo from its `data:` URL, and from its file if that is a PNG. One that is damaged
    /// or too large has no pixels.
    pub fn new(url: String, png: Option<&[u8]>) -> Self {
        Self { url, pixels: png.and_then(Pixels::decode) }
    }

    /// Returns the colour of the logo over a background, at a position within a square.
    pub(super) fn color(&self, (x, y): (usize, usize), side: usize, background: [u8; 3]) -> [u8; 3] {
        let Some(pixels) = &self.pixels else { return background };
        // The longer side fills the square, and the other one is in its middle.
        let longest = pixels.width.max(pixels.height);
        let source = |at: usize, own: usize| {
            let at = at * longest / side;
            at.checked_sub((longest - own) / 2).filter(|at| *at < own)
        };
        let step = longest.div_ceil(side).max(1);
        let (Some(x), Some(y)) = (source(x, pixels.width), source(y, pixels.height)) else {
            return background;
        };
        pixels.mean((x, y), step, background)
    }
}

impl Pixels {
    fn decode(file: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new_with_limits(Cursor::new(file), Limits { bytes: DECODER_BYTES });
        decoder.set_transformations(Transformations::normalize_to_color8() | Transformations::ALPHA);
        let mut reader = decoder.read_info().ok()?;
        let (width, height) = reader.info().size();
        if width > SIDE_MAX || height > SIDE_MAX {
            return None;
        }
        let mut bytes = vec![0; reader.output_buffer_size()?];
        let frame = reader.next_frame(&mut bytes).ok()?;
        bytes.truncate(frame.buffer_size());
        let rgba = match frame.color_type {
            ColorType::Rgba => bytes,
            ColorType::GrayscaleAlpha => {
                bytes.chunks_exact(2).flat_map(|pixel| [pixel[0], pixel[0], pixel[0], pixel[1]]).collect()
            }
            _ => return None,
        };
        Some(Self { width: usize::try_from(width).ok()?, height: usize::try_from(height).ok()?, rgba })
    }

    /// Returns the mean colour of a square of pixels over a background.
    fn mean(&self, (left, top): (usize, usize), step: usize, background: [u8; 3]) -> [u8; 3] {
        let (right, bottom) = ((left + step).min(self.width), (top + step).min(self.height));
        let (mut sums, mut count) = ([0_u64; 3], 0_u64);
        for row in top..bottom {
            let start = 4 * (row * self.width + left);
            for pixel in self.rgba[start..start + 4 * (right - left)].chunks_exact(4) {
                let opacity = u64::from(pixel[3]);
                for (sum, (color, behind)) in sums.iter_mut().zip(pixel.iter().zip(background)) {
                    *sum += (u64::from(*color) * opacity + u64::from(behind) * (255 - opacity)) / 255;
                }
                count += 1;
            }
        }
        // A mean of bytes is a byte.
        sums.map(|sum| u8::try_from(sum / count.max(1)).unwrap_or(u8::MAX))
    }
}

/// Returns the square in the middle of a drawing that a logo takes, which covers whole modules, and
/// the square of the logo itself within it: their starts and sides in pixels.
pub(super) fn squares(drawing: &Drawing<'_>) -> [(usize, usize); 2] {
    // A code has an odd number of modules on a side, and so has its middle.
    let covered = (drawing.modules / SIDE_DIVISOR) | 1;
    let start = usize::from(drawing.offset + (drawing.modules - covered) / 2 * drawing.scale);
    let side = usize::from(covered * drawing.scale);
    let padding = usize::from(drawing.scale) / 2;
    [(start, side), (start + padding, side - 2 * padding)]
}
