//! SVG output: the background, and one path with a rectangle for each run of dark modules in a row.

use std::fmt::{self, Write};

use super::{
    Drawing,
    logo::{Logo, squares},
};

pub(super) fn write(drawing: &Drawing<'_>, logo: Option<&Logo>) -> String {
    let mut file = String::new();
    encode(drawing, logo, &mut file).expect("a string takes all that is written");
    file
}

fn encode(drawing: &Drawing<'_>, logo: Option<&Logo>, file: &mut String) -> fmt::Result {
    let Drawing { options, scale, offset, side, .. } = drawing;
    write!(
        file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{side}\" height=\"{side}\" \
         viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\">\
         <rect width=\"{side}\" height=\"{side}\" fill=\"{}\"/>\
         <path transform=\"translate({offset} {offset}) scale({scale})\" fill=\"{}\" d=\"",
        options.background, options.color,
    )?;
    // The path's unit is a module; the transform scales it to pixels.
    for (y, modules) in drawing.rows().enumerate() {
        let row: Vec<bool> = modules.collect();
        let mut x = 0;
        for run in row.chunk_by(|left, right| left == right) {
            if run[0] {
                write!(file, "M{x} {y}h{}v1H{x}z", run.len())?;
            }
            x += run.len();
        }
    }
    file.write_str("\"/>")?;
    if let Some(logo) = logo {
        let ([(x, width), (start, side)], background) = (squares(drawing), options.background);
        // The URL is base64, which has nothing to escape.
        write!(
            file,
            "<rect x=\"{x}\" y=\"{x}\" width=\"{width}\" height=\"{width}\" fill=\"{background}\"/>\
             <image href=\"{}\" x=\"{start}\" y=\"{start}\" width=\"{side}\" height=\"{side}\"/>",
            logo.url,
        )?;
    }
    file.write_str("</svg>")
}
