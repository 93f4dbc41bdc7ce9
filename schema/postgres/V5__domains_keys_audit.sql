-- What an operator says of a domain: an object whose fields are in `resolver/src/links/domain.rs`.
ALTER TABLE domain ADD COLUMN settings jsonb;

-- Grows with each change of what every resolver keeps a copy of: domains and lists of targets. Resolvers ask for it four times a second.
CREATE TABLE settings_version (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version bigint NOT NULL
);
INSERT INTO settings_version (version) VALUES (1);

-- Hosts that links may lead to, or may not: example.com, or *.example.com for all below it.
CREATE TABLE target_rule (
    pattern text PRIMARY KEY,
    allowed boolean NOT NULL
);

-- Until when a key is good.
ALTER TABLE api_key ADD COLUMN expires_at timestamptz;
-- The secret before the last change, and until when it is still good.
ALTER TABLE api_key ADD COLUMN old_hash bytea;
ALTER TABLE api_key ADD COLUMN old_until timestamptz;
-- What it may not do, whatever its scopes: an object whose fields are in `resolver/src/api_key.rs`.
ALTER TABLE api_key ADD COLUMN limits jsonb;

-- Who wrote what, and when.
CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    api_key bigint NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    details jsonb
);
CREATE INDEX audit_at ON audit (at);

-- A digest of all that came with an Idempotency-Key: the same key with something else is a mistake.
ALTER TABLE dedupe ADD COLUMN fingerprint text;

-- How far an import has come: written with the links themselves, so that one that was killed goes on where it was.
CREATE TABLE import (
    name text PRIMARY KEY,
    position bigint NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT now()
);

-- When a link was last visited, to the hour; none for a link that nobody has visited since this table is there.
CREATE TABLE link_seen (
    link_id bigint PRIMARY KEY,
    seen_at timestamptz NOT NULL
);

-- Work that one resolver does for all: who does it until when, and how far it has come.
CREATE TABLE chore (
    name text PRIMARY KEY,
    holder text NOT NULL DEFAULT '',
    held_until timestamptz NOT NULL DEFAULT now(),
    position bigint NOT NULL DEFAULT 0,
    -- No earlier than this is it done again.
    due_at timestamptz NOT NULL DEFAULT now(),
    -- Since when visits are noted: nobody can say of a link that it was not visited before.
    begun_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO chore (name) VALUES ('remove unvisited links');
