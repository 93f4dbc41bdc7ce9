//! `resolver backup`: a copy of a running resolver's files, from which another start goes on.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use harness::{Acknowledged, Finished, Launch, Load, Resolver, Scratch, binaries};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(60);
const KEY: &str = "0123456789abcdef0123456789abcdef";
/// Links that are created before the backup, after it, and after each restore: more than the rest
/// of a block.
const BEFORE: usize = 200;
const AFTER: usize = 1_500;

fn start(scratch: &Scratch) -> harness::ResolverBuilder {
    Resolver::builder(scratch, "resolver-0", KEY).unwrap()
}

/// Runs `resolver backup` beside a resolver, in its folder.
async fn back_up(scratch: &Scratch, args: &[&str]) -> Finished {
    let launch = Launch::new(scratch, "backup", binaries::resolver().await.unwrap());
    launch.arg("backup").args(args).run(SOON).await.unwrap()
}

fn copy_folder(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// Starts a resolver on a copy of a backup, in a folder of its own.
async fn restore(backup: &Path) -> Resolver {
    let scratch = Scratch::new().unwrap();
    copy_folder(backup, &scratch.path().join("data"));
    start(&scratch).start().await.unwrap()
}

fn codes(links: &[Acknowledged]) -> HashSet<String> {
    links.iter().map(|link| link.code.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_has_each_link_and_after_its_restore_no_published_code_is_minted() {
    let scratch = Scratch::new().unwrap();
    let resolver = start(&scratch).start().await.unwrap();
    let before = Load::on([&resolver]).creates(BEFORE).run().await.unwrap();
    let target = scratch.path().join("copy");
    let mut load = Load::on([&resolver]).clients(4).creates(usize::MAX).per_second(300).start();
    load.reaches(20, SOON).await.unwrap();
    let told = back_up(&scratch, &[target.to_str().unwrap(), "--json"]).await.success().unwrap();
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let names: Vec<_> = told["files"].as_array().unwrap().iter().map(|file| &file["name"]).collect();
    assert_eq!(names, ["visits.db", "shortmint.db", "ledger.json", "code.key"], "{told}");
    load.reaches(AFTER, SOON).await.unwrap();
    load.wind_down();
    let mut public = codes(&load.finish().await.unwrap());
    public.extend(codes(&before));
    drop(resolver);

    // The second restore of the same backup must not mint the codes of the first.
    for _ in 0..2 {
        let restored = restore(&target).await;
        for link in &before {
            let followed = restored.api.follow(&link.code).await.unwrap();
            assert_eq!(followed, (302, Some(link.long_url.clone())));
        }
        let new = codes(&Load::on([&restored]).creates(AFTER).run().await.unwrap());
        assert!(new.is_disjoint(&public), "{:?}", new.intersection(&public).next());
        let log = restored.process.stderr();
        let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
        assert_eq!((lines("restored from a backup"), lines(" ERROR ")), (1, 0), "{log}");
        public.extend(new);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_appears_whole_and_for_its_owner_or_not_at_all() {
    let scratch = Scratch::new().unwrap();
    let mut resolver = start(&scratch).start().await.unwrap();
    let target = scratch.path().join("copy");
    let path = target.to_str().unwrap().to_owned();
    let made = back_up(&scratch, &[&path]).await.success().unwrap();
    assert!(made.stdout.contains("shortmint.db") && made.stdout.contains("bytes"), "{made:?}");
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(target.clone()), 0o700);
    let files: Vec<_> = fs::read_dir(&target).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.iter().all(|file| mode(file.clone()) == 0o600), "{files:?}");
    let is_kept_out = |file: &PathBuf| {
        let name = file.to_string_lossy();
        !name.ends_with("witness") && !name.ends_with("-wal") && !name.contains("spool")
    };
    assert!(files.len() == 4 && files.iter().all(is_kept_out), "{files:?}");

    for (args, reason) in [
        (vec![path.as_str()], "it exists already"),
        (vec!["/proc/none/copy"], "No such file or directory"),
        (vec!["x", "--database", "postgres://a.example/b"], "pg_basebackup"),
        (vec!["x", "--database", "sqlite:none.db"], "there is no such file"),
    ] {
        let refused = back_up(&scratch, &args).await;
        assert_eq!(refused.code(), Some(64), "{args:?}: {refused:?}");
        assert!(refused.stderr.contains(reason), "{args:?}: {refused:?}");
    }
    // A file that cannot be read leaves nothing behind.
    resolver.stop(SOON).await.unwrap();
    fs::write(scratch.path().join("data/visits.db"), "no database").unwrap();
    let failed = back_up(&scratch, &["x"]).await;
    assert_eq!(failed.code(), Some(70), "{failed:?}");
    assert!(failed.stderr.contains("nothing was kept"), "{failed:?}");
    let left = |name: &str| scratch.path().join(name).exists();
    assert!(!left("x") && !left(".x.unfinished"));
}

/// Restored files of any other copy are safe after one command that asks for no number.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_by_other_means_is_safe_after_one_command() {
    let scratch = Scratch::new().unwrap();
    let mut resolver = start(&scratch).start().await.unwrap();
    Load::on([&resolver]).creates(BEFORE).run().await.unwrap();
    resolver.stop(SOON).await.unwrap();
    let copy = scratch.path().join("copy");
    copy_folder(&scratch.path().join("data"), &copy);
    fs::remove_file(copy.join("shortmint.db.witness")).unwrap();
    resolver.restart().await.unwrap();
    let public = codes(&Load::on([&resolver]).creates(AFTER).run().await.unwrap());
    drop(resolver);
    let database = format!("sqlite:{}", copy.join("shortmint.db").display());
    let migrate = Launch::new(&scratch, "put-back", binaries::resolver().await.unwrap());
    let args = ["migrate", "--put-back", "--database", &database];
    let told = migrate.args(args).run(SOON).await.unwrap().success().unwrap();
    assert!(told.stdout.contains("half of the numbers left"), "{told:?}");
    let restored = restore(&copy).await;
    let new = codes(&Load::on([&restored]).creates(AFTER).run().await.unwrap());
    assert!(new.is_disjoint(&public), "{:?}", new.intersection(&public).next());
    let log = restored.process.stderr();
    assert_eq!(log.lines().filter(|line| line.contains(" ERROR ")).count(), 0, "{log}");
}
