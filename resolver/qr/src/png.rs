//! PNG output: a palette of two colours, with one bit for each pixel.

use ::png::{BitDepth, ColorType, Compression, Encoder, EncodingError, Filter};

use super::drawing::Drawing;

/// The number of pixels in a byte, one for each bit.
const PIXELS_PER_BYTE: usize = 8;

pub(super) fn write(drawing: &Drawing<'_>) -> Vec<u8> {
    let mut file = Vec::new();
    encode(drawing, &mut file)
        .expect("memory takes all that is written, and the measures are the picture's own");
    file
}

fn encode(drawing: &Drawing<'_>, file: &mut Vec<u8>) -> Result<(), EncodingError> {
    let side = u32::from(drawing.side);
    let mut encoder = Encoder::new(file, side, side);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::One);
    encoder.set_palette([drawing.options.background.0, drawing.options.color.0].concat());
    // Equal rows compress well without a filter; a filter would only hide the repetition.
    encoder.set_compression(Compression::High);
    encoder.set_filter(Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels(drawing))?;
    writer.finish()
}

/// Returns the rows of pixels, each padded to whole bytes. The first pixel is the highest bit, and
/// a set bit is dark.
fn pixels(drawing: &Drawing<'_>) -> Vec<u8> {
    let (side, scale, offset) =
        (usize::from(drawing.side), usize::from(drawing.scale), usize::from(drawing.offset));
    let width = side.div_ceil(PIXELS_PER_BYTE);
    let mut pixels = vec![0; width * side];
    let mut rows = pixels.chunks_exact_mut(width).skip(offset);
    for modules in drawing.rows() {
        let mut line = vec![0; width];
        for (column, _) in modules.enumerate().filter(|(_, is_dark)| *is_dark) {
            let left = offset + column * scale;
            for x in left..left + scale {
                line[x / PIXELS_PER_BYTE] |= 0x80 >> (x % PIXELS_PER_BYTE);
            }
        }
        rows.by_ref().take(scale).for_each(|row| row.copy_from_slice(&line));
    }
    pixels
}
