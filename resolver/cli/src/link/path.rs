//! Paths of links in the API.

use crate::{
    Error,
    client::{segment, wrong},
};

pub(super) const LINKS: &str = "short-urls";
const CODE_BYTES: usize = 1_024;

/// Returns the path of a link. Each segment of its code is percent-encoded by itself.
pub(crate) fn path_of(code: &str) -> Result<String, Error> {
    let names: Vec<&str> = code.split('/').collect();
    // As the last segment, these two would address a resource below the link.
    let is_other = names.len() > 1 && matches!(names.last(), Some(&("visits" | "redirect-rules")));
    let segments: Option<Vec<String>> = names.into_iter().map(segment).collect();
    let segments = segments.filter(|_| code.len() <= CODE_BYTES && !is_other).ok_or_else(|| {
        wrong("CODE", code, "expected a code as links show it, without the domain and a slash before it")
    })?;
    Ok(format!("{LINKS}/{}", segments.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_segment_of_a_code_is_escaped_by_itself() {
        for (code, path) in [
            ("abc123", "short-urls/abc123"),
            ("summer-sale/2026", "short-urls/summer-sale/2026"),
            ("über/短い", "short-urls/%C3%BCber/%E7%9F%AD%E3%81%84"),
            ("a.b_c~d-e!", "short-urls/a.b_c~d-e%21"),
            ("a?b#c%2F", "short-urls/a%3Fb%23c%252F"),
            ("visits", "short-urls/visits"),
            ("visits/x", "short-urls/visits/x"),
        ] {
            assert_eq!(path_of(code).unwrap(), path);
        }
        let (long, deep) = ("a".repeat(1_025), "a/".repeat(600) + "a");
        for code in [
            "",
            "/",
            "/abc",
            "abc/",
            "a//b",
            ".",
            "..",
            "a/../b",
            "abc/visits",
            "a/redirect-rules",
            &long,
            &deep,
        ] {
            let error = path_of(code).unwrap_err();
            assert!(matches!(error, Error::Config { flag: "CODE", .. }), "{code}: {error}");
        }
    }
}
