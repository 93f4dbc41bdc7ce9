//! The title of an HTML page, from the page's first bytes.
//!
//! One pass in time linear to the bytes, without a tree: comments, scripts, styles and pictures are
//! passed over, and the first `<title>` counts. A parser of HTML was rejected: none is in the tree,
//! and what a page is wanted for is one line of text.

use std::borrow::Cow;

/// The longest title in bytes, with its entities. A longer one is cut.
const TITLE_BYTES: usize = 4 * 1024;
/// The first bytes of a page, in which it names its encoding (HTML, section 4.2.5.4).
const CHARSET_WITHIN: usize = 1_024;
/// The longest name of an element or entity that is told from others.
const NAME_MAX: usize = 10;

/// Elements whose content is no markup of the page, or has titles of its own.
const PASSED_OVER: [&str; 5] = ["script", "style", "svg", "template", "textarea"];

/// Encodings that the web reads as windows-1252 (Encoding Standard, section 4.2).
const LATIN: [&str; 6] = ["ascii", "us-ascii", "iso-8859-1", "latin1", "l1", "windows-1252"];

/// The characters of windows-1252 from 0x80 to 0x9f; the others are those of Unicode.
const WINDOWS_1252: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2c6}',
    '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}', '\u{90}', '\u{2018}',
    '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}',
    '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
];

/// Named entities that titles have. Others stay as they are written.
const ENTITIES: [(&str, char); 14] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("ndash", '\u{2013}'),
    ("mdash", '\u{2014}'),
    ("lsquo", '\u{2018}'),
    ("rsquo", '\u{2019}'),
    ("laquo", '\u{ab}'),
    ("raquo", '\u{bb}'),
    ("middot", '\u{b7}'),
    ("hellip", '\u{2026}'),
];

/// The end of a title's text.
pub(crate) const END: &str = "</title";

/// Returns the title of a page in one line, without controls of the direction of text that reach
/// beyond it. Its encoding is that of the header `Content-Type`, or
/// else the one that the page names; both yield to text that is UTF-8. `None` if there is no title,
/// or in an encoding other than UTF-8 and windows-1252.
pub(crate) fn title_of(page: &[u8], content_type: &[u8]) -> Option<String> {
    let raw = raw_title(page)?;
    let head = &page[..page.len().min(CHARSET_WITHIN)];
    let charset = charset(content_type).or_else(|| charset(head));
    let is_latin = charset.is_none_or(|name| LATIN.contains(&&*name));
    let mut text = with_characters(&decode(&raw[..raw.len().min(TITLE_BYTES)], is_latin)?);
    // They would turn what is shown behind the title too.
    text.retain(|character| !matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
    let is_between = |character: char| character.is_whitespace() || character.is_control();
    let words: Vec<&str> = text.split(is_between).filter(|word| !word.is_empty()).collect();
    Some(words.join(" ")).filter(|title| !title.is_empty())
}

/// Returns where a text begins, which is in small letters and found in any.
pub(crate) fn find(page: &[u8], text: &str, from: usize) -> Option<usize> {
    let mut windows = page.get(from..)?.windows(text.len());
    windows.position(|window| window.eq_ignore_ascii_case(text.as_bytes())).map(|at| from + at)
}

fn raw_title(page: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        at += page.get(at..)?.iter().position(|byte| *byte == b'<')?;
        let tag = &page[at..];
        if tag.starts_with(b"<!--") {
            at = find(page, "-->", at + 2)?;
            continue;
        }
        let name = name_of(tag);
        if name.is_empty() {
            at += 1;
            continue;
        }
        let inner = end_of_tag(page, at)?;
        if name == "title" {
            return Some(&page[inner..find(page, END, inner)?]);
        }
        at = if PASSED_OVER.contains(&&*name) { find(page, &format!("</{name}"), inner)? } else { inner };
    }
}

/// Returns the name of the element that a tag begins; empty for other tags and text.
fn name_of(tag: &[u8]) -> String {
    let is_name = |byte: &&u8| !byte.is_ascii_whitespace() && !matches!(byte, b'>' | b'/');
    let name = tag.iter().skip(1).take_while(is_name).take(NAME_MAX);
    let name: String = name.map(|byte| char::from(byte.to_ascii_lowercase())).collect();
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) { name } else { String::new() }
}

/// Returns where the text behind a tag begins. Values of attributes in quotation marks may have
/// `>`.
fn end_of_tag(page: &[u8], at: usize) -> Option<usize> {
    let (mut quote, mut before) = (None, b' ');
    for (offset, byte) in page[at..].iter().copied().enumerate() {
        match quote {
            Some(open) if open == byte => quote = None,
            Some(_) => {}
            None if byte == b'>' => return Some(at + offset + 1),
            None if matches!(byte, b'"' | b'\'') && before == b'=' => quote = Some(byte),
            None => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    None
}

/// Returns the encoding that a header or the beginning of a page names.
fn charset(text: &[u8]) -> Option<String> {
    const NAME: &str = "charset=";
    let value = &text[find(text, NAME, 0)? + NAME.len()..];
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let name = value.iter().skip_while(|byte| matches!(byte, b'"' | b'\'' | b' ')).take_while(is_name);
    Some(name.map(|byte| char::from(byte.to_ascii_lowercase())).collect())
}

fn decode(raw: &[u8], is_latin: bool) -> Option<Cow<'_, str>> {
    match str::from_utf8(raw) {
        Ok(text) => Some(text.into()),
        // A character was cut in the middle.
        Err(error) if error.error_len().is_none() && raw.len() == TITLE_BYTES => {
            str::from_utf8(&raw[..error.valid_up_to()]).ok().map(Cow::Borrowed)
        }
        Err(_) if is_latin => Some(raw.iter().map(|byte| latin(*byte)).collect()),
        Err(_) => None,
    }
}

fn latin(byte: u8) -> char {
    let special = byte.checked_sub(0x80).and_then(|index| WINDOWS_1252.get(usize::from(index)));
    special.copied().unwrap_or(char::from(byte))
}

/// Replaces the entities of a text by their characters.
fn with_characters(text: &str) -> String {
    let mut pieces = text.split('&');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let entity = piece.split_once(';').and_then(|(name, rest)| Some((character(name)?, rest)));
        let (character, rest) = entity.unwrap_or(('&', piece));
        plain.push(character);
        plain.push_str(rest);
    }
    plain
}

fn character(entity: &str) -> Option<char> {
    if entity.len() > NAME_MAX {
        return None;
    }
    let Some(number) = entity.strip_prefix('#') else {
        return ENTITIES.iter().find(|(name, _)| *name == entity).map(|(_, character)| *character);
    };
    let number = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    let number = number.ok()?;
    // Numbers of windows-1252 are meant as such (HTML, section 13.2.5.80).
    let character = u8::try_from(number).ok().filter(|byte| *byte >= 0x80).map(latin);
    character.or_else(|| char::from_u32(number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn title(page: &str) -> Option<String> {
        title_of(page.as_bytes(), b"text/html")
    }

    #[test]
    fn the_first_title_of_the_markup_counts() {
        for (page, expected) in [
            ("<!doctype html><html><head><title>One</title><title>Two</title>", Some("One")),
            ("<TITLE lang='en'\n data-x=\">\" >\n One \t line </Title>", Some("One line")),
            ("<!-- <title>no</title> --><title>Yes</title>", Some("Yes")),
            ("<!--><title>Yes</title>", Some("Yes")),
            ("<script>'<title>no</title>'</script><title>Yes</title>", Some("Yes")),
            ("<style></style><svg><title>no</title></svg><title>Yes</title>", Some("Yes")),
            ("<meta content=\"<title>no</title>\"><title>Yes</title>", Some("Yes")),
            ("<p title=it's>1 < 2 <title>Yes</title>", Some("Yes")),
            ("<titles>no</titles><title-bar>no</title-bar>", None),
            ("<title>never ends", None),
            ("<title> \n </title>", None),
            ("<title", None),
            ("no page", None),
            ("", None),
        ] {
            assert_eq!(title(page).as_deref(), expected, "{page}");
        }
    }

    #[test]
    fn entities_become_characters_and_no_markup() {
        for (text, expected) in [
            ("Q&amp;A &lt;b&gt; &quot;x&apos; &#39;&#X1F9A3;&hellip;", "Q&A <b> \"x' '\u{1f9a3}\u{2026}"),
            ("a&nbsp;b&#10;c&#0;d", "a b c d"),
            ("a\u{2067}b&#x202e;c&#8297;\u{200f}d", "abc\u{200f}d"),
            ("&#150;&#x80;", "\u{2013}\u{20ac}"),
            (
                "a & b; &unknown; &amp &#xd800; &#99999999999;",
                "a & b; &unknown; &amp &#xd800; &#99999999999;",
            ),
            ("&amp;amp;", "&amp;"),
        ] {
            assert_eq!(title(&format!("<title>{text}</title>")).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn the_encoding_is_the_headers_the_pages_or_utf_8() {
        let latin: &[u8] = b"<title>\xc4pfel \x96 M\xfcsli</title>";
        let read = |page: &[u8], content_type: &str| title_of(page, content_type.as_bytes());
        let apples = Some("Äpfel \u{2013} Müsli".to_owned());
        assert_eq!(read(latin, "text/html; charset=ISO-8859-1"), apples);
        assert_eq!(read(latin, "text/html"), apples, "as browsers read it");
        let named = [b"<meta charset='windows-1252'>", latin].concat();
        assert_eq!(read(&named, "text/html"), apples);
        assert_eq!(read(latin, "text/html; charset=shift_jis"), None);
        assert_eq!(read(&named, "text/html; charset=\"koi8-r\""), None, "the header goes before the page");
        let utf_8 = "<title>Äpfel \u{2013} Müsli</title>".as_bytes();
        assert_eq!(read(utf_8, "text/html; charset=latin1"), apples, "no Latin text is UTF-8 by accident");
    }

    #[test]
    fn a_long_title_is_cut_between_characters() {
        let long = format!("<title>x{}</title>", "ü".repeat(TITLE_BYTES));
        assert_eq!(title(&long).map(|title| title.len()), Some(TITLE_BYTES - 1));
    }

    proptest! {
        #[test]
        fn no_page_makes_the_parser_panic(page in "(<[a-z/!-]{0,8}|title|script|[>&#;x\"'= ü-]|\\PC){0,40}") {
            let _: Option<String> = title(&page);
        }

        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let page = [b"<title>", &bytes[..], b"</title>"].concat();
            let _: Option<String> = title_of(&page, &bytes);
        }
    }
}
