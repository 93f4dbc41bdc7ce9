//! A map of the world whose countries are coloured by their numbers, as SVG.
//!
//! 1. The outlines are in `map/world.txt`, which `map/make.mjs` makes from Natural Earth (public
//!    domain). Each has a code of ISO 3166-1, or XK for Kosovo.
//! 2. Colours are classes of `assets/style.css`. Their levels are logarithmic, so that a country
//!    with one visit is seen beside one with a million.
//! 3. The map is one image with a title and a description. Its numbers belong in a table beside it.

use std::cmp::Reverse;

use askama::Template;

use crate::chart::Value;

/// The outlines: a code, a space and the data of a path in each line.
const WORLD: &str = include_str!("../map/world.txt");
/// The number of levels above that of countries without a number.
const LEVELS: u32 = 5;

#[derive(Debug, Template)]
#[template(path = "map.html")]
pub(crate) struct WorldMap {
    title: String,
    /// The level, the path and the text of each country.
    shapes: Vec<(u32, &'static str, Option<String>)>,
}

impl WorldMap {
    /// Draws countries, labelled by their codes. Codes that the map does not have are left out.
    pub(crate) fn new(title: String, countries: &[Value]) -> Self {
        let most = countries.iter().map(|country| country.number).max().unwrap_or(0);
        let shape = |(code, path): (&'static str, &'static str)| {
            let country = countries.iter().find(|country| country.label == code);
            let level = country.map_or(0, |country| level(country.number, most));
            (level, path, country.map(|country| country.text.clone()))
        };
        let mut shapes: Vec<_> = outlines().map(shape).collect();
        // Small countries are drawn as larger diamonds, which their neighbours must not cover.
        shapes.sort_by_key(|(_, path, _)| Reverse(path.len()));
        Self { title, shapes }
    }
}

/// Returns the codes and paths of all countries.
fn outlines() -> impl Iterator<Item = (&'static str, &'static str)> {
    WORLD.lines().filter_map(|line| line.split_once(' '))
}

/// Returns the logarithmic level of a number: the highest for the largest number, 0 for 0.
fn level(number: u64, most: u64) -> u32 {
    if number == 0 {
        return 0;
    }
    let bits = |number: u64| u64::BITS - number.leading_zeros();
    (bits(number) * LEVELS).div_ceil(bits(most).max(1)).clamp(1, LEVELS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outlines_are_paths_of_all_countries() {
        let outlines: Vec<_> = outlines().collect();
        assert_eq!(outlines.len(), WORLD.lines().count());
        for (code, path) in &outlines {
            assert!(code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase()), "{code}");
            assert!(path.starts_with('M') && path.ends_with('z'), "{code}");
            let is_path = |byte: u8| byte.is_ascii_digit() || b"Mmlz.- ".contains(&byte);
            assert!(path.bytes().all(is_path), "{code}");
        }
        for code in ["CN", "DE", "HK", "MT", "SG", "TW", "US", "XK"] {
            assert!(outlines.iter().any(|(has, _)| *has == code), "{code}");
        }
    }

    #[test]
    fn levels_grow_with_the_number_of_digits() {
        assert_eq!(
            [0, 1, 30, 1_000, 20_000, 1_000_000].map(|number| level(number, 1_000_000)),
            [0, 1, 2, 3, 4, 5]
        );
        assert_eq!([level(1, 1), level(u64::MAX, u64::MAX), level(1, u64::MAX)], [5, 5, 1]);
    }

    #[test]
    fn texts_are_escaped_and_unknown_codes_left_out() {
        let country =
            |code: &str, text: &str| Value { label: code.to_owned(), number: 3, text: text.to_owned() };
        let map = WorldMap::new("<b>".to_owned(), &[country("DE", "<i>"), country("??", "nowhere")]);
        let svg = map.render().unwrap();
        assert!(!svg.contains("<b>") && !svg.contains("<i>") && !svg.contains("nowhere"), "{}", &svg[..200]);
        assert_eq!(svg.matches("level-5").count(), 1);
    }
}
