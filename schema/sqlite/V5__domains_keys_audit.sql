-- What an operator says of a domain: an object whose fields are in `resolver/src/links/domain.rs`.
ALTER TABLE domain ADD COLUMN settings TEXT;

-- Grows with each change of what the resolver keeps a copy of: domains and lists of targets.
CREATE TABLE settings_version (
    one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version INTEGER NOT NULL
);
INSERT INTO settings_version (version) VALUES (1);

-- Hosts that links may lead to, or may not: example.com, or *.example.com for all below it.
CREATE TABLE target_rule (
    pattern TEXT PRIMARY KEY,
    allowed INTEGER NOT NULL
);

-- Until when a key is good.
ALTER TABLE api_key ADD COLUMN expires_at INTEGER;
-- The secret before the last change, and until when it is still good.
ALTER TABLE api_key ADD COLUMN old_hash BLOB;
ALTER TABLE api_key ADD COLUMN old_until INTEGER;
-- What it may not do, whatever its scopes: an object whose fields are in `resolver/src/api_key.rs`.
ALTER TABLE api_key ADD COLUMN limits TEXT;

-- Who wrote what, and when.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    api_key INTEGER NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    details TEXT
);
CREATE INDEX audit_at ON audit (at);

-- A digest of all that came with an Idempotency-Key: the same key with something else is a mistake.
ALTER TABLE dedupe ADD COLUMN fingerprint TEXT;

-- How far an import has come: written with the links themselves, so that one that was killed goes on where it was.
CREATE TABLE import (
    name TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    begun_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);

-- When a link was last visited, to the hour; none for a link that nobody has visited since this table is there.
CREATE TABLE link_seen (
    link_id INTEGER PRIMARY KEY,
    seen_at INTEGER NOT NULL
);

-- Work that one resolver does for all: who does it until when, and how far it has come.
CREATE TABLE chore (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL DEFAULT '',
    held_until INTEGER NOT NULL DEFAULT 0,
    position INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL DEFAULT 0,
    begun_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);
INSERT INTO chore (name, begun_at) VALUES ('remove unvisited links', CAST(unixepoch('subsec') * 1000 AS INTEGER));
