//! Keyspaces: sets of codes, each defined by a length and the class of the first character.

use std::fmt;

use numbers::{Invalid, Namespace};

use super::code::{ALPHABET, BASE, Code, position};

/// The class of a keyspace: the set of first characters of its codes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// Alphabet positions in ascending order, without duplicates.
    members: Vec<u8>,
}

/// A set of codes that share a length and a class of first characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keyspace {
    /// The keyspace's name, which is also the name of its namespace at the issuer.
    pub name: Namespace,
    /// The length of its codes in characters, 1 to 8.
    pub len: usize,
    /// The set of first characters of its codes.
    pub class: Class,
    /// Whether people pick its codes, so that they are never minted (C1).
    pub hand_picked: bool,
}

/// The suffix, after the class, that marks a hand-picked keyspace.
const HAND_PICKED: &str = ":hand-picked";
const FORM: &str = "NAME=LENGTH:CLASS or NAME=LENGTH:CLASS:hand-picked";
const CLASS: &str = "ranges and characters of 0-9, A-Z and a-z";

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
        let parsed = len.parse().ok().filter(|len| (1..=Code::MAX_LEN).contains(len));
        let len = parsed.ok_or_else(|| format!("length of {name}: expected 1 to 8, got {len:?}"))?;
        let (class, hand_picked) =
            class.strip_suffix(HAND_PICKED).map_or((class, false), |class| (class, true));
        Ok(Self { name, len, class: Class::parse(class)?, hand_picked })
    }

    /// Returns the number of codes in the keyspace, which is the capacity of its namespace.
    pub fn capacity(&self) -> u64 {
        self.class.members.len() as u64 * self.tails()
    }

    /// Returns whether two keyspaces have a name or a code in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        let shared = |member: &u8| other.class.members.contains(member);
        self.name == other.name || (self.len == other.len && self.class.members.iter().any(shared))
    }

    /// Returns whether a code belongs to this keyspace.
    pub fn contains(&self, code: &Code) -> bool {
        self.position_of(code).is_some()
    }

    /// Returns the code at a position, counted from 0 in alphabet order.
    pub fn code_at(&self, position: u64) -> Code {
        debug_assert!(position < self.capacity());
        let class = usize::try_from(position / self.tails()).expect("a class has at most 62 members");
        Code::compose(self.len, self.class.members[class], position % self.tails())
    }

    /// Returns the position of a code; `None` if it does not belong to this keyspace.
    pub(super) fn position_of(&self, code: &Code) -> Option<u64> {
        if code.len() != self.len {
            return None;
        }
        let mut positions = code.positions();
        let class = self.class.index(positions.next()?)?;
        let tail = positions.fold(0, |tail, position| tail * BASE + u64::from(position));
        Some(class * self.tails() + tail)
    }

    /// Returns the number of codes for each first character.
    fn tails(&self) -> u64 {
        // At most 62^7, which is less than 2^42.
        (1..self.len).fold(1, |product, _| product * BASE)
    }
}

impl fmt::Display for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hand_picked = if self.hand_picked { HAND_PICKED } else { "" };
        write!(f, "{}={}:{}{hand_picked}", self.name, self.len, self.class)
    }
}

impl Class {
    /// Parses ranges and single characters: `A-Z`, `0-9a-f`, `xyz`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let wrong = || Invalid::from(format!("class {text:?}: expected {CLASS}, for example A-Z or 0-9a-f"));
        let mut members = Vec::new();
        let mut rest = text.as_bytes();
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
        if members.is_empty() { Err(wrong()) } else { Ok(Self { members }) }
    }

    fn index(&self, position: u8) -> Option<u64> {
        self.members.binary_search(&position).ok().map(|index| index as u64)
    }
}

impl fmt::Display for Class {
    /// Writes runs of three or more characters as ranges, as [`Class::parse`] reads them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |position: u8| char::from(ALPHABET[usize::from(position)]);
        for run in self.members.chunk_by(|one, next| one + 1 == *next) {
            match run {
                [first, _, .., last] => write!(f, "{}-{}", letter(*first), letter(*last))?,
                few => few.iter().try_for_each(|position| write!(f, "{}", letter(*position)))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyspaces_read_back_as_they_are_written() {
        for text in ["default=6:0-9A-Za-z", "web=1:A-Z", "odd=8:0ac-f", "manual=6:0-9:hand-picked"] {
            let keyspace = Keyspace::parse(text).unwrap();
            assert_eq!(Keyspace::parse(&keyspace.to_string()).unwrap(), keyspace);
        }
        assert_eq!(Keyspace::parse("default=6:0-9A-Za-z").unwrap().capacity(), 56_800_235_584);
        assert_eq!(Keyspace::parse("x=8:0-9A-Za-z").unwrap().capacity(), 62_u64.pow(8));
        assert_eq!(Keyspace::parse("x=1:7").unwrap().capacity(), 1);
    }

    #[test]
    fn a_wrong_keyspace_is_refused_with_what_was_expected() {
        for text in
            ["", "web", "web=6", "web=0:A-Z", "web=9:A-Z", "web=6:", "web=6:Z-A", "web=6:é", "W=6:A-Z"]
        {
            assert!(parse_keyspaces(text).is_err(), "{text:?}");
        }
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
}
