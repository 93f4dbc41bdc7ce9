//! The icon of a host. Its first bytes decide what it is, not the host's header.

use hyper::body::Bytes;

/// The first bytes of pictures, with their media types. SVG is not among them, because it may have
/// scripts.
const FIRST_BYTES: [(&[u8], &str); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\0\0\x01\0", "image/x-icon"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
];

/// A picture that browsers show as an icon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icon {
    /// The media type of its first bytes.
    pub media_type: &'static str,
    /// The file.
    pub bytes: Bytes,
}

impl Icon {
    /// Returns the icon in a file; `None` if it is none.
    pub(crate) fn read(file: &[u8]) -> Option<Self> {
        let known = FIRST_BYTES.iter().find(|(first, _)| file.starts_with(first)).map(|(_, kind)| *kind);
        let media_type = known.or_else(|| is_webp(file).then_some("image/webp"))?;
        // A copy, because what arrived shares the buffer of its connection.
        Some(Self { media_type, bytes: Bytes::copy_from_slice(file) })
    }
}

/// Returns whether a file is WebP, whose length is in between.
fn is_webp(file: &[u8]) -> bool {
    file.starts_with(b"RIFF") && file.get(8..).is_some_and(|rest| rest.starts_with(b"WEBP"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icons_are_recognised_by_their_first_bytes() {
        for (file, media_type) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "image/png"),
            (b"\0\0\x01\0\x01\0\x10\x10", "image/x-icon"),
            (b"GIF87a\x01\0", "image/gif"),
            (b"GIF89a\x01\0", "image/gif"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
        ] {
            let icon = Icon::read(file).unwrap();
            assert_eq!((icon.media_type, &*icon.bytes), (media_type, file));
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
            "GIF88a",
            "RIFF\u{24}\0\0\0WAVEfmt ",
            "RIFFWEBP",
        ] {
            assert_eq!(Icon::read(file.as_bytes()), None, "{file}");
        }
    }
}
