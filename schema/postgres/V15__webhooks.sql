-- Receivers of events, with the secrets that sign them. `resolver/links/src/webhook.rs` describes the values.
CREATE TABLE webhook (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    url text NOT NULL,
    secret text NOT NULL,
    -- The secret before the last rotation, which signs too until this time.
    former_secret text,
    former_until timestamptz,
    -- Names of kinds of events, separated by commas.
    kinds text NOT NULL,
    -- Only events of this domain, of links with this tag, of this link.
    domain_id bigint,
    tag_id bigint,
    link_id bigint,
    description text,
    created_by bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    disabled_at timestamptz,
    disabled_because text,
    -- The first failed attempt since the last success.
    failing_since timestamptz,
    -- Deliveries that were not kept, because too many were open.
    dropped bigint NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 0
);

-- The outbox: an event is a row of the transaction that it tells of. Its payload is what the transaction knows of it, and
-- the whole body once it has deliveries.
CREATE TABLE webhook_event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    domain_id bigint,
    link_id bigint,
    -- Ids of the link's tags, separated by commas.
    tags text,
    payload text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    fanned_at timestamptz
);
CREATE INDEX webhook_event_waiting ON webhook_event (id) WHERE fanned_at IS NULL;
CREATE INDEX webhook_event_fanned ON webhook_event (fanned_at) WHERE fanned_at IS NOT NULL;

-- An event on its way to a webhook. No foreign keys: the rows of a removed webhook are removed in steps.
CREATE TABLE webhook_delivery (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id bigint NOT NULL,
    event_id bigint NOT NULL,
    -- The receiver's idempotency key, the same in all attempts.
    message_id text NOT NULL,
    -- 0 open, 1 delivered, 2 dead.
    state smallint NOT NULL DEFAULT 0,
    attempts bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz NOT NULL DEFAULT now(),
    -- The lease of the process that makes an attempt.
    held_until timestamptz,
    last_status bigint,
    last_error text,
    excerpt text,
    ended_at timestamptz
);
CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook_id, due_at) WHERE state = 0;
CREATE INDEX webhook_delivery_of ON webhook_delivery (webhook_id, id);
CREATE INDEX webhook_delivery_event ON webhook_delivery (event_id);
CREATE INDEX webhook_delivery_ended ON webhook_delivery (ended_at) WHERE state <> 0;
