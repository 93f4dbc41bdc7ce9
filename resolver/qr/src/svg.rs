//! SVG output: the background, and one path with a rectangle for each run of dark modules in a row.

use std::fmt::Write as _;

use super::{
    Drawing, dark_runs,
    logo::{Logo, squares},
};

pub(super) fn write(drawing: &Drawing<'_>, logo: Option<&Logo>) -> String {
    let Drawing { options, scale, offset, side, .. } = drawing;
    // The path's unit is a module; the transform scales it to pixels.
    let mut path = String::new();
    for [x, y, len] in dark_runs(&drawing.code) {
        write!(path, "M{x} {y}h{len}v1H{x}z").expect("a string takes all that is written");
    }
    let image = |logo: &Logo| {
        let [(x, width), (start, side)] = squares(drawing);
        // The URL is base64, which has nothing to escape.
        format!(
            "<rect x=\"{x}\" y=\"{x}\" width=\"{width}\" height=\"{width}\" fill=\"{}\"/>\
             <image href=\"{}\" x=\"{start}\" y=\"{start}\" width=\"{side}\" height=\"{side}\"/>",
            options.background, logo.url,
        )
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{side}\" height=\"{side}\" \
         viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\">\
         <rect width=\"{side}\" height=\"{side}\" fill=\"{}\"/>\
         <path transform=\"translate({offset} {offset}) scale({scale})\" fill=\"{}\" d=\"{path}\"/>{}</svg>",
        options.background,
        options.color,
        logo.map(image).unwrap_or_default(),
    )
}
