//! Style sheets, scripts and icons. Each is served at an address with a digest of its content, so
//! that browsers keep it for a year and fetch a changed one at once.

use std::{borrow::Cow, collections::HashMap};

use codes::hex;
use hyper::{
    StatusCode,
    body::Bytes,
    header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS},
};
use sha2::{Digest as _, Sha256};
use web::{Answer, TEXT, answer};

use crate::theme::Theme;

pub(crate) const PATH: &str = "/_pages/assets/";
/// The style sheet of the theme, which is made at start.
const THEME: &str = "theme.css";
const DIGEST_LEN: usize = 12;

#[derive(rust_embed::Embed)]
#[folder = "assets"]
struct Files;

/// Files by their names, each with its digest.
pub(crate) struct Assets(HashMap<Cow<'static, str>, (String, Bytes)>);

fn with_digest(bytes: Vec<u8>) -> (String, Bytes) {
    (hex(&Sha256::digest(&bytes)[..DIGEST_LEN / 2]), bytes.into())
}

impl Assets {
    /// Reads the files that are part of the program, and makes the theme's style sheet.
    pub(crate) fn new(theme: &Theme) -> Self {
        let embedded = |name: Cow<'static, str>| {
            let file = with_digest(Files::get(&name)?.data.into_owned());
            Some((name, file))
        };
        let mut files: HashMap<_, _> = Files::iter().filter_map(embedded).collect();
        files.insert(THEME.into(), with_digest(theme.style().into_bytes()));
        Self(files)
    }

    pub(crate) fn url(&self, name: &str) -> String {
        let digest = self.0.get(name).map_or("0", |(digest, _)| digest.as_str());
        format!("{PATH}{digest}/{name}")
    }

    /// Returns the media type and the content of a file that is part of the program.
    pub(crate) fn file(&self, name: &str) -> (&'static str, Bytes) {
        (content_type(name), self.0.get(name).map_or_else(Bytes::new, |(_, bytes)| bytes.clone()))
    }

    /// Answers with the file at this path below [`PATH`]. An older digest gets the present file: a
    /// page of the release before may ask another process during an update.
    pub(crate) fn serve(&self, path: &str) -> Answer {
        let found = path.split_once('/').and_then(|(digest, name)| Some((digest, name, self.0.get(name)?)));
        let Some((asked, name, (digest, bytes))) = found else {
            return answer(StatusCode::NOT_FOUND, TEXT, "no such file\n");
        };
        let mut answer = answer(StatusCode::OK, content_type(name), bytes.clone());
        let cached = if asked == digest { "public, max-age=31536000, immutable" } else { "no-store" };
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(cached));
        answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        answer
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_kept_by_its_digest_and_others_are_not_found() {
        let assets = Assets::new(&Theme::default());
        let url = assets.url("style.css");
        let served = assets.serve(url.strip_prefix(PATH).unwrap());
        assert_eq!(served.status(), StatusCode::OK);
        assert!(served.headers()[CACHE_CONTROL].to_str().unwrap().contains("immutable"));
        let older = assets.serve("000000000000/style.css");
        assert_eq!(
            (older.status(), &older.headers()[CACHE_CONTROL]),
            (StatusCode::OK, &HeaderValue::from_static("no-store"))
        );
        for path in ["", "style.css", "x/../style.css", "x/none.css"] {
            assert_eq!(assets.serve(path).status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn no_file_names_another_host() {
        for name in Files::iter() {
            let text = String::from_utf8(Files::get(&name).unwrap().data.into_owned()).unwrap();
            let addresses = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!addresses.contains("http:") && !addresses.contains("https:"), "{name}");
        }
    }
}
