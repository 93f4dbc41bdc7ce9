//! Patterns of LIKE.

/// Returns a LIKE pattern for texts that contain this one. Wildcards in it are escaped.
pub(super) fn pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for one in text.chars() {
        if matches!(one, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(one);
    }
    pattern + "%"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_searched_text_means_itself() {
        assert_eq!(pattern("50%_Off\\"), "%50\\%\\_Off\\\\%");
    }
}
