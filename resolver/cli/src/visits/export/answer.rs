//! Reads the visits of a list while it arrives: `{"visits": {"data": [{…}, …], …}}`.

use std::{
    io::{self, Read},
    ops::ControlFlow,
};

use serde_json::Value;
use transfer::{Shape, each_item};

use crate::{Error, client::Server};

const LIST: Shape = Shape { path: &["visits", "data"], beside: None };

/// Passes each visit of an answer to `take`, until one cannot be taken.
pub(super) fn each_visit(
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ClientError, args::ServerArgs};

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
}
