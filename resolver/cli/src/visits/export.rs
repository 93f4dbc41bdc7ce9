//! `resolver visits export`: writes visits as a table or as lines of JSON.
//!
//! 1. The server streams the list, and each visit is written as it arrives, so memory is bounded.
//!    Visits that come while the export runs are not part of it.
//! 2. A file has its name only once it is complete. An answer that breaks off is an error, and then
//!    no file is left.
//! 3. Visits are personal data, so only the file's owner may read it.

mod answer;
mod rows;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, IsTerminal as _, Write, stdout},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use indicatif::ProgressBar;
use serde_json::json;

use self::{
    answer::each_visit,
    rows::{write_head, write_visit},
};
use super::{
    args::{VisitsExportArgs, VisitsFormat},
    list_call,
};
use crate::{
    Error,
    client::{Call, Server},
    json_text,
    output::{out_error, out_file, progress_bar},
    wrong_value,
};

const MODE: u32 = 0o600;

pub(super) async fn run(args: VisitsExportArgs) -> Result<String, Error> {
    if let Some(path) = out_file(args.out.as_ref()).filter(|path| path.exists()) {
        let reason = "there is such a file already: name another one";
        return Err(wrong_value("--out", path.display(), reason));
    }
    let server = Server::new(&args.server)?;
    let (path, query) = list_call(&args.of)?;
    let one = [query.clone(), vec![("itemsPerPage", "1".to_owned())]].concat();
    let first = server.ask(Call::read(path.clone(), one)).await?;
    let total = first["visits"]["pagination"]["totalItems"].as_u64().ok_or_else(|| server.foreign())?;
    let call = Call::read(path, query);
    let export = tokio::task::spawn_blocking(move || write(&server, &call, &args, total));
    export.await.map_err(|_| Error::TaskFailed("export of visits"))?
}

fn write(server: &Server, call: &Call, args: &VisitsExportArgs, total: u64) -> Result<String, Error> {
    let file = out_file(args.out.as_ref());
    let failed = |error: io::Error| out_error(file, error);
    let write_to = |to: &mut dyn Write| {
        let answer = server.stream(call)?;
        let mut to = BufWriter::new(to);
        write_head(args.format, &mut to).map_err(failed)?;
        // On a terminal it would be drawn between the visits.
        let is_terminal = stdout().is_terminal();
        let bar =
            if is_terminal { ProgressBar::hidden() } else { progress_bar(Some(total), "{pos}/{len} visits") };
        let mut visits = 0;
        let ended = each_visit(server, BufReader::new(answer), |visit| {
            visits += 1;
            bar.inc(1);
            write_visit(args.format, visit, &mut to).map_err(failed)
        });
        bar.finish_and_clear();
        ended?;
        to.flush().map_err(failed)?;
        Ok::<u64, Error>(visits)
    };
    let Some(path) = file else { return write_to(&mut stdout()).map(|_| String::new()) };
    let unfinished = path.with_added_extension("unfinished");
    let mut file = create(&unfinished).map_err(|error| wrong_value("--out", unfinished.display(), error))?;
    let written = write_to(&mut file).and_then(|visits| {
        file.sync_all().and_then(|()| fs::rename(&unfinished, path)).map_err(failed)?;
        Ok(visits)
    });
    match written {
        Ok(visits) if args.json => Ok(json_text::pretty(&json!({ "visits": visits }))),
        Ok(visits) => Ok(format!("{visits} visits written to {}\n", path.display())),
        Err(error) => {
            // What is left of the file is of no use, and the error that ended it is the one to
            // show.
            drop(fs::remove_file(&unfinished));
            Err(error)
        }
    }
}

/// Creates a file in place of what an earlier export left: that may be a link to somewhere else, or
/// readable by others.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).mode(MODE).open(path),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_that_was_left_is_replaced_and_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("x.unfinished"), folder.path().join("other"));
        fs::write(&other, "other").unwrap();
        symlink(&other, &path).unwrap();
        create(&path).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"other");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        assert!(create(folder.path()).is_err(), "a folder is not replaced");
    }
}
