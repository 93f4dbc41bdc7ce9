//! PNG output: a palette of two colours, with one bit for each pixel; with a logo, all colours.

use ::png::{BitDepth, ColorType, Compression, Encoder, Filter};

use super::{
    Drawing,
    logo::{Logo, squares},
};

const PIXELS_PER_BYTE: usize = 8;

pub(super) fn write(drawing: &Drawing<'_>, logo: Option<&Logo>) -> Vec<u8> {
    let (mut file, side) = (Vec::<u8>::new(), u32::from(drawing.side));
    let mut encoder = Encoder::new(&mut file, side, side);
    let mut bytes = pixels(drawing);
    if let Some(logo) = logo {
        bytes = colors(drawing, &bytes, logo);
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Balanced);
    } else {
        encoder.set_color(ColorType::Indexed);
        encoder.set_depth(BitDepth::One);
        encoder.set_palette([drawing.options.background.0, drawing.options.color.0].concat());
        // Equal rows compress well without a filter; a filter would only hide the repetition.
        encoder.set_compression(Compression::High);
        encoder.set_filter(Filter::NoFilter);
    }
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&bytes)?;
        writer.finish()
    });
    written.expect("memory takes all that is written, and the measures are the picture's own");
    file
}

/// Returns the colours of all pixels, three bytes each, with a logo in the middle.
fn colors(drawing: &Drawing<'_>, bits: &[u8], logo: &Logo) -> Vec<u8> {
    let side = usize::from(drawing.side);
    let (background, color) = (drawing.options.background.0, drawing.options.color.0);
    let mut colors = Vec::with_capacity(3 * side * side);
    for row in bits.chunks_exact(side.div_ceil(PIXELS_PER_BYTE)) {
        for x in 0..side {
            let is_dark = row[x / PIXELS_PER_BYTE] & (0x80 >> (x % PIXELS_PER_BYTE)) != 0;
            colors.extend(if is_dark { color } else { background });
        }
    }
    let [(outer, outer_side), (start, inner)] = squares(drawing);
    for y in outer..outer + outer_side {
        for x in outer..outer + outer_side {
            let within = x.checked_sub(start).zip(y.checked_sub(start));
            let within = within.filter(|(x, y)| *x < inner && *y < inner);
            let color = within.map_or(background, |at| logo.color(at, inner, background));
            colors[3 * (y * side + x)..][..3].copy_from_slice(&color);
        }
    }
    colors
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
