//! Which keyspaces a deployment may adopt: none that would give a code another meaning.

use super::{
    code::Code,
    keyspace::Keyspace,
    minting::{IndexError, KeyspaceIndex},
};

/// The maximum number of slugs that an error names.
const NAMED_MAX: usize = 5;

/// Why keyspaces cannot be adopted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdoptionError {
    /// A keyspace shares its name or codes with an adopted one, and is not equal to it.
    #[error(
        "keyspace {0} shares its name or codes with {1}, which this database has had before: \
         expected the same definition, or another name and other codes"
    )]
    Overlap(Keyspace, Keyspace),
    /// Custom slugs are codes of a keyspace.
    #[error(
        "keyspace {keyspace} has codes that are custom slugs of links, such as {}: expected other codes, or these \
         links to be deleted, or unblocked if they are deleted already",
        .slugs.join(", ")
    )]
    Slugs {
        /// The keyspace.
        keyspace: Keyspace,
        /// Some of the slugs.
        slugs: Vec<String>,
    },
    /// All indexes are in use.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// Returns those of these keyspaces that are new, with the indexes after those of the adopted ones.
pub fn plan_adoption(
    adopted: &[(KeyspaceIndex, Keyspace)],
    wanted: &[Keyspace],
) -> Result<Vec<(KeyspaceIndex, Keyspace)>, AdoptionError> {
    let mut new: Vec<(KeyspaceIndex, Keyspace)> = Vec::new();
    for keyspace in wanted {
        let mut known = adopted.iter().chain(&new).map(|(_, other)| other);
        if known.clone().any(|other| other == keyspace) {
            continue;
        }
        if let Some(other) = known.find(|other| other.overlaps(keyspace)) {
            return Err(AdoptionError::Overlap(keyspace.clone(), other.clone()));
        }
        let highest = adopted.iter().chain(&new).map(|(index, _)| index.get()).max().unwrap_or(0);
        new.push((KeyspaceIndex::new(i64::from(highest) + 1)?, keyspace.clone()));
    }
    Ok(new)
}

/// Checks that no custom slug is a code of a new keyspace. Such a code would be minted, and until
/// then treated as unused.
pub fn check_slugs(slugs: &[String], new: &[(KeyspaceIndex, Keyspace)]) -> Result<(), AdoptionError> {
    for (_, keyspace) in new {
        let is_code = |slug: &&String| Code::parse(slug).is_ok_and(|code| keyspace.contains(&code));
        let some: Vec<String> = slugs.iter().filter(is_code).take(NAMED_MAX).cloned().collect();
        if !some.is_empty() {
            return Err(AdoptionError::Slugs { keyspace: keyspace.clone(), slugs: some });
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
        assert!(matches!(plan_adoption(&full, &wanted), Err(AdoptionError::Index(_))));
    }

    #[test]
    fn a_keyspace_cannot_be_redefined() {
        let adopted = [at(1, "a=3:a-z")];
        for other in ["a=3:A-Z", "b=3:x-z", "a=4:a-z", "a=3:a-z:hand-picked"] {
            let refused = plan_adoption(&adopted, &[keyspace(other)]).unwrap_err();
            assert!(refused.to_string().contains("which this database has had before"), "{refused}");
        }
        let overlapping = ["b=4:a-m", "c=4:m-z"].map(keyspace);
        assert!(plan_adoption(&adopted, &overlapping).is_err(), "nor overlap another new one");
    }

    #[test]
    fn a_keyspace_has_no_codes_that_are_slugs() {
        let slugs = ["Abc", "abc", "abcd"].map(str::to_owned);
        assert_eq!(check_slugs(&slugs, &[at(1, "a=3:0-9")]), Ok(()));
        let refused = check_slugs(&slugs, &[at(1, "a=3:0-9"), at(2, "b=3:a-z")]).unwrap_err();
        let expected = AdoptionError::Slugs { keyspace: keyspace("b=3:a-z"), slugs: vec!["abc".to_owned()] };
        assert_eq!(refused, expected);
    }
}
