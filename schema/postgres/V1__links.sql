-- What a deployment is: one row.
CREATE TABLE deployment (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- A mark of the key that orders codes. A resolver with another key would read codes as other numbers.
    code_key_fingerprint text NOT NULL
);

-- Every keyspace that ever minted. Rows are never removed or renumbered: ids carry the index.
CREATE TABLE keyspace (
    index smallint PRIMARY KEY CHECK (index > 0),
    name text NOT NULL UNIQUE,
    -- NAME=LENGTH:CLASS, as the flag writes it.
    definition text NOT NULL
);

-- The block register: before the first number of a block is claimed, its ids are in here. The constraint refuses an
-- overlap even if the ledger were to hand the same numbers out twice.
CREATE TABLE block (
    ids int8range NOT NULL CHECK (NOT isempty(ids)),
    generation bigint NOT NULL,
    holder text NOT NULL,
    incarnation bigint NOT NULL,
    -- Drawn at random at each start: a ledger that was lost counts incarnations and generations anew.
    instance text NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT block_ids_are_disjoint EXCLUDE USING gist (ids WITH &&)
);
-- A block is looked up by its generation when its rest is released.
CREATE INDEX block_generation ON block (generation);

CREATE TABLE api_key (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    -- SHA-256 of the key. A key is 256 random bits, so a slow hash would add nothing.
    hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);

-- No foreign key to api_key and no second index: both would cost every insert, and the table must split by id.
CREATE TABLE link (
    -- Keyspace and number; the code is computed from it and stored nowhere.
    id bigint PRIMARY KEY,
    long_url text NOT NULL,
    title text,
    crawlable boolean NOT NULL,
    forward_query boolean NOT NULL,
    -- The database's clock, so that resolvers with different clocks agree.
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by bigint NOT NULL
);
