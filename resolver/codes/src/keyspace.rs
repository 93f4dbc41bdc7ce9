//! Keyspaces: sets of codes, each defined by a length, the class of the first character, the
//! alphabet, and whether the last character is a check character.
//!
//! Length and first character alone say which keyspace has a code, also where its alphabet is read
//! in several spellings: keyspaces of one length have no first character in common, in any of the
//! spellings in which each is read. So a keyspace that is added takes no code of another.

use std::fmt;

use numbers::{Invalid, Namespace};

use super::{
    alphabet::Alphabet,
    check::check_position,
    code::{ALPHABET, Code},
};

/// The class of a keyspace: the set of first characters of its codes, the alphabet of all of them,
/// and whether the last is a check character.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    alphabet: Alphabet,
    is_checked: bool,
    /// Positions of the alphabet in ascending order, without duplicates.
    members: Vec<u8>,
}

/// A set of codes that share a length and a class of first characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keyspace {
    /// The keyspace's name, which is also the name of its namespace at the issuer.
    pub name: Namespace,
    /// The length of its codes in characters, 1 to 8, a check character included.
    pub len: usize,
    /// The set of first characters of its codes.
    pub class: Class,
    /// Whether people pick its codes, so that they are never minted (C1).
    pub hand_picked: bool,
}

/// The suffix, after the class, that marks a hand-picked keyspace.
const HAND_PICKED: &str = ":hand-picked";
/// The suffix of a class whose alphabet is Crockford's base 32. Releases without it refuse the
/// keyspace, and so know that they do not know all of them.
const CROCKFORD: &str = ":crockford";
/// The suffix of a class of Crockford's alphabet whose codes end in a check character. Releases
/// without it refuse the keyspace too.
const CHECKED: &str = ":check";
const FORM: &str =
    "NAME=LENGTH:CLASS, with :crockford or :crockford:check, and :hand-picked, behind it as wanted";

/// The maximum number of keyspaces in one deployment. Each has two blocks in hand, and `head` in
/// the ledger lists them all.
const KEYSPACES_MAX: usize = 64;

/// Parses a list of disjoint keyspaces such as `web=6:A-Z,mobile=6:a-z`.
pub fn parse_keyspaces(text: &str) -> Result<Vec<Keyspace>, Invalid> {
    let keyspaces = text.split(',').map(Keyspace::parse).collect::<Result<Vec<_>, _>>()?;
    if keyspaces.len() > KEYSPACES_MAX {
        return Err(format!("expected 1 to {KEYSPACES_MAX} keyspaces, got {}", keyspaces.len()).into());
    }
    for (index, one) in keyspaces.iter().enumerate() {
        if let Some(other) = keyspaces[..index].iter().find(|other| one.overlaps(other)) {
            let both = format!("keyspaces {} and {}", other.name, one.name);
            return Err(format!("{both} share a name or codes: expected disjoint keyspaces").into());
        }
    }
    Ok(keyspaces)
}

impl Keyspace {
    /// Parses a keyspace such as `web=6:A-Z` or `manual=6:0-9:hand-picked`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let form = || Invalid::from(format!("expected {FORM}, for example web=6:A-Z, got {text:?}"));
        let (name, rest) = text.trim().split_once('=').ok_or_else(form)?;
        let (len, class) = rest.split_once(':').ok_or_else(form)?;
        let name = Namespace::new(name)?;
        let (class, hand_picked) =
            class.strip_suffix(HAND_PICKED).map_or((class, false), |class| (class, true));
        let class = Class::parse(class)?;
        let least = 1 + usize::from(class.is_checked);
        let parsed = len.parse().ok().filter(|len| (least..=Code::MAX_LEN).contains(len));
        let len = parsed.ok_or_else(|| format!("length of {name}: expected {least} to 8, got {len:?}"))?;
        Ok(Self { name, len, class, hand_picked })
    }

    /// Returns the number of codes in the keyspace, which is the capacity of its namespace.
    pub fn capacity(&self) -> u64 {
        self.class.members.len() as u64 * self.tails()
    }

    /// Returns whether two keyspaces have a name in common, or a text that both read as a code.
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_shared = |first: &u8| self.class.reads(*first) && other.class.reads(*first);
        self.name == other.name || (self.len == other.len && ALPHABET.iter().any(is_shared))
    }

    /// Returns whether a code belongs to this keyspace, in whatever spelling.
    pub fn contains(&self, code: &Code) -> bool {
        self.position_of(code).is_some()
    }

    /// Returns whether a text would be a code of this keyspace but for its check character: a
    /// typing error may have made it of one.
    pub fn is_mistyped(&self, code: &Code) -> bool {
        self.class.is_checked && self.positions(code).is_some_and(|(_, read)| !self.adds_up(&read))
    }

    /// Returns the code at a position, counted from 0 in alphabet order.
    pub fn code_at(&self, position: u64) -> Code {
        debug_assert!(position < self.capacity());
        let Class { alphabet, is_checked, ref members } = self.class;
        let class = usize::try_from(position / self.tails()).expect("a class has at most 62 members");
        let code = Code::compose(alphabet, self.counting_len(), members[class], position % self.tails());
        if !is_checked {
            return code;
        }
        let read = |character: &u8| alphabet.read(*character).expect("it was composed of the alphabet");
        code.followed_by(
            alphabet.characters()[usize::from(check_position(code.characters().iter().map(read)))],
        )
    }

    /// Returns the position of a code, in whatever spelling; `None` if it does not belong to this
    /// keyspace.
    pub(super) fn position_of(&self, code: &Code) -> Option<u64> {
        let (class, read) = self.positions(code)?;
        if self.class.is_checked && !self.adds_up(&read) {
            return None;
        }
        let base = self.class.alphabet.base();
        let rest = read[1..self.counting_len()].iter();
        Some(rest.fold(class, |position, next| position * base + u64::from(*next)))
    }

    /// Returns the index of a text's first character in the class, and the positions of all its
    /// characters in the alphabet, if its length and its first character are those of the keyspace.
    fn positions(&self, code: &Code) -> Option<(u64, [u8; Code::MAX_LEN])> {
        if code.len() != self.len {
            return None;
        }
        let mut read = [0; Code::MAX_LEN];
        for (position, character) in read.iter_mut().zip(code.characters()) {
            *position = self.class.alphabet.read(*character)?;
        }
        self.class.index(read[0]).map(|class| (class, read))
    }

    /// Returns whether the last of these positions is that of the check character of the others.
    fn adds_up(&self, read: &[u8; Code::MAX_LEN]) -> bool {
        check_position(read[..self.len].iter().copied()) == 0
    }

    /// Returns the number of characters that count: all but a check character.
    fn counting_len(&self) -> usize {
        self.len - usize::from(self.class.is_checked)
    }

    /// Returns the number of codes for each first character.
    fn tails(&self) -> u64 {
        // At most 62^7, which is less than 2^42.
        (1..self.counting_len()).fold(1, |product, _| product * self.class.alphabet.base())
    }
}

impl fmt::Display for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hand_picked = if self.hand_picked { HAND_PICKED } else { "" };
        write!(f, "{}={}:{}{hand_picked}", self.name, self.len, self.class)
    }
}

impl Class {
    /// Parses ranges and single characters: `A-Z`, `0-9a-f`, `xyz`, `0-9a-z:crockford`,
    /// `0-9a-z:crockford:check`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let (text, is_checked) = text.strip_suffix(CHECKED).map_or((text, false), |text| (text, true));
        if is_checked && !text.ends_with(CROCKFORD) {
            return Err(format!("class \"{text}{CHECKED}\": {CHECKED} needs {CROCKFORD} before it").into());
        }
        // No class has a colon.
        if let Some((_, suffix)) = text.strip_suffix(CROCKFORD).unwrap_or(text).split_once(':') {
            let known = format!("{CROCKFORD}, {CROCKFORD}{CHECKED}, and {HAND_PICKED} at the end");
            return Err(format!("class {text:?}: unknown suffix \":{suffix}\": expected {known}").into());
        }
        let (alphabet, expected) = match text.ends_with(CROCKFORD) {
            false => (Alphabet::Base62, "0-9, A-Z and a-z, for example A-Z or 0-9a-f"),
            true => (Alphabet::Crockford, "0-9 and a-z without i, l, o and u, for example 0-9a-z"),
        };
        let wrong = || Invalid::from(format!("class {text:?}: expected ranges and characters of {expected}"));
        let position = |character| alphabet.position(character);
        let mut members = Vec::new();
        let mut rest = text.strip_suffix(CROCKFORD).unwrap_or(text).as_bytes();
        while let [from, tail @ ..] = rest {
            let from = position(*from).ok_or_else(wrong)?;
            let (to, tail) = match tail {
                [b'-', to, tail @ ..] => (position(*to).ok_or_else(wrong)?, tail),
                _ => (from, tail),
            };
            if to < from {
                return Err(wrong());
            }
            members.extend(from..=to);
            rest = tail;
        }
        members.sort_unstable();
        members.dedup();
        if members.is_empty() { Err(wrong()) } else { Ok(Self { alphabet, is_checked, members }) }
    }

    /// Returns whether a character is read as one of the class.
    fn reads(&self, character: u8) -> bool {
        self.alphabet.read(character).is_some_and(|position| self.members.contains(&position))
    }

    fn index(&self, position: u8) -> Option<u64> {
        self.members.binary_search(&position).ok().map(|index| index as u64)
    }
}

impl fmt::Display for Class {
    /// Writes runs of three or more characters as ranges, as [`Class::parse`] reads them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |position: u8| char::from(self.alphabet.characters()[usize::from(position)]);
        for run in self.members.chunk_by(|one, next| one + 1 == *next) {
            match run {
                [first, _, .., last] => write!(f, "{}-{}", letter(*first), letter(*last))?,
                few => few.iter().try_for_each(|position| write!(f, "{}", letter(*position)))?,
            }
        }
        if self.alphabet == Alphabet::Crockford {
            f.write_str(CROCKFORD)?;
        }
        if self.is_checked { f.write_str(CHECKED) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyspaces_read_back_as_they_are_written() {
        for text in [
            "default=6:0-9A-Za-z",
            "web=1:A-Z",
            "odd=8:0ac-f",
            "manual=6:0-9:hand-picked",
            "spoken=7:0-9a-z:crockford",
            "spoken=7:2-9km:crockford:hand-picked",
            "printed=8:0-9a-z:crockford:check",
            "printed=2:k:crockford:check:hand-picked",
        ] {
            let keyspace = Keyspace::parse(text).unwrap();
            assert_eq!(Keyspace::parse(&keyspace.to_string()).unwrap(), keyspace);
        }
        assert_eq!(Keyspace::parse("default=6:0-9A-Za-z").unwrap().capacity(), 56_800_235_584);
        assert_eq!(Keyspace::parse("x=8:0-9A-Za-z").unwrap().capacity(), 62_u64.pow(8));
        assert_eq!(Keyspace::parse("x=1:7").unwrap().capacity(), 1);
        let spoken = Keyspace::parse("spoken=7:a-z:crockford").unwrap();
        assert_eq!((spoken.to_string(), spoken.capacity()), ("spoken=7:a-z:crockford".to_owned(), 22 << 30));
        let printed = Keyspace::parse("printed=8:a-z:crockford:check").unwrap();
        assert_eq!(printed.capacity(), spoken.capacity(), "a check character tells nothing new");
    }

    #[test]
    fn a_wrong_keyspace_is_refused_with_what_was_expected() {
        for text in
            ["", "web", "web=6", "web=0:A-Z", "web=9:A-Z", "web=6:", "web=6:Z-A", "web=6:é", "W=6:A-Z"]
        {
            assert!(parse_keyspaces(text).is_err(), "{text:?}");
        }
        for class in ["", "A-Z", "a-i", "u", "l", "a:hand-picked", "a:check"] {
            assert!(Keyspace::parse(&format!("x=7:{class}:crockford")).is_err(), "{class}");
        }
        for text in ["x=7:0-9:check", "x=7:a:crockford:check:check", "x=7:a:crockford:hand-picked:check"] {
            assert!(Keyspace::parse(text).is_err(), "{text}");
        }
        for (text, reason) in [
            ("x=8:2-9:check", "class \"2-9:check\": :check needs :crockford before it"),
            ("x=8:2:crockford:chek", "class \"2:crockford:chek\": unknown suffix \":crockford:chek\""),
            ("x=8:2:check:crockford", "class \"2:check:crockford\": unknown suffix \":check\""),
        ] {
            let refused = Keyspace::parse(text).unwrap_err().to_string();
            assert!(refused.starts_with(reason), "{refused}");
        }
        let refused = Keyspace::parse("x=1:a:crockford:check").unwrap_err().to_string();
        assert_eq!(refused, "length of x: expected 2 to 8, got \"1\"");
        for text in ["a=6:A-Z,a=5:A-Z", "a=6:A-M,b=6:M-Z", "a=6:0-9A-Za-z,b=6:x"] {
            let refused = parse_keyspaces(text).unwrap_err().to_string();
            assert!(refused.contains("share a name or codes"), "{text:?}: {refused}");
        }
        assert!(parse_keyspaces("a=6:A-M,b=6:N-Z,c=5:A-Z").is_ok());
    }

    #[test]
    fn positions_and_codes_correspond_one_to_one() {
        let keyspace = Keyspace::parse("x=2:A-C").unwrap();
        let codes: Vec<_> = (0..keyspace.capacity()).map(|position| keyspace.code_at(position)).collect();
        assert_eq!(codes.len(), 3 * 62);
        assert!(codes.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()));
        for (position, code) in codes.iter().enumerate() {
            assert_eq!(keyspace.position_of(code), Some(position as u64));
            assert!(keyspace.contains(code));
        }
        assert_eq!(keyspace.position_of(&Code::parse("D0").unwrap()), None);
        assert_eq!(keyspace.position_of(&Code::parse("A").unwrap()), None);
    }

    /// Every text of two characters, for pairs of classes of both alphabets.
    #[test]
    fn keyspaces_overlap_exactly_if_a_text_is_a_code_of_both() {
        let classes = [
            "0-9",
            "A-Z",
            "a-z",
            "o",
            "I",
            "u",
            "U",
            "2-9",
            "0-9a-z:crockford",
            "0:crockford",
            "1:crockford",
            "2-9:crockford",
            "k:crockford",
            "0-9:crockford:check",
            "km:crockford:check",
        ];
        let at = |(name, class): (usize, &str)| Keyspace::parse(&format!("k{name}=2:{class}")).unwrap();
        let keyspaces: Vec<Keyspace> = classes.into_iter().enumerate().map(at).collect();
        let texts = ALPHABET.iter().flat_map(|first| ALPHABET.map(|second| [*first, second]));
        let code = |text: [u8; 2]| Code::parse(std::str::from_utf8(&text).unwrap()).unwrap();
        let codes: Vec<Code> = texts.map(code).collect();
        for (place, one) in keyspaces.iter().enumerate() {
            for other in &keyspaces[..place] {
                let is_shared = codes.iter().any(|code| one.contains(code) && other.contains(code));
                assert_eq!(one.overlaps(other), is_shared, "{one} {other}");
                assert_eq!(other.overlaps(one), is_shared, "{one} {other}");
            }
        }
    }

    /// Of each code of a keyspace, every text in which one character is another, or two have
    /// changed places.
    #[test]
    fn a_code_with_a_check_character_is_not_mistaken_for_another() {
        let keyspace = Keyspace::parse("x=3:0-9a-z:crockford:check").unwrap();
        let letters = Alphabet::Crockford.characters();
        let is_code = |text: &[u8]| {
            let code = Code::parse(std::str::from_utf8(text).unwrap()).unwrap();
            keyspace.contains(&code)
        };
        let is_mistyped =
            |text: &[u8]| keyspace.is_mistyped(&Code::parse(std::str::from_utf8(text).unwrap()).unwrap());
        assert!(!is_mistyped(b"abcd") && !is_mistyped(b"abu"), "another length, another alphabet");
        let code = Code::parse("a00").unwrap();
        let digits = Keyspace::parse("x=3:2-9:crockford:check").unwrap();
        assert!(!digits.is_mistyped(&code), "another first character");
        assert!(!Keyspace::parse("x=3:0-9a-z:crockford").unwrap().is_mistyped(&code), "no check character");
        for position in 0..keyspace.capacity() {
            let code = keyspace.code_at(position);
            assert_eq!(keyspace.position_of(&code), Some(position), "{code}");
            assert!(!is_mistyped(code.characters()), "{code}");
            assert!(is_code(code.as_str().to_ascii_uppercase().as_bytes()), "{code}");
            for (place, right) in code.characters().iter().enumerate() {
                let mut typed = code.characters().to_vec();
                for wrong in letters.iter().filter(|letter| *letter != right) {
                    typed[place] = *wrong;
                    assert!(!is_code(&typed), "{wrong} at {place} of {code}");
                    assert!(is_mistyped(&typed), "{wrong} at {place} of {code}");
                }
                for other in 0..place {
                    let mut typed = code.characters().to_vec();
                    typed.swap(place, other);
                    let is_same = typed[place] == typed[other];
                    assert_eq!(is_code(&typed), is_same, "{place} and {other} of {code}");
                }
            }
        }
    }
}
