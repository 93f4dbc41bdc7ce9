//! Which keyspaces a deployment may adopt: none that would give a code another meaning.

use numbers::Invalid;

use super::{code::Code, keyspace::Keyspace, minting::KeyspaceIndex};

const NAMED_MAX: usize = 5;

/// Returns those of these keyspaces that are new, with the indexes after those of the adopted ones.
/// One that shares its name or codes with an adopted one, and is not equal to it, is refused.
pub fn plan_adoption(
    adopted: &[(KeyspaceIndex, Keyspace)],
    wanted: &[Keyspace],
) -> Result<Vec<(KeyspaceIndex, Keyspace)>, Invalid> {
    let mut new: Vec<(KeyspaceIndex, Keyspace)> = Vec::new();
    for keyspace in wanted {
        let mut known = adopted.iter().chain(&new).map(|(_, other)| other);
        if known.clone().any(|other| other == keyspace) {
            continue;
        }
        if let Some(other) = known.find(|other| other.overlaps(keyspace)) {
            let reason = format!(
                "keyspace {keyspace} shares its name or codes with {other}, which this database has had \
                 before: expected the same definition, or another name and other codes"
            );
            return Err(reason.into());
        }
        let highest = adopted.iter().chain(&new).map(|(index, _)| index.get()).max().unwrap_or(0);
        let index = KeyspaceIndex::new(i64::from(highest) + 1)?;
        new.push((index, keyspace.clone()));
    }
    Ok(new)
}

/// Checks that no custom slug is a code of a new keyspace, which would mint it.
pub fn check_slugs(slugs: &[String], new: &[(KeyspaceIndex, Keyspace)]) -> Result<(), Invalid> {
    for (_, keyspace) in new {
        let is_code = |slug: &&String| Code::parse(slug).is_ok_and(|code| keyspace.contains(&code));
        let some: Vec<String> = slugs.iter().filter(is_code).take(NAMED_MAX).cloned().collect();
        if !some.is_empty() {
            let reason = format!(
                "keyspace {keyspace} has codes that are custom slugs of links, such as {}: expected other \
                 codes, or these links to be deleted, or unblocked if they are deleted already",
                some.join(", ")
            );
            return Err(reason.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyspace(text: &str) -> Keyspace {
        Keyspace::parse(text).unwrap()
    }

    fn at(index: i64, text: &str) -> (KeyspaceIndex, Keyspace) {
        (KeyspaceIndex::new(index).unwrap(), keyspace(text))
    }

    #[test]
    fn new_keyspaces_get_the_next_indexes_and_known_ones_keep_theirs() {
        let adopted = [at(1, "a=3:a-z"), at(4, "b=4:a-z")];
        let wanted = ["b=4:a-z", "c=5:a-z", "d=6:a-z", "c=5:a-z"].map(keyspace);
        assert_eq!(plan_adoption(&adopted, &wanted).unwrap(), [at(5, "c=5:a-z"), at(6, "d=6:a-z")]);
        assert_eq!(plan_adoption(&[], &wanted[..1]).unwrap(), [at(1, "b=4:a-z")]);
        let full = [at(32_767, "a=3:a-z")];
        let refused = plan_adoption(&full, &wanted).unwrap_err().to_string();
        assert!(refused.contains("expected 1 to 32767"), "{refused}");
    }

    #[test]
    fn a_keyspace_cannot_be_redefined() {
        let adopted = [at(1, "a=3:a-z")];
        let others = ["a=3:A-Z", "b=3:x-z", "a=4:a-z", "a=3:a-z:hand-picked"];
        for other in others.into_iter().chain(["a=3:a-z:crockford", "b=3:0:crockford"]) {
            let refused = plan_adoption(&adopted, &[keyspace(other)]).unwrap_err();
            assert!(refused.to_string().contains("which this database has had before"), "{refused}");
        }
        let overlapping = ["b=4:a-m", "c=4:m-z"].map(keyspace);
        assert!(plan_adoption(&adopted, &overlapping).is_err(), "nor overlap another new one");
        let adopted = [at(1, "a=3:0-9a-z:crockford")];
        for other in ["a=3:0-9a-z", "b=3:I", "b=3:Z", "a=3:0-9:crockford", "a=3:0-9a-z:crockford:check"] {
            assert!(plan_adoption(&adopted, &[keyspace(other)]).is_err(), "{other}");
        }
        assert!(plan_adoption(&adopted, &[keyspace("b=3:U"), keyspace("c=4:A-Z")]).is_ok());
    }

    #[test]
    fn a_keyspace_has_no_codes_that_are_slugs() {
        let slugs = ["Abc", "abc", "abcd"].map(str::to_owned);
        assert_eq!(check_slugs(&slugs, &[at(1, "a=3:0-9")]), Ok(()));
        assert!(check_slugs(&["AOL".to_owned()], &[at(1, "a=3:a-z:crockford")]).is_err(), "in any spelling");
        let refused = check_slugs(&slugs, &[at(1, "a=3:0-9"), at(2, "b=3:a-z")]).unwrap_err();
        let expected = "keyspace b=3:a-z has codes that are custom slugs of links, such as abc:";
        assert!(refused.to_string().starts_with(expected), "{refused}");
    }
}
