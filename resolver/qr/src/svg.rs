//! SVG output: the background, and one path with a rectangle for each run of dark modules in a row.

use std::fmt::{self, Write};

use super::drawing::Drawing;

pub(super) fn write(drawing: &Drawing<'_>) -> String {
    let mut file = String::new();
    encode(drawing, &mut file).expect("a string takes all that is written");
    file
}

fn encode(drawing: &Drawing<'_>, file: &mut String) -> fmt::Result {
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
    file.write_str("\"/></svg>")
}
