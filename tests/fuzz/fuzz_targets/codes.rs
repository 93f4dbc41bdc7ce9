//! Numbers to codes and back.
//!
//! The input is four lines: a list of keyspaces, two numbers, and a text. The text may be longer.
//!
//! 1. A text is a code exactly if it has one to eight ASCII letters and digits, and the code is
//!    that text again.
//! 2. A keyspace reads back as it is written, and a list that is accepted has no overlap.
//! 3. Number → code → number is the identity, and so is code → number → code for every code of a
//!    keyspace. Together they make the permutation a bijection, at any size. Small keyspaces are
//!    also counted out.
//! 4. A code belongs to at most one keyspace. A code of none, and a number at or above the
//!    capacity, lead nowhere. All spellings of a code lead to the number of the one that is minted.
#![no_main]

use std::collections::HashSet;

use codes::{Code, CodeKey, Keyspace, KeyspaceIndex, LinkId, Mint, parse_keyspaces};
use libfuzzer_sys::fuzz_target;
use numbers::Span;

/// Capacities between these two are left out: their table takes milliseconds to shuffle.
const TABLE_MAX: u64 = 20_000;
const CIPHER_MIN: u64 = 1_000_000;
/// The largest keyspace that is counted out.
const COUNTED_MAX: u64 = 1_000;
const KEYSPACES_MAX: usize = 64;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.splitn(4, '\n');
    let keyspaces = lines.next().unwrap_or_default();
    let mut number = || lines.next().and_then(|line| line.trim().parse().ok()).unwrap_or(0);
    let numbers: [u64; 2] = [number(), number()];
    let text = lines.next().unwrap_or_default();

    check_code(text);
    check_keyspace(keyspaces);
    check_keyspace(text);
    let Ok(keyspaces) = parse_keyspaces(keyspaces) else { return };
    check_list(&keyspaces);
    let is_quick = |keyspace: &Keyspace| !(TABLE_MAX..CIPHER_MIN).contains(&keyspace.capacity());
    let quick = keyspaces.into_iter().filter(is_quick).take(4);
    let quick: Vec<_> = (1..).map(index).zip(quick).collect();
    let mint = Mint::new(&key(numbers[1]), quick.clone());
    assert_eq!(mint.compare(&quick), Ok(()));
    for (index, keyspace) in &quick {
        check_bijection(&mint, *index, keyspace, numbers);
    }
    check_lookups(&mint, &quick, numbers[0], text);
});

fn index(index: i64) -> KeyspaceIndex {
    KeyspaceIndex::new(index).expect("a few keyspaces have small indexes")
}

/// Returns a key that depends on a number.
fn key(number: u64) -> CodeKey {
    CodeKey::parse(&format!("{number:016x}").repeat(4)).expect("64 hexadecimal characters are a key")
}

fn check_code(text: &str) {
    let is_code =
        (1..=Code::MAX_LEN).contains(&text.len()) && text.bytes().all(|one| one.is_ascii_alphanumeric());
    match Code::parse(text) {
        Ok(code) => {
            assert!(is_code, "{text:?}");
            assert_eq!((code.as_str(), code.len(), &*code.to_string()), (text, text.len(), text));
            assert_eq!(Code::parse(code.as_str()), Ok(code));
        }
        Err(_) => assert!(!is_code, "{text:?}"),
    }
}

fn check_keyspace(text: &str) {
    let Ok(keyspace) = Keyspace::parse(text) else { return };
    assert_eq!(Keyspace::parse(&keyspace.to_string()).as_ref(), Ok(&keyspace));
    assert!((1..=Code::MAX_LEN).contains(&keyspace.len));
    assert!((1..=62_u64.pow(8)).contains(&keyspace.capacity()));
    assert!(keyspace.overlaps(&keyspace));
    let (first, last) = (keyspace.code_at(0), keyspace.code_at(keyspace.capacity() - 1));
    assert!(keyspace.contains(&first) && keyspace.contains(&last) && first.as_str() <= last.as_str());
}

fn check_list(keyspaces: &[Keyspace]) {
    assert!((1..=KEYSPACES_MAX).contains(&keyspaces.len()));
    for (place, one) in keyspaces.iter().enumerate() {
        for other in &keyspaces[..place] {
            assert!(!one.overlaps(other) && !other.overlaps(one), "{one} {other}");
        }
    }
}

fn check_bijection(mint: &Mint, index: KeyspaceIndex, keyspace: &Keyspace, numbers: [u64; 2]) {
    let capacity = keyspace.capacity();
    let [one, other] = numbers.map(|number| number % capacity);
    let codes = [one, other].map(|number| check_number(mint, index, keyspace, number));
    assert_eq!(codes[0] == codes[1], one == other);
    // Every position has a number below the capacity.
    let code = keyspace.code_at(one);
    let id = mint.read(&code).expect("a code of a keyspace has a number");
    assert_eq!(mint.code_of(id), Some(code));
    if capacity <= COUNTED_MAX {
        let all: HashSet<Code> =
            (0..capacity).map(|number| check_number(mint, index, keyspace, number)).collect();
        assert_eq!(all.len() as u64, capacity);
    }
    for past in [capacity, capacity.saturating_add(numbers[0]).min(Span::LIMIT - 1)] {
        assert_eq!(mint.code_of(LinkId::new(index, past)), None);
    }
}

fn check_number(mint: &Mint, index: KeyspaceIndex, keyspace: &Keyspace, number: u64) -> Code {
    let minted = mint.mint(index, number);
    assert!(keyspace.contains(&minted.code));
    assert_eq!(minted.id.unpack(), Some((index, number)));
    assert_eq!(mint.read(&minted.code), Some(minted.id));
    assert_eq!(mint.code_of(minted.id), Some(minted.code));
    assert_eq!(mint.keyspace_of(&minted.code).as_ref(), Some(&keyspace.name));
    assert_eq!(mint.as_minted(&minted.code), minted.code);
    minted.code
}

fn check_lookups(mint: &Mint, keyspaces: &[(KeyspaceIndex, Keyspace)], number: u64, text: &str) {
    let stored = LinkId::from_stored(number.cast_signed());
    if let Some(code) = mint.code_of(stored) {
        assert_eq!(mint.read(&code), Some(stored));
    }
    let Ok(code) = Code::parse(text) else { return };
    let owners = keyspaces.iter().filter(|(_, keyspace)| keyspace.contains(&code)).count();
    assert!(owners <= 1, "{code}");
    assert_eq!((mint.belongs(&code), mint.read(&code).is_some()), (owners == 1, owners == 1));
    if let Some(id) = mint.read(&code) {
        assert_eq!(mint.code_of(id), Some(mint.as_minted(&code)));
    }
}
