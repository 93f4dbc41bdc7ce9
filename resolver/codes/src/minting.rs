//! Conversion between numbers, link ids and codes over the keyspaces of a deployment.

use std::{
    fmt,
    sync::{RwLock, RwLockReadGuard},
};

use numbers::{Invalid, Namespace, Span};

use super::{
    code::Code, code_key::CodeKey, digest::candidates, keyspace::Keyspace, permutation::Permutation,
};

/// The number of low bits of a link id that hold the number. Above is the keyspace's index.
const NUMBER_BITS: u32 = 48;
const NUMBER_MASK: i64 = (1 << NUMBER_BITS) - 1;

/// A keyspace's index in this deployment, 1 to 32767, which the database never reuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyspaceIndex(u16);

/// The primary key of a link: keyspace index and number in one bigint. Consecutive numbers give
/// consecutive ids, which cost the index the least (G6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(i64);

/// A minted link id with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minted {
    /// The primary key of the link.
    pub id: LinkId,
    /// The code of the link.
    pub code: Code,
}

impl KeyspaceIndex {
    /// Validates and wraps an index: link ids stay positive.
    pub fn new(index: i64) -> Result<Self, Invalid> {
        match u16::try_from(index) {
            Ok(small) if (1..1 << 15).contains(&small) => Ok(Self(small)),
            _ => Err(format!("keyspace index: expected 1 to 32767, got {index}").into()),
        }
    }

    /// Returns the index as a number.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl LinkId {
    /// Packs a keyspace index and a number into an id.
    ///
    /// # Panics
    /// Panics if the number has more than 48 bits: the issuer allocates none at or above 2^48.
    pub fn new(keyspace: KeyspaceIndex, number: u64) -> Self {
        assert!(number < Span::LIMIT, "a number has at most 48 bits");
        let number = i64::try_from(number).expect("48 bits fit");
        Self(i64::from(keyspace.0) << NUMBER_BITS | number)
    }

    /// Wraps an id as the database stores it.
    pub fn from_stored(id: i64) -> Self {
        Self(id)
    }

    /// Returns the id as the database stores it.
    pub fn get(self) -> i64 {
        self.0
    }

    /// Unpacks the keyspace index and the number; `None` if the index is invalid.
    pub fn unpack(self) -> Option<(KeyspaceIndex, u64)> {
        let number = u64::try_from(self.0 & NUMBER_MASK).ok()?;
        Some((KeyspaceIndex::new(self.0 >> NUMBER_BITS).ok()?, number))
    }

    /// Returns the packed ids of a range of numbers: the first, and the one after the last.
    pub fn range(keyspace: KeyspaceIndex, span: Span) -> (i64, i64) {
        let first = Self::new(keyspace, span.start()).0;
        // The span's end may be 2^48, which is one past the last number that packs.
        (first, Self::new(keyspace, span.end() - 1).0 + 1)
    }
}

impl fmt::Debug for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkId({}/{})", self.0 >> NUMBER_BITS, self.0 & NUMBER_MASK)
    }
}

struct Minter {
    index: KeyspaceIndex,
    keyspace: Keyspace,
    permutation: Permutation,
}

/// Converts numbers to codes and codes to ids. Keyspaces can be added, and never removed.
pub struct Mint {
    key: CodeKey,
    digest_key: [u8; 32],
    bucket_key: [u8; 16],
    cursors: Permutation,
    /// A std lock: it is held for one code and never across an await. Cache hits do without.
    minters: RwLock<Vec<Minter>>,
}

impl Mint {
    /// Creates a mint for all keyspaces. Links live on in those that no longer mint.
    pub fn new(key: &CodeKey, keyspaces: impl IntoIterator<Item = (KeyspaceIndex, Keyspace)>) -> Self {
        let digest_key = key.derive("codes by digest");
        let mut bucket_key = [0; 16];
        bucket_key.copy_from_slice(&key.derive("buckets of visitors")[..16]);
        let cursors = Permutation::new(&key.derive("cursors"), Span::LIMIT);
        let mint = Self { key: key.clone(), digest_key, bucket_key, cursors, minters: RwLock::default() };
        mint.adopt(keyspaces);
        mint
    }

    /// Adds the keyspaces whose index is new.
    pub fn adopt(&self, keyspaces: impl IntoIterator<Item = (KeyspaceIndex, Keyspace)>) {
        for (index, keyspace) in keyspaces {
            if self.minters().iter().any(|minter| minter.index == index) {
                continue;
            }
            let purpose = format!("keyspace {}:{}", keyspace.len, keyspace.class);
            let permutation = Permutation::new(&self.key.derive(&purpose), keyspace.capacity());
            let minter = Minter { index, keyspace, permutation };
            self.minters.write().expect("no code panics while it holds this lock").push(minter);
        }
    }

    /// Compares the keyspaces in use with all keyspaces in the database. Keyspaces are never
    /// removed from a database or changed. So a difference means that the keyspace was adopted in a
    /// history that has ended, and an older copy of the database has taken over.
    pub fn compare(&self, stored: &[(KeyspaceIndex, Keyspace)]) -> Result<(), Invalid> {
        for Minter { index, keyspace, .. } in self.minters().iter() {
            let at = index.get();
            let difference = match stored.iter().find(|(other, _)| other == index) {
                Some((_, same)) if same == keyspace => continue,
                Some((_, other)) => {
                    format!("index {at} is keyspace {keyspace} here, and {other} in the database")
                }
                None => {
                    format!("keyspace {keyspace} has index {at} here, and is not in the database any more")
                }
            };
            return Err(difference.into());
        }
        Ok(())
    }

    fn minters(&self) -> RwLockReadGuard<'_, Vec<Minter>> {
        self.minters.read().expect("no code panics while it holds this lock")
    }

    /// Returns codes from digests of a URL, after `salt` digests without a free candidate.
    pub fn candidates(&self, long_url: &str, salt: u32, len: usize) -> [String; 4] {
        candidates(&self.digest_key, long_url, salt, len)
    }

    /// Returns the key that assigns visitors of links to buckets. All resolvers of the deployment
    /// have the same one.
    pub fn bucket_key(&self) -> [u8; 16] {
        self.bucket_key
    }

    /// Returns a cursor that stands for an id. It does not tell the number, since two numbers would
    /// tell one tenant how many links others have made.
    pub fn cursor_of(&self, id: LinkId) -> String {
        let number = u64::try_from(id.0 & NUMBER_MASK).expect("48 bits are not negative");
        format!("{}-{}", id.0 >> NUMBER_BITS, self.cursors.apply(number))
    }

    /// Returns the id that a cursor stands for; `None` if the text is none.
    pub fn read_cursor(&self, cursor: &str) -> Option<LinkId> {
        let (space, hidden) = cursor.rsplit_once('-')?;
        let (space, hidden) = (space.parse::<i16>().ok()?, hidden.parse().ok()?);
        let number = (hidden < Span::LIMIT).then(|| self.cursors.invert(hidden))?;
        Some(LinkId(i64::from(space) << NUMBER_BITS | i64::try_from(number).ok()?))
    }

    /// Converts a number to its link id and code.
    ///
    /// # Panics
    /// Panics if the keyspace is not of this deployment or the number is past its capacity.
    pub fn mint(&self, index: KeyspaceIndex, number: u64) -> Minted {
        let id = LinkId::new(index, number);
        let code = self.code_of(id).expect("numbers are claimed only for keyspaces of the deployment");
        Minted { id, code }
    }

    /// Returns the code of an id; `None` for an unknown keyspace or a number past its capacity.
    pub fn code_of(&self, id: LinkId) -> Option<Code> {
        let (index, number) = id.unpack()?;
        let minters = self.minters();
        let minter = minters.iter().find(|minter| minter.index == index)?;
        (number < minter.keyspace.capacity())
            .then(|| minter.keyspace.code_at(minter.permutation.apply(number)))
    }

    /// Returns the number of keyspaces.
    pub fn keyspaces(&self) -> usize {
        self.minters().len()
    }

    /// Returns the code length of a keyspace in characters; `None` if it is not of this deployment.
    pub fn len_of(&self, index: KeyspaceIndex) -> Option<usize> {
        self.minters().iter().find(|minter| minter.index == index).map(|minter| minter.keyspace.len)
    }

    /// Returns a code in the spelling in which its keyspace mints it; as it is if none has it.
    pub fn as_minted(&self, code: &Code) -> Code {
        let minters = self.minters();
        let spelled = |minter: &Minter| {
            minter.keyspace.position_of(code).map(|position| minter.keyspace.code_at(position))
        };
        minters.iter().find_map(spelled).unwrap_or(*code)
    }

    /// Returns the name of the keyspace that a code belongs to.
    pub fn keyspace_of(&self, code: &Code) -> Option<Namespace> {
        let minters = self.minters();
        let minter = minters.iter().find(|minter| minter.keyspace.contains(code));
        minter.map(|minter| minter.keyspace.name.clone())
    }

    /// Returns whether a code belongs to any keyspace.
    pub fn belongs(&self, code: &Code) -> bool {
        self.minters().iter().any(|minter| minter.keyspace.contains(code))
    }

    /// Returns the name of the keyspace of which a typing error may have made a text
    /// ([`Keyspace::is_mistyped`]).
    pub fn mistyped(&self, code: &Code) -> Option<Namespace> {
        let minters = self.minters();
        let minter = minters.iter().find(|minter| minter.keyspace.is_mistyped(code));
        minter.map(|minter| minter.keyspace.name.clone())
    }

    /// Returns the id of a code, in whatever spelling; `None` if the code belongs to no keyspace,
    /// so was never minted.
    pub fn read(&self, code: &Code) -> Option<LinkId> {
        self.minters().iter().find_map(|minter| {
            let position = minter.keyspace.position_of(code)?;
            Some(LinkId::new(minter.index, minter.permutation.invert(position)))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLASSES: [&str; 8] =
        ["0-9", "A-Z", "a-z", "0-9A-Za-z", "7", CROCKFORD[0], CROCKFORD[1], CROCKFORD[2]];
    const CROCKFORD: [&str; 3] = ["0-9a-z:crockford", "2-9:crockford", "0-9a-z:crockford:check"];

    #[test]
    fn cursors_stand_for_ids_and_do_not_tell_their_distance() {
        let (mint, index, _) = mint(6, "0-9A-Za-z");
        let hidden = |number| {
            let cursor = mint.cursor_of(LinkId::new(index, number));
            assert_eq!(mint.read_cursor(&cursor), Some(LinkId::new(index, number)), "{cursor}");
            cursor.rsplit_once('-').unwrap().1.parse::<u64>().unwrap()
        };
        let distances: Vec<u64> = (0..9).map(|number| hidden(number).abs_diff(hidden(number + 1))).collect();
        assert!(distances.iter().all(|distance| *distance > 1_000_000), "{distances:?}");
        for id in [i64::MAX, i64::MIN, 0, 7, 1 << 48].map(LinkId::from_stored) {
            assert_eq!(mint.read_cursor(&mint.cursor_of(id)), Some(id), "{id:?}");
        }
        for text in ["", "7", "-", "1-", "1-281474976710656", "40000-1", "1-+x"] {
            assert_eq!(mint.read_cursor(text), None, "{text}");
        }
    }

    fn mint(len: usize, class: &str) -> (Mint, KeyspaceIndex, Keyspace) {
        let keyspace = Keyspace::parse(&format!("x={len}:{class}")).unwrap();
        let index = KeyspaceIndex::new(3).unwrap();
        (Mint::new(&CodeKey::parse(&"5a".repeat(32)).unwrap(), [(index, keyspace.clone())]), index, keyspace)
    }

    #[test]
    fn every_number_of_the_short_keyspaces_has_a_code_of_its_own() {
        for class in CLASSES {
            for len in 1 + usize::from(class.ends_with(":check"))..=3 {
                let (mint, index, keyspace) = mint(len, class);
                let mut seen = std::collections::HashSet::new();
                for number in 0..keyspace.capacity() {
                    let minted = mint.mint(index, number);
                    assert!(keyspace.contains(&minted.code), "{minted:?}");
                    assert!(seen.insert(minted.code.as_str().to_owned()), "{minted:?} came twice");
                    assert_eq!(mint.read(&minted.code), Some(minted.id));
                    assert_eq!(mint.code_of(minted.id), Some(minted.code));
                    assert_eq!(mint.as_minted(&minted.code), minted.code);
                }
                assert_eq!(mint.code_of(LinkId::new(index, keyspace.capacity())), None);
                assert_eq!(seen.len() as u64, keyspace.capacity());
            }
        }
    }

    proptest! {
        #[test]
        fn long_codes_lead_back_to_their_numbers_and_stay_in_their_class(
            len in 4_usize..=8, class in 0..CLASSES.len(), number in any::<u64>(),
        ) {
            let (mint, index, keyspace) = mint(len, CLASSES[class]);
            let minted = mint.mint(index, number % keyspace.capacity());
            prop_assert!(keyspace.contains(&minted.code));
            prop_assert_eq!(mint.read(&minted.code), Some(minted.id));
        }
    }

    proptest! {
        #[test]
        fn a_code_of_crockfords_alphabet_is_read_in_all_its_spellings(
            len in 2_usize..=8, class in 0..CROCKFORD.len(), number in any::<u64>(),
            choices in any::<[u8; 8]>(),
        ) {
            let (mint, index, keyspace) = mint(len, CROCKFORD[class]);
            let minted = mint.mint(index, number % keyspace.capacity());
            let text = minted.code.as_str();
            prop_assert!(!text.contains(['i', 'l', 'o', 'u']) && !text.contains(char::is_uppercase));
            let spelled: String = text.chars().zip(choices).map(respelled).collect();
            let spelled = Code::parse(&spelled).unwrap();
            prop_assert_eq!(mint.read(&spelled), Some(minted.id));
            prop_assert_eq!(mint.as_minted(&spelled), minted.code);
            prop_assert_eq!(mint.keyspace_of(&spelled), Some(keyspace.name));
        }
    }

    fn respelled((minted, choice): (char, u8)) -> char {
        let spellings = match minted {
            '0' => vec!['0', 'o', 'O'],
            '1' => vec!['1', 'i', 'I', 'l', 'L'],
            other => vec![other, other.to_ascii_uppercase()],
        };
        spellings[usize::from(choice) % spellings.len()]
    }

    #[test]
    fn a_text_with_a_character_that_is_not_read_is_no_code() {
        let (mint, ..) = mint(3, "0-9a-z:crockford");
        for text in ["abu", "Uab", "ab", "abcd"] {
            let code = Code::parse(text).unwrap();
            assert_eq!((mint.read(&code), mint.belongs(&code)), (None, false), "{text}");
            assert_eq!(mint.as_minted(&code), code);
        }
    }

    #[test]
    fn the_first_and_last_numbers_of_long_keyspaces_come_back() {
        for len in 4..=8 {
            for class in CLASSES {
                let (mint, index, keyspace) = mint(len, class);
                for number in (0..50).chain(keyspace.capacity() - 50..keyspace.capacity()) {
                    let minted = mint.mint(index, number);
                    assert_eq!(mint.read(&minted.code), Some(minted.id));
                }
            }
        }
    }

    /// Compares 100,000 consecutive numbers with a random order: the share of rising neighbours
    /// (one half), the rank correlation of number and code (none), the correlation of neighbours
    /// (none), and chi-square over the characters of every position. The bounds are at five
    /// standard deviations.
    #[test]
    fn consecutive_numbers_give_codes_with_no_visible_order() {
        const COUNT: usize = 100_000;
        let (mint, index, keyspace) = mint(6, "0-9A-Za-z");
        let codes: Vec<Code> = (0..COUNT as u64).map(|number| mint.mint(index, number).code).collect();
        #[expect(clippy::cast_precision_loss, reason = "positions are below 2^36")]
        let values: Vec<f64> = codes.iter().map(|code| keyspace.position_of(code).unwrap() as f64).collect();
        let n = COUNT as f64;

        let rising = values.windows(2).filter(|pair| pair[0] < pair[1]).count() as f64;
        assert!((rising - n / 2.0).abs() < 5.0 * (n / 12.0).sqrt(), "{rising} rising neighbours");

        let numbers: Vec<f64> = (0..COUNT).map(|number| number as f64).collect();
        for (what, r) in [
            ("number and code", correlation(&numbers, &values)),
            ("neighbours", correlation(&values[1..], &values[..COUNT - 1])),
        ] {
            assert!(r.abs() < 5.0 / n.sqrt(), "correlation of {what}: {r}");
        }

        for place in 0..6 {
            let letter = |code: &Code| usize::from(crate::code::position(code.characters()[place]).unwrap());
            let mut counts = [0.0_f64; 62];
            codes.iter().for_each(|code| counts[letter(code)] += 1.0);
            let expected = n / 62.0;
            let chi: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
            // 61 degrees of freedom: mean 61, standard deviation 11.
            assert!((5.0..117.0).contains(&chi), "chi-square of place {place}: {chi}");
        }
    }

    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (mean_a, mean_b) = (mean(a), mean(b));
        let product: f64 = a.iter().zip(b).map(|(x, y)| (x - mean_a) * (y - mean_b)).sum();
        let square = |values: &[f64], mean: f64| values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        product / (square(a, mean_a) * square(b, mean_b)).sqrt()
    }

    #[test]
    fn a_database_that_lacks_a_keyspace_or_has_another_in_its_place_is_noticed() {
        let (mint, index, keyspace) = mint(3, "a-z");
        let other = KeyspaceIndex::new(4).unwrap();
        let stored = |text: &str| Keyspace::parse(text).unwrap();
        let more = [(index, keyspace.clone()), (other, stored("y=3:0-9"))];
        assert_eq!(mint.compare(&more), Ok(()), "a new keyspace contradicts nothing");
        let absent = "keyspace x=3:a-z has index 3 here, and is not in the database any more";
        let difference = |stored: &[_]| mint.compare(stored).unwrap_err().to_string();
        assert_eq!(difference(&[]), absent);
        assert_eq!(difference(&[(other, keyspace)]), absent, "ids hold the index");
        for text in ["y=3:0-9", "x=3:a-y", "x=4:a-z", "x=3:a-z:hand-picked", "x=3:a-z:crockford"] {
            let another = format!("index 3 is keyspace x=3:a-z here, and {text} in the database");
            assert_eq!(difference(&[(index, stored(text))]), another);
        }
    }

    #[test]
    fn an_id_packs_keyspace_and_number_and_stays_positive() {
        let largest = LinkId::new(KeyspaceIndex::new(32_767).unwrap(), Span::LIMIT - 1);
        assert_eq!(largest.get(), i64::MAX);
        assert!(KeyspaceIndex::new(32_768).is_err() && KeyspaceIndex::new(0).is_err());
        let one = KeyspaceIndex::new(1).unwrap();
        assert_eq!(LinkId::range(one, Span::new(2, 3).unwrap()), ((1 << 48) + 2, (1 << 48) + 5));
        assert!(LinkId::new(one, Span::LIMIT - 1) < LinkId::new(KeyspaceIndex::new(2).unwrap(), 0));
    }
}
