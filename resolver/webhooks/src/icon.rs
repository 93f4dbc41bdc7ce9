//! The icon of a host. Its first bytes decide what it is, not the host's header.

use hyper::body::Bytes;

/// Largest width and height of an icon in pixels. A file of a few kilobytes may unpack to hundreds
/// of megabytes in the browser of whoever looks at a list.
const SIDE_MAX: u32 = 512;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const ICO: &[u8] = b"\0\0\x01\0";
/// Maximum number of pictures in an ICO file.
const PICTURES_MAX: usize = 32;

/// A picture that browsers show as an icon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icon {
    /// The media type of its first bytes.
    pub media_type: &'static str,
    /// The file.
    pub bytes: Bytes,
}

impl Icon {
    /// Returns the icon in a file of PNG, ICO or GIF; `None` if it is none, or too large. SVG is
    /// not among them, because it may have scripts.
    pub(crate) fn read(file: &[u8]) -> Option<Self> {
        let (media_type, is_small) = if file.starts_with(PNG) {
            ("image/png", is_small_png(file))
        } else if file.starts_with(ICO) {
            ("image/x-icon", is_small_ico(file))
        } else if file.starts_with(b"GIF87a") || file.starts_with(b"GIF89a") {
            let side = |at| bytes_at(file, at).map(|side| u16::from_le_bytes(side).into());
            ("image/gif", are_small([side(6), side(8)]))
        } else {
            return None;
        };
        // A copy, because what arrived shares the buffer of its connection.
        is_small.then(|| Self { media_type, bytes: Bytes::copy_from_slice(file) })
    }
}

fn bytes_at<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..)?.first_chunk().copied()
}

fn are_small(sides: [Option<u32>; 2]) -> bool {
    sides.iter().all(|side| side.is_some_and(|side| side <= SIDE_MAX))
}

fn is_small_png(file: &[u8]) -> bool {
    are_small([16, 20].map(|at| bytes_at(file, at).map(u32::from_be_bytes)))
}

/// The sizes in the directory of an ICO file are not those that count: each picture has its own.
fn is_small_ico(file: &[u8]) -> bool {
    let count = bytes_at(file, 4).map_or(0, |count| usize::from(u16::from_le_bytes(count)));
    let is_small = |picture: usize| {
        let at = bytes_at(file, 6 + 16 * picture + 12).map(u32::from_le_bytes)?;
        let picture = file.get(usize::try_from(at).ok()?..)?;
        if picture.starts_with(PNG) {
            return Some(is_small_png(picture));
        }
        let side = |at| bytes_at(picture, at).map(|side| i32::from_le_bytes(side).unsigned_abs());
        // A bitmap is as high as the picture and its mask together.
        Some(are_small([side(4), side(8).map(|both| both / 2)]))
    };
    (1..=PICTURES_MAX).contains(&count) && (0..count).all(|picture| is_small(picture) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        [PNG, b"\0\0\0\rIHDR", &width.to_be_bytes(), &height.to_be_bytes()].concat()
    }

    fn gif(width: u16, height: u16) -> Vec<u8> {
        [&b"GIF89a"[..], &width.to_le_bytes(), &height.to_le_bytes()].concat()
    }

    /// Returns an ICO file whose directory says that its pictures are of 16 × 16 pixels.
    fn ico(pictures: &[Vec<u8>]) -> Vec<u8> {
        let (mut directory, mut data) = (Vec::new(), Vec::new());
        for picture in pictures {
            let at = u32::try_from(6 + 16 * pictures.len() + data.len()).unwrap();
            directory.extend(*b"\x10\x10\0\0\x01\0\x20\0\0\0\0\0");
            directory.extend(at.to_le_bytes());
            data.extend(picture);
        }
        let count = u16::try_from(pictures.len()).unwrap();
        [ICO, &count.to_le_bytes(), &directory, &data].concat()
    }

    fn bitmap(width: i32, height_of_both: i32) -> Vec<u8> {
        [&b"\x28\0\0\0"[..], &width.to_le_bytes(), &height_of_both.to_le_bytes()].concat()
    }

    #[test]
    fn icons_are_recognised_by_their_first_bytes_and_are_small() {
        for (file, media_type) in [
            (png(16, 512), "image/png"),
            (gif(16, 16), "image/gif"),
            (ico(&[bitmap(16, 32), png(256, 256), bitmap(32, -64)]), "image/x-icon"),
        ] {
            let icon = Icon::read(&file).unwrap();
            assert_eq!((icon.media_type, &*icon.bytes), (media_type, &*file));
        }
        for file in [
            png(11_000, 11_000),
            png(16, 513),
            gif(16, 513),
            ico(&[png(16, 16), png(11_000, 16)]),
            ico(&[bitmap(16, 1_026)]),
            ico(&[bitmap(i32::MIN, 32)]),
            ico(&[]),
            ico(&vec![png(16, 16); PICTURES_MAX + 1]),
        ] {
            assert_eq!(Icon::read(&file), None, "{file:?}");
        }
        // What breaks off has no size.
        for file in [png(16, 16), gif(16, 16), ico(&[bitmap(16, 32)])] {
            assert!((0..file.len()).all(|len| Icon::read(&file[..len]).is_none()), "{file:?}");
        }
    }

    #[test]
    fn other_files_are_no_icons() {
        for file in [
            "",
            "<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
            "<?xml version=\"1.0\"?><svg/>",
            "<!doctype html><title>Not found</title>",
            "\0\0\u{2}\0 a cursor",
            "GIF88a and so on",
        ] {
            assert_eq!(Icon::read(file.as_bytes()), None, "{file}");
        }
    }
}
