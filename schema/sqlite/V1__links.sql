-- The same tables as for Postgres; the reasons stand there. Times are milliseconds since 1970, in UTC.
CREATE TABLE deployment (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    code_key_fingerprint TEXT NOT NULL
) STRICT;

CREATE TABLE keyspace (
    "index" INTEGER PRIMARY KEY CHECK ("index" > 0),
    name TEXT NOT NULL UNIQUE,
    definition TEXT NOT NULL
) STRICT;

-- SQLite has no exclusion constraint. One process writes, one transaction at a time, and looks for an overlap first.
CREATE TABLE block (
    first_id INTEGER PRIMARY KEY,
    end_id INTEGER NOT NULL CHECK (end_id > first_id),
    generation INTEGER NOT NULL,
    holder TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    instance TEXT NOT NULL,
    registered_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
) STRICT;
CREATE INDEX block_generation ON block (generation);

CREATE TABLE api_key (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    revoked_at INTEGER
) STRICT;

CREATE TABLE link (
    id INTEGER PRIMARY KEY,
    long_url TEXT NOT NULL,
    title TEXT,
    crawlable INTEGER NOT NULL,
    forward_query INTEGER NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    created_by INTEGER NOT NULL
) STRICT;
