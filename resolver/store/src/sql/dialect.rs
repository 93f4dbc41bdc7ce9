//! Expressions and statements in which the two databases differ.

use std::time::Duration;

use links::Details;

/// A SQL dialect, with the expressions and statements that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// That of Postgres.
    Postgres,
    /// That of SQLite.
    Sqlite,
}

impl Dialect {
    /// Returns what one database has in place of the other's.
    fn pick<T>(self, postgres: T, sqlite: T) -> T {
        match self {
            Self::Postgres => postgres,
            Self::Sqlite => sqlite,
        }
    }

    /// SQL expression for the transaction's time plus `milliseconds`, a placeholder.
    pub(crate) fn now_plus(self, milliseconds: &str) -> String {
        let span = format!("CAST({milliseconds} AS bigint) * interval '1 millisecond'");
        format!("{} + {}", self.now(), self.pick(span.as_str(), milliseconds))
    }

    /// SQL expression for the transaction's time minus `span`.
    pub fn now_minus(self, span: Duration) -> String {
        format!("{} - {}{}", self.now(), span.as_millis(), self.pick(" * interval '1 millisecond'", ""))
    }

    /// SQL expression, as text, for the copy of the database that has a table. For use in a SELECT
    /// from it.
    ///
    /// On Postgres it consists of the server's start time, the table's identity and the history: a
    /// server is stopped while its files are replaced, a dump brings another table, and a promoted
    /// standby has its own start time. A SQLite file is replaced while no process has it open, so
    /// the history suffices.
    pub fn copy_of_database(self) -> &'static str {
        self.pick(
            "extract(epoch FROM pg_postmaster_start_time())::text || '/' || tableoid::text || '/'
             || coalesce((SELECT history FROM deployment), 0)",
            "coalesce((SELECT history FROM deployment), 0) || ''",
        )
    }

    /// SQL expression for the later of two times.
    pub fn later(self, one: &str, other: &str) -> String {
        format!("{}({one}, {other})", self.pick("greatest", "max"))
    }

    /// SQL query for a time before which no more links will be created. Links have their
    /// transaction's start time.
    ///
    /// On Postgres it is the start of the oldest transaction under way, and at most now minus 2
    /// seconds, for transactions that have begun and are not visible yet. A transaction that has
    /// written nothing for two minutes counts as read-only. If another role's sessions are hidden,
    /// the result is two minutes ago. Nodes of Citus store links by clocks of their own, within
    /// seconds: there it is 40 seconds ago, less than what lookups read beside the index
    /// ([`TAIL`](super::long_urls::TAIL)). SQLite has one writer, so there it is the current time.
    pub(crate) fn settled(self, is_distributed: bool) -> &'static str {
        if is_distributed {
            return "SELECT now() - interval '40 seconds'";
        }
        self.pick(
            "SELECT CASE WHEN bool_or(state IS NULL OR state = 'disabled') THEN now() - interval '2 minutes'
                         ELSE least(now() - interval '2 seconds', min(xact_start)) END
             FROM pg_stat_activity
             WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
               AND (state IS NULL OR state = 'disabled' OR backend_xid IS NOT NULL OR xact_start > now() - interval '2 minutes')",
            "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        )
    }

    /// SQL expression for the transaction's time.
    pub fn now(self) -> &'static str {
        self.pick("now()", "CAST(unixepoch('subsec') * 1000 AS INTEGER)")
    }

    /// SQL expression for the transaction's time in milliseconds since 1970.
    pub fn now_millis(self) -> &'static str {
        self.pick(
            "CAST(extract(epoch FROM now()) * 1000 AS bigint)",
            "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        )
    }

    /// SQL condition that a text contains another one whose search key is `key`.
    pub(crate) fn contains(self, text: &str, key: &str) -> String {
        format!("{}(search_key({text}), {key}) > 0", self.pick("strpos", "instr"))
    }

    /// SQL term that orders texts by their bytes, whatever the server's locale.
    pub(crate) fn by_bytes(self, text: &str) -> String {
        format!("{text} COLLATE {}", self.pick("\"C\"", "BINARY"))
    }

    /// SQL terms that order names as people expect, and equal ones by their bytes.
    pub(crate) fn sorted(self, name: &str) -> String {
        format!("{}, {}", self.by_bytes(&format!("sort_key({name})")), self.by_bytes(name))
    }

    /// SQL query for an unused link id that belongs to no minted code. On SQLite each history has
    /// 2^32 ids of its own.
    pub(crate) fn next_slug_link_id(self) -> &'static str {
        self.pick(
            "SELECT nextval('slug_link_id')",
            "WITH own (first) AS (SELECT coalesce((SELECT history % 65536 * 4294967296 FROM deployment), 0))
             SELECT max(first, coalesce(
                 (SELECT max(id) FROM link WHERE id >= first AND id < first + 4294967296), 0)) + 1 FROM own",
        )
    }

    /// SQL statements that leave out the next ids of domains, and of links with a slug, as many as
    /// their only parameter says.
    pub(crate) fn skip_ids(self) -> Vec<&'static str> {
        match self {
            Self::Postgres => vec![
                "SELECT setval('domain_id_seq', (SELECT last_value FROM domain_id_seq) + $1)",
                "SELECT setval('slug_link_id', (SELECT last_value FROM slug_link_id) + $1)",
            ],
            // Those of links follow from the history.
            Self::Sqlite => vec!["UPDATE sqlite_sequence SET seq = seq + $1 WHERE name = 'domain'"],
        }
    }

    /// SQL query for the estimated number of links; negative if there is no estimate. An exact
    /// count takes Postgres seconds.
    pub(crate) fn link_count(self) -> &'static str {
        self.pick(
            "SELECT CAST(reltuples AS bigint) FROM pg_class WHERE oid = 'link'::regclass",
            "SELECT count(*) FROM link",
        )
    }

    /// SQL query for the end of the last block that begins between two parameters.
    ///
    /// On Postgres, ranges are compared with ranges of one id, because no range with the same start
    /// sorts below those. An unbounded range would sort above the first block of the keyspace, and
    /// of the next one.
    pub(crate) fn last_block_end(self) -> &'static str {
        self.pick(
            "SELECT upper(ids) FROM block
             WHERE ids >= int8range($1, $1 + 1) AND ids < int8range($2, $2 + 1) ORDER BY ids DESC LIMIT 1",
            "SELECT end_id FROM block WHERE first_id >= $1 AND first_id < $2 ORDER BY first_id DESC LIMIT 1",
        )
    }

    /// The columns of a block's ids, and SQL expressions for an insert of them: from the first, in
    /// `column1`, to the end in `column2`, exclusive.
    pub(crate) fn block_ids(self) -> (&'static str, &'static str) {
        self.pick(("ids", "int8range(column1, column2)"), ("first_id, end_id", "column1, column2"))
    }

    /// SQL expressions for the first id of a block and the end of its ids, exclusive.
    pub(crate) fn block_bounds(self) -> (&'static str, &'static str) {
        self.pick(("lower(ids)", "upper(ids)"), ("first_id", "end_id"))
    }

    /// SQL condition that a block has some of the ids from the first to the end, exclusive.
    pub(crate) fn block_overlaps(self, first: &str, end: &str) -> String {
        self.pick(
            format!("ids && int8range({first}, {end})"),
            format!("end_id > {first} AND first_id < {end}"),
        )
    }

    /// SQL condition that a block has no ids but those from the first to the end, exclusive.
    pub(crate) fn block_within(self, first: &str, end: &str) -> String {
        self.pick(
            format!("ids <@ int8range({first}, {end})"),
            format!("first_id >= {first} AND end_id <= {end}"),
        )
    }

    /// SQL condition that a column is among some numbers: those of [`Value::numbers`].
    ///
    /// [`Value::numbers`]: super::Value::numbers
    pub fn among(self, column: &str, place: &str) -> String {
        match self {
            Self::Postgres => format!("{column} = ANY(CAST(string_to_array({place}, ',') AS bigint[]))"),
            Self::Sqlite => format!("{column} IN ({})", self.numbers(place)),
        }
    }

    /// SQL condition that a column is among thousands of numbers, as [`among`](Self::among) has it.
    /// Postgres would estimate the rows of each of them before it begins.
    pub fn among_many(self, column: &str, place: &str) -> String {
        match self {
            Self::Postgres => format!("{column} = ANY(ARRAY({}))", self.numbers(place)),
            Self::Sqlite => self.among(column, place),
        }
    }

    /// SQL query for some numbers: those of [`Value::numbers`](super::Value::numbers).
    pub(crate) fn numbers(self, place: &str) -> String {
        self.pick(
            format!("SELECT unnest(CAST(string_to_array({place}, ',') AS bigint[]))"),
            format!("SELECT value FROM json_each('[' || {place} || ']')"),
        )
    }

    /// SQL statement that lets no other transaction write to a table until the transaction ends,
    /// nor lock it `EXCLUSIVE` like this; those that `SHARE` it go on. SQLite has one writer.
    pub(crate) fn lock_table(self, table: &str, mode: &str) -> String {
        self.pick(format!("LOCK TABLE {table} IN {mode} MODE"), "SELECT 1".to_owned())
    }

    /// Suffix of a SELECT that skips rows locked by other transactions. SQLite has one writer.
    pub fn skip_locked(self) -> &'static str {
        self.pick("FOR UPDATE SKIP LOCKED", "")
    }

    /// Suffix of a SELECT whose rows cannot be deleted by others before the transaction ends.
    /// SQLite has one writer.
    pub(crate) fn for_key_share(self) -> &'static str {
        self.pick("FOR KEY SHARE", "")
    }

    /// Suffix of a SELECT whose rows cannot be changed by others before the transaction ends.
    /// SQLite has one writer.
    pub fn for_update(self) -> &'static str {
        self.pick("FOR UPDATE", "")
    }

    /// Columns of a whole link, for [`Row::link`].
    pub(crate) fn link(self) -> String {
        link_with(&self.json_text("link.details"))
    }

    /// Columns of a link without its long attributes, for [`Row::link`].
    pub(crate) fn plain_link(self) -> String {
        let removed = |name: &str| self.pick(format!(" - '{name}'"), format!(", '$.{name}'"));
        let removed = Details::LONG.map(removed).concat();
        let (start, end) = self.pick(("CAST(link.details", " AS text)"), ("json_remove(link.details", ")"));
        link_with(&format!("{start}{removed}{end}"))
    }

    /// SQL expression for a JSON column as text.
    pub(crate) fn json_text(self, column: &str) -> String {
        self.pick(format!("CAST({column} AS text)"), column.to_owned())
    }

    /// SQL expression for a placeholder of JSON, which is passed as text.
    pub(crate) fn json(self, place: &str) -> String {
        self.pick(format!("CAST({place} AS text)::jsonb"), place.to_owned())
    }
}

fn link_with(details: &str) -> String {
    format!(
        "link.id, link.long_url, link.title, link.crawlable, link.forward_query, link.created_at, link.created_by, {details}"
    )
}
