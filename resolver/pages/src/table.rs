//! Tables to download, as CSV (RFC 4180).

use app::AppError;
use hyper::{
    StatusCode,
    header::{CONTENT_DISPOSITION, HeaderValue},
};
use transfer::harmless;
use web::{Answer, answer};

use crate::answer::unkept;

pub(crate) const CSV: &str = "text/csv; charset=utf-8";

/// Writes a table. Some cells are chosen by visitors and users, and a spreadsheet would evaluate a
/// formula in them: no cell is one.
pub(crate) fn write<const N: usize>(
    columns: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<Vec<u8>, AppError> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    let mut written = writer.write_record(columns);
    for row in rows {
        written = written.and_then(|()| writer.write_record(row.map(|cell| harmless(&cell).into_owned())));
    }
    let bytes = written.and_then(|()| writer.into_inner().map_err(|error| error.into_error().into()));
    bytes.map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "write a table");
        AppError::Internal
    })
}

/// Answers with a table as a file to download.
pub(crate) fn file(name: &str, table: Vec<u8>) -> Answer {
    to_download(name, answer(StatusCode::OK, CSV, table))
}

/// Makes an answer whose body is a table a file to download.
pub(crate) fn to_download(name: &str, answer: Answer) -> Answer {
    let mut answer = unkept(answer);
    if let Ok(disposition) = HeaderValue::try_from(format!("attachment; filename=\"{name}.csv\"")) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, disposition);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_cell_is_a_formula() {
        let rows = [["2", "https://e.org/?a=1,\"2\"", ""], ["=1+1", "@SUM(A1)", "-x"], ["+1", "\tx", "\rx"]];
        let written = write(["line", "longUrl", "error"], rows.map(|row| row.map(str::to_owned))).unwrap();
        let expected = "line,longUrl,error\r\n\
                        2,\"https://e.org/?a=1,\"\"2\"\"\",\r\n\
                        '=1+1,'@SUM(A1),'-x\r\n\
                        '+1,'\tx,\"'\rx\"\r\n";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}
