-- Ranges come in the order of their start: the last one of a keyspace is found without a look at the others.
CREATE INDEX block_ids ON block (ids);

-- What a key may do: names of scopes, separated by commas.
ALTER TABLE api_key ADD COLUMN scopes text NOT NULL DEFAULT 'admin';

-- A range whose codes were told before their rows exist (G7). Its numbers are in `block`, under the reservation's name as holder.
CREATE TABLE reservation (
    -- Drawn at random; also the name of its holder with the issuer.
    id text PRIMARY KEY,
    keyspace smallint NOT NULL,
    -- The key that made it; only it may fill it.
    created_by bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Given up: what was not filled goes to others. No link is stored under it any more.
    closed_at timestamptz
);
CREATE INDEX reservation_created_by ON reservation (created_by);
-- The blocks of one reservation.
CREATE INDEX block_holder ON block (holder);
