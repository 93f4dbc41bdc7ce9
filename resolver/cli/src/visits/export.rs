//! `resolver visits export`: writes visits as a table or as lines of JSON.
//!
//! 1. The server streams the list, and each visit is written as it arrives, so memory is bounded.
//!    Visits that come while the export runs are not part of it.
//! 2. A file has its name only once it is complete. An answer that breaks off is an error, and then
//!    no file is left.
//! 3. Visits are personal data, so only the file's owner may read it.

use std::{
    borrow::Cow,
    fs::{self, File},
    io::{self, BufReader, BufWriter, IsTerminal as _, Read, Write, stdout},
    ops::ControlFlow,
    path::Path,
};

use indicatif::ProgressBar;
use serde_json::{Value, json};
use transfer::{Shape, each_item, harmless, write_record};

use super::{
    args::{VisitsExportArgs, VisitsFormat},
    list_call,
};
use crate::{
    Error,
    client::{Call, Server},
    json_text,
    output::{create_private, out_error, out_file, progress_bar},
    wrong_value,
};

/// The visits in an answer, which is read while it arrives: `{"visits": {"data": [{…}, …], …}}`.
const LIST: Shape = Shape::list(&["visits", "data"]);
/// The columns of a table, and where each is in a visit.
const COLUMNS: [(&str, &str); 14] = [
    ("date", "/date"),
    ("type", "/type"),
    ("visitedUrl", "/visitedUrl"),
    ("redirectUrl", "/redirectUrl"),
    ("referer", "/referer"),
    ("userAgent", "/userAgent"),
    ("potentialBot", "/potentialBot"),
    ("countryCode", "/visitLocation/countryCode"),
    ("countryName", "/visitLocation/countryName"),
    ("regionName", "/visitLocation/regionName"),
    ("cityName", "/visitLocation/cityName"),
    ("latitude", "/visitLocation/latitude"),
    ("longitude", "/visitLocation/longitude"),
    ("timezone", "/visitLocation/timezone"),
];

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
            // The unfinished file is of no use, and the error that ended it is the one to show.
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
        _ => create_private(path),
    }
}

/// Passes each visit of an answer to `take`, until one cannot be taken.
fn each_visit(
    server: &Server,
    answer: impl Read,
    mut take: impl FnMut(&Value) -> Result<(), Error>,
) -> Result<(), Error> {
    let foreign = || Err::<(), Error>(server.foreign().into());
    let broken_off = |error: io::Error| Err::<(), Error>(server.broken_off(&error).into());
    let mut ended = None;
    let read = each_item(answer, LIST, |item| {
        let visit = item.filter(|item| item["date"].is_string());
        match visit.as_ref().map_or_else(foreign, &mut take) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                ended = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    match (ended, read) {
        (Some(error), _) => Err(error),
        (None, Ok(0)) => broken_off(io::ErrorKind::UnexpectedEof.into()),
        (None, Ok(_)) => Ok(()),
        (None, Err(error)) if error.is_io() || error.is_eof() => broken_off(error.into()),
        (None, Err(_)) => foreign(),
    }
}

/// Writes what is before the first visit: the names of the columns of a table.
fn write_head(format: VisitsFormat, to: impl Write) -> io::Result<()> {
    match format {
        VisitsFormat::Csv => write_record(COLUMNS.iter().map(|(name, _)| *name), to),
        VisitsFormat::Ndjson => Ok(()),
    }
}

fn write_visit(format: VisitsFormat, visit: &Value, mut to: impl Write) -> io::Result<()> {
    match format {
        VisitsFormat::Csv => {
            let cells = COLUMNS.map(|(_, pointer)| cell(visit.pointer(pointer)));
            write_record(cells.iter().map(|cell| &**cell), to)
        }
        VisitsFormat::Ndjson => writeln!(to, "{visit}"),
    }
}

/// Formats a value for a cell. Visitors choose some of the texts, and a spreadsheet would evaluate
/// a formula in them. Degrees may begin with a minus, and are numbers.
fn cell(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        Some(Value::String(text)) => harmless(text),
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(value) => Cow::Owned(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::{ClientError, args::ServerArgs};

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
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(create(folder.path()).is_err(), "a folder is not replaced");
    }

    fn server() -> Server {
        Server::new(&ServerArgs { server: "http://sho.rt".to_owned(), api_key: "k".to_owned() }).unwrap()
    }

    fn answer() -> String {
        let visit = |date: &str| {
            json!({
                "date": date, "referer": "", "userAgent": "a", "visitLocation": null, "potentialBot": true,
                "visitedUrl": "https://s.test/a", "redirectUrl": null, "aNewField": [1],
            })
        };
        json!({ "visits": { "data": [visit("1"), visit("2")], "pagination": { "data": 1 } } }).to_string()
    }

    fn dates(answer: &str) -> Result<Vec<String>, Error> {
        let mut dates = Vec::new();
        each_visit(&server(), answer.as_bytes(), |visit| {
            dates.push(visit["date"].as_str().unwrap().to_owned());
            Ok(())
        })?;
        Ok(dates)
    }

    #[test]
    fn visits_are_read_and_fields_of_a_newer_server_are_ignored() {
        assert_eq!(dates(&answer()).unwrap(), ["1", "2"]);
        assert_eq!(dates(r#"{"visits": {"data": []}}"#).unwrap(), [""; 0]);
    }

    #[test]
    fn an_answer_that_ends_anywhere_is_broken_off() {
        let answer = answer();
        for end in 0..answer.len() {
            let ended = dates(&answer[..end]).unwrap_err();
            assert!(matches!(ended, Error::Client(ClientError::Unreachable(..))), "{end}: {ended:?}");
        }
    }

    #[test]
    fn an_answer_of_another_form_is_foreign() {
        for other in ["{}", r#"{"visits": {}}"#, r#"{"visits": {"data": [1]}}"#, "<html>"] {
            let ended = dates(other).unwrap_err();
            assert!(matches!(ended, Error::Client(ClientError::Foreign(..))), "{other}: {ended:?}");
        }
    }

    #[test]
    fn a_visit_that_is_not_taken_ends_the_list() {
        let mut taken = 0;
        let ended = each_visit(&server(), answer().as_bytes(), |_| {
            taken += 1;
            Err(io::Error::from(io::ErrorKind::StorageFull).into())
        });
        assert!(matches!(ended, Err(Error::Io(error)) if error.kind() == io::ErrorKind::StorageFull));
        assert_eq!(taken, 1);
    }

    #[test]
    fn a_table_has_a_row_for_each_visit_and_no_formulas() {
        let visits = [
            json!({
                "date": "2026-11-25T10:00:00+00:00", "visitedUrl": "https://s.test/a", "potentialBot": true,
                "referer": "=HYPERLINK(\"https://evil.test\")", "userAgent": "two\nlines, \"quoted\"",
                "visitLocation": { "countryCode": "BR", "latitude": -23.5 },
            }),
            json!({ "type": "base_url", "visitLocation": null }),
        ];
        let mut table = Vec::new();
        write_head(VisitsFormat::Csv, &mut table).unwrap();
        for visit in &visits {
            write_visit(VisitsFormat::Csv, visit, &mut table).unwrap();
        }
        let mut records = transfer::Records::open(&*table, |_| 0).unwrap();
        let mut rows: Vec<Vec<String>> = Vec::new();
        while let Some(record) = records.next().unwrap() {
            rows.push(record.cells().map(|cell| cell.unwrap().to_owned()).collect());
        }
        assert_eq!(rows.remove(0), COLUMNS.map(|(name, _)| name));
        let cell = |row: usize, name| &*rows[row][COLUMNS.iter().position(|it| it.0 == name).unwrap()];
        assert_eq!(cell(0, "referer"), "'=HYPERLINK(\"https://evil.test\")");
        assert_eq!(cell(0, "userAgent"), "two\nlines, \"quoted\"");
        assert_eq!((cell(0, "latitude"), cell(0, "countryCode")), ("-23.5", "BR"));
        assert_eq!((cell(0, "potentialBot"), cell(1, "type")), ("true", "base_url"));
        assert_eq!((cell(1, "latitude"), rows.len()), ("", 2));
    }

    #[test]
    fn a_line_of_json_is_a_visit_as_the_api_has_it() {
        let (visit, mut lines) = (json!({ "date": "2026-11-25", "aNewField": [1] }), Vec::new());
        write_visit(VisitsFormat::Ndjson, &visit, &mut lines).unwrap();
        assert_eq!(lines, b"{\"date\":\"2026-11-25\",\"aNewField\":[1]}\n");
    }
}
