//! The part of a platform's work that a process takes.

use clap::ValueEnum;
use cli::{Error, args::Database, wrong_value};

use super::Config;

/// The requests that a process answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Visitors and calls of the API.
    All,
    /// Visitors only. Such a process takes no numbers, and needs no issuer. Of the database it
    /// changes nothing but visits, their counts, and the uses of links with a limit.
    Redirect,
    /// Calls of the API only.
    Api,
}

impl Role {
    /// Returns whether visitors are served: redirects, pages, QR codes.
    pub fn serves_visitors(self) -> bool {
        self != Self::Api
    }

    /// Returns whether calls of the API are answered.
    pub fn serves_api(self) -> bool {
        self != Self::Redirect
    }
}

impl Config {
    /// Checks that the flags of the other roles are absent, and that there is a database which
    /// several processes can share.
    pub(super) fn check_role(&self) -> Result<(), Error> {
        if self.role == Role::All {
            return Ok(());
        }
        if matches!(self.database.database, Database::Sqlite(_)) {
            let reason = "with --role redirect or api use postgres://…: a SQLite file has one process";
            return Err(wrong_value("--database", &self.database.database, reason));
        }
        if self.role == Role::Api {
            return Ok(());
        }
        let given = [
            ("--issuer", self.issuer.first().cloned()),
            ("--holder-id", self.holder_id.clone()),
            ("--grpc-listen", self.grpc_listen.map(|address| address.to_string())),
            ("--initial-api-key", self.initial_api_key.as_ref().map(|_| "(hidden)".to_owned())),
            ("--witness", self.witness.as_ref().map(|path| path.display().to_string())),
        ];
        match given.into_iter().find_map(|(flag, value)| Some((flag, value?))) {
            Some((flag, value)) => {
                Err(wrong_value(flag, value, "leave it out with --role redirect, which serves visitors only"))
            }
            None => Ok(()),
        }
    }
}
