-- The same changes as for Postgres; the reasons stand there. `block` is ordered by its key already.
ALTER TABLE api_key ADD COLUMN scopes TEXT NOT NULL DEFAULT 'admin';

CREATE TABLE reservation (
    id TEXT PRIMARY KEY,
    keyspace INTEGER NOT NULL,
    created_by INTEGER NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    closed_at INTEGER
) STRICT;
CREATE INDEX reservation_created_by ON reservation (created_by);
CREATE INDEX block_holder ON block (holder);
