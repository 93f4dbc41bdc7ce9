-- A process that stores visits: one for each spool. A row outlives its process, because the spool may come back.
CREATE TABLE visit_producer (
    spool bytea PRIMARY KEY,
    -- Part of the ids of its visits, and of the keys of its counters. NULL: the slot was given back, or taken after a day of silence.
    slot smallint UNIQUE CHECK (slot BETWEEN 0 AND 127),
    holder text NOT NULL,
    -- Fencing token: grows at each start. A process with an older one stores nothing.
    incarnation bigint NOT NULL,
    -- The first block of the spool that is not stored.
    position bigint NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now()
);

-- Visits. Day partitions are named visit_<day since 1970>; the default one takes rows of days without a partition.
CREATE TABLE visit (
    -- 0: no link redirected.
    link_id bigint NOT NULL,
    -- Microseconds since 2020, slot and thread.
    id bigint NOT NULL,
    -- Hashes of texts in `visit_text`; 0 for an empty text, 1 for one that was not kept.
    user_agent bigint NOT NULL,
    referrer bigint NOT NULL,
    urls bigint NOT NULL,
    place bigint NOT NULL,
    address bigint NOT NULL,
    visitor integer NOT NULL,
    domain integer NOT NULL,
    language integer NOT NULL,
    flags smallint NOT NULL,
    rule smallint NOT NULL
) PARTITION BY RANGE (id);
CREATE TABLE visit_default PARTITION OF visit DEFAULT;
-- Pages of one link.
CREATE INDEX visit_link ON visit (link_id, id);
-- Pages of everything: rows arrive in about the order of their ids, so a summary of each 32 pages is enough.
CREATE INDEX visit_id ON visit USING brin (id int8_minmax_multi_ops) WITH (pages_per_range = 32);

CREATE TABLE visit_text (
    month integer NOT NULL,
    hash bigint NOT NULL,
    text bytea NOT NULL,
    PRIMARY KEY (month, hash)
);

-- Counters by subject and day. Writers append to the byte columns, so none needs to read what another has written; the chunks are
-- merged when they are read. Each slot has rows of its own, so writers do not wait for each other.
CREATE TABLE visit_day (
    kind smallint NOT NULL,
    subject bigint NOT NULL,
    part bigint NOT NULL,
    day integer NOT NULL,
    slot smallint NOT NULL,
    total bigint NOT NULL,
    bots bigint NOT NULL,
    -- Grows with each change of the row, to prove that a month's row is current.
    version bigint NOT NULL,
    -- Bytes appended since the columns were last merged into one chunk each.
    appended integer NOT NULL,
    quarters bytea NOT NULL,
    dimensions bytea NOT NULL,
    visitors bytea NOT NULL,
    addresses bytea NOT NULL,
    PRIMARY KEY (kind, subject, part, day, slot)
) WITH (fillfactor = 70);
ALTER TABLE visit_day ALTER quarters SET STORAGE EXTERNAL, ALTER dimensions SET STORAGE EXTERNAL,
    ALTER visitors SET STORAGE EXTERNAL, ALTER addresses SET STORAGE EXTERNAL;

-- Counters of closed months, merged from days whose versions add up to `version`.
CREATE TABLE visit_month (
    kind smallint NOT NULL,
    subject bigint NOT NULL,
    part bigint NOT NULL,
    month integer NOT NULL,
    version bigint NOT NULL,
    total bigint NOT NULL,
    bots bigint NOT NULL,
    quarters bytea NOT NULL,
    dimensions bytea NOT NULL,
    visitors bytea NOT NULL,
    addresses bytea NOT NULL,
    PRIMARY KEY (kind, subject, part, month)
);
ALTER TABLE visit_month ALTER quarters SET STORAGE EXTERNAL, ALTER dimensions SET STORAGE EXTERNAL,
    ALTER visitors SET STORAGE EXTERNAL, ALTER addresses SET STORAGE EXTERNAL;

-- Every 8,192nd id of a busy quarter hour, the latest first, as eight bytes each.
CREATE TABLE visit_marks (
    kind smallint NOT NULL,
    subject bigint NOT NULL,
    part bigint NOT NULL,
    quarter bigint NOT NULL,
    people_only boolean NOT NULL,
    total bigint NOT NULL,
    ids bytea NOT NULL,
    PRIMARY KEY (kind, subject, part, quarter, people_only)
);

-- Deletions of visits. Link 0 stands for the visits that no link redirected.
CREATE TABLE visit_cut (
    link_id bigint PRIMARY KEY,
    before_id bigint NOT NULL,
    version bigint NOT NULL UNIQUE,
    -- Whether older rows may be left.
    has_rows boolean NOT NULL
);

-- Grows with each deletion of visits and each change of the tags that visits count for: batches that were made before are refused.
CREATE TABLE visit_state (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version bigint NOT NULL
);
INSERT INTO visit_state (version) VALUES (0);

-- The tags whose counters include the visits of a link. It follows `link_tag`, together with the counters.
CREATE TABLE visit_tag (
    link_id bigint NOT NULL,
    tag_id bigint NOT NULL,
    PRIMARY KEY (link_id, tag_id)
);
CREATE INDEX visit_tag_links ON visit_tag (tag_id, link_id);

-- Links whose tags have changed since the counters of visits last followed.
CREATE TABLE tag_change (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    link_id bigint NOT NULL
);
-- Tags that exist already.
INSERT INTO tag_change (link_id) SELECT DISTINCT link_id FROM link_tag;

CREATE TABLE visit_secret (
    -- text, address, or day-<day since 1970>.
    name text PRIMARY KEY,
    secret bytea NOT NULL
);

-- Visits by link of one stored batch each, which are added to `link_seen` later and together.
CREATE TABLE visit_link_batch (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    links bytea NOT NULL
);

-- How often a link was visited. Rows of links that were only ever imported or restored have no visits.
ALTER TABLE link_seen ADD COLUMN total bigint NOT NULL DEFAULT 0;
ALTER TABLE link_seen ADD COLUMN bots bigint NOT NULL DEFAULT 0;
CREATE INDEX link_seen_total ON link_seen (total);

INSERT INTO chore (name) VALUES ('upkeep of visits');
