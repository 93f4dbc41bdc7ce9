-- Receivers of events, with the secrets that sign them. `resolver/links/src/webhook.rs` describes the values.
CREATE TABLE webhook (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    -- The secret before the last rotation, which signs too until this time.
    former_secret TEXT,
    former_until INTEGER,
    -- Names of kinds of events, separated by commas.
    kinds TEXT NOT NULL,
    -- Only events of this domain, of links with this tag, of this link.
    domain_id INTEGER,
    tag_id INTEGER,
    link_id INTEGER,
    description TEXT,
    created_by INTEGER NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    disabled_at INTEGER,
    disabled_because TEXT,
    -- The first failed attempt since the last success.
    failing_since INTEGER,
    -- Deliveries that were not kept, because too many were open.
    dropped INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The outbox: an event is a row of the transaction that it tells of. Its payload is what the transaction knows of it, and
-- the whole body once it has deliveries.
CREATE TABLE webhook_event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    domain_id INTEGER,
    link_id INTEGER,
    -- Ids of the link's tags, separated by commas.
    tags TEXT,
    payload TEXT NOT NULL,
    at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    fanned_at INTEGER
) STRICT;
CREATE INDEX webhook_event_waiting ON webhook_event (id) WHERE fanned_at IS NULL;
CREATE INDEX webhook_event_fanned ON webhook_event (fanned_at) WHERE fanned_at IS NOT NULL;

-- An event on its way to a webhook. No foreign keys: the rows of a removed webhook are removed in steps.
CREATE TABLE webhook_delivery (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id INTEGER NOT NULL,
    event_id INTEGER NOT NULL,
    -- The receiver's idempotency key, the same in all attempts.
    message_id TEXT NOT NULL,
    -- 0 open, 1 delivered, 2 dead.
    state INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    due_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    -- The lease of the process that makes an attempt.
    held_until INTEGER,
    last_status INTEGER,
    last_error TEXT,
    excerpt TEXT,
    ended_at INTEGER
) STRICT;
CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook_id, due_at) WHERE state = 0;
CREATE INDEX webhook_delivery_of ON webhook_delivery (webhook_id, id);
CREATE INDEX webhook_delivery_event ON webhook_delivery (event_id);
CREATE INDEX webhook_delivery_ended ON webhook_delivery (ended_at) WHERE state <> 0;
