//! Spools that were damaged, torn, killed or shared.

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    thread,
};

use proptest::prelude::*;

use crate::{Block, Limits, Opened, OwnedBlock, Spool, SpoolError};

const SMALL: Limits = Limits { segment_bytes: 600, total_bytes: 1 << 20 };

fn open(folder: &Path) -> Spool {
    Spool::open(folder, SMALL).unwrap()
}

fn text(number: u64) -> Vec<u8> {
    format!("visit {number} ").repeat(usize::try_from(number % 17).unwrap() + 1).into_bytes()
}

fn append(spool: &mut Spool, number: u64) -> u64 {
    let bytes = text(number);
    let block = Block { bytes: &bytes, count: 2, span: (number.cast_signed(), 9) };
    spool.writer.append(&block).unwrap()
}

fn append_all(spool: &mut Spool, count: u64) {
    for number in 0..count {
        append(spool, number);
    }
}

fn read(spool: &mut Spool) -> Vec<OwnedBlock> {
    spool.reader.next(0, usize::MAX, usize::MAX).unwrap()
}

fn texts(spool: &mut Spool) -> Vec<Vec<u8>> {
    read(spool).into_iter().map(|block| block.bytes).collect()
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "segment")).collect();
    found.sort();
    found
}

/// Checks that all blocks but the last are there, and that the spool goes on.
fn check_goes_on(folder: &Path, before: &[Vec<u8>], what: &str) {
    let mut spool = open(folder);
    let found = texts(&mut spool);
    assert!(found == before || found.len() == before.len() + 1, "{what}: nothing before it is lost");
    assert_eq!(found[..before.len()], *before, "{what}");
    let last = read(&mut spool).last().map(|block| block.sequence);
    let next = append(&mut spool, 99);
    assert!(last.is_none_or(|last| next > last), "{what}: a number is never used again");
    assert_eq!(texts(&mut spool).last(), Some(&text(99)), "{what}");
}

/// Puts each of some contents in the place of a spool's last segment, whose last block begins at
/// the second argument, and checks that nothing before that is lost. Returns what was found.
fn damage_last_block(contents: impl FnOnce(&[u8], usize) -> Vec<Vec<u8>>) -> Vec<Opened> {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(folder.path());
    append_all(&mut spool, 4);
    drop(spool);
    let path = segments(folder.path()).pop().unwrap();
    let content = fs::read(&path).unwrap();
    let before: Vec<_> = (0..3).map(text).collect();
    let start = content.windows(4).rposition(|bytes| bytes == b"SMB\x01").unwrap();
    let check = |(number, damaged): (usize, Vec<u8>)| {
        fs::write(&path, damaged).unwrap();
        let Spool { gauge, opened, .. } = open(folder.path());
        assert_eq!(gauge.read().blocks, 3, "{number}");
        drop(gauge);
        check_goes_on(folder.path(), &before, &number.to_string());
        segments(folder.path()).iter().for_each(|path| fs::remove_file(path).unwrap());
        opened
    };
    contents(&content, start).into_iter().enumerate().map(check).collect()
}

#[test]
fn the_last_block_cut_at_every_byte_costs_nothing_before_it() {
    let cut =
        |content: &[u8], start: usize| (start..content.len()).map(|len| content[..len].to_vec()).collect();
    for (opened, cut_bytes) in damage_last_block(cut).into_iter().zip(0..) {
        assert_eq!(opened.cut_bytes, cut_bytes);
    }
}

#[test]
fn each_flipped_bit_of_the_last_block_costs_nothing_before_it() {
    damage_last_block(|content, start| {
        let flip = |bit: usize| {
            let mut damaged = content.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            damaged
        };
        (8 * start..8 * content.len()).map(flip).collect()
    });
}

#[test]
fn a_damaged_block_in_the_middle_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(folder.path());
    append_all(&mut spool, 40);
    drop(spool);
    let paths = segments(folder.path());
    assert!(paths.len() > 3, "the spool has several segments");
    let (path, content) = (&paths[1], fs::read(&paths[1]).unwrap());
    for place in 0..content.len() {
        let mut damaged = content.clone();
        damaged[place] ^= 0x55;
        fs::write(path, &damaged).unwrap();
        let mut spool = open(folder.path());
        let found = texts(&mut spool);
        assert_eq!(found.len(), 39, "{place}");
        let lost: Vec<u64> = (0..40).filter(|number| !found.contains(&text(*number))).collect();
        assert_eq!(lost.len(), 1, "{place}");
        assert!(spool.reader.skipped_bytes > 0 && spool.opened.damaged_bytes > 0);
        drop(spool);
        fs::write(path, &content).unwrap();
    }
    assert_eq!(texts(&mut open(folder.path())).len(), 40);
}

#[test]
fn numbers_ascend_after_everything_was_read_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = 0;
    for round in 0..5 {
        let mut spool = open(folder.path());
        for number in 0..20 {
            last = append(&mut spool, number);
        }
        assert_eq!(last, 20 * round + 19);
        spool.reader.release(last + 1).unwrap();
        spool.reader.release(last + 1).unwrap();
        assert_eq!(segments(folder.path()).len(), 1, "the last segment keeps the numbers");
        assert_eq!(spool.reader.next(last + 1, 1, 1).unwrap(), []);
    }
}

#[test]
fn a_missing_old_segment_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(folder.path());
    append_all(&mut spool, 30);
    fs::remove_file(&segments(folder.path())[0]).unwrap();
    let found = read(&mut spool);
    assert!(found.len() < 30 && found.last().unwrap().sequence == 29);
    spool.reader.release(30).unwrap();
    assert_eq!(segments(folder.path()).len(), 1);
}

#[test]
fn a_second_process_is_refused_and_a_damaged_identity_too() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(folder.path());
    let identity = spool.opened.identity;
    assert!(matches!(Spool::open(folder.path(), SMALL), Err(SpoolError::Locked(_))));
    drop(spool);
    assert_eq!(open(folder.path()).opened.identity, identity);
    let path = folder.path().join("identity");
    for damaged in [&b""[..], &[7; 20], &[7; 19], &[7; 21]] {
        fs::write(&path, damaged).unwrap();
        let refused = Spool::open(folder.path(), SMALL).err().unwrap();
        assert!(matches!(&refused, SpoolError::Identity(at) if *at == path), "{refused}");
    }
}

#[test]
fn files_are_readable_by_their_owner_only_and_leftovers_do_not_matter() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("a/b");
    fs::create_dir_all(&inside).unwrap();
    let home = inside.join("spool");
    let mut spool = open(&home);
    append(&mut spool, 1);
    spool.sidecars.put("batch", b"bytes").unwrap();
    drop(spool);
    for path in [home.join("identity"), home.join("batch.sidecar"), segments(&home).pop().unwrap()] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
    }
    assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
    for name in ["identity.new", "batch.new", "notes.txt", "zz.segment", "+000000000000001.segment"] {
        fs::write(home.join(name), "junk").unwrap();
    }
    assert_eq!(texts(&mut open(&home)), [text(1)]);
}

#[test]
fn sidecars_are_whole_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(folder.path());
    let sidecars = &spool.sidecars;
    assert_eq!(sidecars.get("batch").unwrap(), None);
    for content in [&b"one"[..], b"", &[7; 100_000]] {
        sidecars.put("batch", content).unwrap();
        assert_eq!(sidecars.get("batch").unwrap().as_deref(), Some(content));
    }
    let path = folder.path().join("batch.sidecar");
    OpenOptions::new().write(true).open(&path).unwrap().set_len(50_000).unwrap();
    assert!(matches!(sidecars.get("batch"), Err(SpoolError::Sidecar(_))));
    sidecars.remove("batch").unwrap();
    sidecars.remove("batch").unwrap();
    assert_eq!(sidecars.get("batch").unwrap(), None);
}

#[test]
fn a_position_ahead_of_the_spool_is_continued_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(folder.path());
    append(&mut spool, 1);
    assert!(!spool.reader.continue_from(1));
    assert!(spool.reader.continue_from(500));
    assert_eq!(append(&mut spool, 2), 500);
    assert_eq!(read(&mut spool).len(), 2);
}

#[test]
fn one_thread_appends_while_another_reads_and_releases() {
    let folder = tempfile::tempdir().unwrap();
    let Spool { mut writer, mut reader, .. } = open(folder.path());
    let appending = thread::spawn(move || {
        for number in 0..3_000_u64 {
            let bytes = text(number);
            writer.append(&Block { bytes: &bytes, count: 1, span: (0, 0) }).unwrap();
        }
    });
    let mut expected = 0;
    while expected < 3_000 {
        for block in reader.next(expected, 2_000, 7).unwrap() {
            assert_eq!((block.sequence, block.bytes), (expected, text(expected)));
            expected += 1;
        }
        reader.release(expected).unwrap();
    }
    appending.join().unwrap();
    assert!(segments(folder.path()).len() <= 2);
}

#[derive(Clone, Debug)]
enum Step {
    Append(u8),
    Reopen,
    Read(u8),
    Release,
    Tear(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0_u8..60).prop_map(Step::Append),
        1 => Just(Step::Reopen),
        3 => (1_u8..9).prop_map(Step::Read),
        1 => Just(Step::Release),
        1 => (0_u8..255).prop_map(Step::Tear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]
    #[test]
    fn what_is_read_is_what_was_appended_but_for_torn_tails(steps in prop::collection::vec(step(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Some(open(folder.path()));
        // The blocks that have to be read, in their order.
        let mut waiting: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut from = 0;
        for step in steps {
            let now = spool.as_mut().unwrap();
            match step {
                Step::Append(number) => {
                    let sequence = append(now, u64::from(number));
                    prop_assert!(sequence >= from);
                    waiting.push((sequence, text(u64::from(number))));
                }
                Step::Read(most) => {
                    let found = now.reader.next(from, usize::MAX, usize::from(most)).unwrap();
                    prop_assert_eq!(found.len(), waiting.len().min(usize::from(most)));
                    for (block, (sequence, text)) in found.iter().zip(waiting.drain(..found.len())) {
                        prop_assert_eq!((block.sequence, &block.bytes), (sequence, &text));
                        from = block.sequence + 1;
                    }
                }
                Step::Release => now.reader.release(from).unwrap(),
                Step::Reopen => {
                    drop(spool.take());
                    spool = Some(open(folder.path()));
                }
                Step::Tear(bytes) => {
                    drop(spool.take());
                    let path = segments(folder.path()).pop();
                    if let Some(path) = path.filter(|path| fs::metadata(path).unwrap().len() > 0) {
                        let len = fs::metadata(&path).unwrap().len();
                        // Less than any block: only the last one is torn.
                        let cut = u64::from(bytes % 40) + 1;
                        OpenOptions::new().write(true).open(&path).unwrap().set_len(len - cut).unwrap();
                        waiting.pop();
                    }
                    spool = Some(open(folder.path()));
                }
            }
        }
        let mut now = spool.unwrap();
        let found = now.reader.next(from, usize::MAX, usize::MAX).unwrap();
        let found: Vec<_> = found.into_iter().map(|block| (block.sequence, block.bytes)).collect();
        prop_assert_eq!(found, waiting);
    }
}
