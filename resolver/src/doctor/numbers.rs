//! Codes and numbers: the code key, the keyspaces and what is left of them, and the files that
//! detect older copies.

use std::io::ErrorKind;

use cli::code_key_file;
use codes::{Keyspace, plan_adoption};
use numbers::Mark;
use store::{Store, StoreError, Witness};

use super::{Finding, Verdict, asked, issuers};
use crate::config::Settings;

/// The share of a keyspace below which it is low, as for the issuers.
const LOW_PERCENT: u128 = 10;

pub(super) async fn look(settings: &Settings, store: &dyn Store) -> Vec<Finding> {
    let (key, keyspaces, witness, ledger) = tokio::join!(
        asked("code key", code_key(settings, store)),
        asked("keyspaces", keyspaces(settings, store)),
        witness(settings, store),
        issuers::ledger(settings, store),
    );
    [Some(key), Some(keyspaces), witness, ledger].into_iter().flatten().collect()
}

async fn code_key(settings: &Settings, store: &dyn Store) -> Result<Finding, StoreError> {
    let (path, adopted) = (settings.code_key_file.display(), store.fingerprint().await?);
    let found = match (code_key_file::read(&settings.code_key_file), adopted) {
        (Ok(key), Some(adopted)) if key.fingerprint() == adopted => {
            return Ok(Finding::ok("code key", format!("{path} is that of the database")));
        }
        (Ok(_), None) => {
            return Ok(Finding::ok("code key", format!("{path} can be read, and the database has none yet")));
        }
        (Err(error), None) if error.kind() == ErrorKind::NotFound => {
            let is_created = settings.flags.code_key_file.is_none() && settings.flags.role.serves_api();
            if is_created {
                let found = format!("there is no {path} yet: the first start creates it");
                return Ok(Finding::ok("code key", found));
            }
            format!("{path}: {error}")
        }
        (Ok(key), Some(adopted)) => format!(
            "the database belongs to another key: its mark is {adopted}, that of {path} is {}",
            key.fingerprint()
        ),
        (Err(error), _) => format!("{path}: {error}"),
    };
    Ok(Finding::wrong("code key", found)
        .advise(
            "With another key every stored link would answer under another code, so no process starts.",
            "Bring back the file that the other processes have, or that of the backup.",
        )
        .see("backup.md"))
}

async fn keyspaces(settings: &Settings, store: &dyn Store) -> Result<Finding, StoreError> {
    let known = store.poll_settings(None).await?.settings.unwrap_or_default().keyspaces;
    if let Err(error) = plan_adoption(&known, &settings.keyspaces) {
        return Ok(Finding::wrong("keyspaces", error.to_string()).advise(
            "A process with this --keyspaces does not start.",
            "Give the keyspaces that the database has, and add others.",
        ));
    }
    let (mut verdict, mut left) = (Verdict::Ok, Vec::new());
    for (index, keyspace) in known {
        if keyspace.hand_picked || !settings.keyspaces.contains(&keyspace) {
            continue;
        }
        let (of_this, text) = judge(&keyspace, store.registered_end(index).await?);
        verdict = match (verdict, of_this) {
            (Verdict::Wrong, _) | (_, Verdict::Wrong) => Verdict::Wrong,
            (Verdict::Warning, _) | (_, Verdict::Warning) => Verdict::Warning,
            _ => verdict,
        };
        left.push(text);
    }
    let found = if left.is_empty() { "the first start adds them".to_owned() } else { left.join("; ") };
    let finding = Finding::new(verdict, "keyspaces", found);
    if verdict == Verdict::Ok {
        return Ok(finding);
    }
    Ok(finding
        .advise("Creates in a keyspace that is used up are answered 507.", "Plan another keyspace.")
        .see("numbers.md#shortmintnumberslow"))
}

/// Judges a keyspace whose numbers from `end` on were never given to a process. Some of the others
/// may be unused, so more may be left.
fn judge(keyspace: &Keyspace, end: u64) -> (Verdict, String) {
    let (capacity, name) = (keyspace.capacity(), &keyspace.name);
    let left = capacity.saturating_sub(end);
    let percent = u128::from(left) * 100 / u128::from(capacity.max(1));
    let verdict = match percent {
        _ if left == 0 => Verdict::Wrong,
        percent if percent < LOW_PERCENT => Verdict::Warning,
        _ => Verdict::Ok,
    };
    (verdict, format!("{name} has {percent} % of {capacity} codes left"))
}

/// Compares the witness file with the database; `None` without such a file.
async fn witness(settings: &Settings, store: &dyn Store) -> Option<Finding> {
    let path = settings.witness.as_deref()?;
    let shown = path.display();
    // The file is read first: the database goes on before the file does.
    let known = match Witness::mark_in(path) {
        Ok(Some(known)) => known,
        Ok(None) => return Some(Finding::ok("witness", format!("there is no {shown} yet"))),
        Err(error) => {
            return Some(Finding::wrong("witness", format!("{shown}: {error}")).advise(
                "A process with it does not start.",
                "Bring the file back. Without it, older copies of all stores together are not noticed.",
            ));
        }
    };
    Some(asked("witness", compare(store, known, shown.to_string())).await)
}

async fn compare(store: &dyn Store, known: Mark, file: String) -> Result<Finding, StoreError> {
    let mark = store.mark().await?;
    if mark >= known {
        return Ok(Finding::ok("witness", format!("the database is as far as {file}")));
    }
    let found = format!("the database is at mark {mark}, {file} at {known}");
    Ok(Finding::warning("witness", found)
        .advise(
            "The database is an older copy: it lacks the last links.",
            "If it is meant to be, start: a new history begins, and no code is minted again.",
        )
        .see("restore.md#postgres-only"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyspace_is_low_below_a_tenth_and_wrong_when_it_is_used_up() {
        let keyspace = Keyspace::parse("small=2:0-9").unwrap();
        assert_eq!(keyspace.capacity(), 620);
        for (end, verdict, percent) in [
            (0, Verdict::Ok, 100),
            (558, Verdict::Ok, 10),
            (559, Verdict::Warning, 9),
            (620, Verdict::Wrong, 0),
        ] {
            let expected = format!("small has {percent} % of 620 codes left");
            assert_eq!(judge(&keyspace, end), (verdict, expected), "{end}");
        }
    }
}
