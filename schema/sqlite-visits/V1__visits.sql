-- The tables of visits for Postgres (`schema/postgres/V14__visits.sql`), in a file of their own, so that batches of visits and creates of
-- links do not wait for each other; the reasons stand there. Times are milliseconds since 1970, in UTC.
CREATE TABLE visit_producer (
    spool BLOB PRIMARY KEY,
    slot INTEGER UNIQUE CHECK (slot BETWEEN 0 AND 127),
    holder TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    position INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;

-- The id is the key of the table: rows arrive in about the order of their ids, pages of everything read a range of them, and retention
-- removes one.
CREATE TABLE visit (
    id INTEGER PRIMARY KEY,
    link_id INTEGER NOT NULL,
    user_agent INTEGER NOT NULL,
    referrer INTEGER NOT NULL,
    urls INTEGER NOT NULL,
    place INTEGER NOT NULL,
    address INTEGER NOT NULL,
    visitor INTEGER NOT NULL,
    domain INTEGER NOT NULL,
    language INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    rule INTEGER NOT NULL
) STRICT;
-- Pages of one link.
CREATE INDEX visit_link ON visit (link_id, id);

CREATE TABLE visit_text (
    month INTEGER NOT NULL,
    hash INTEGER NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (month, hash)
) STRICT, WITHOUT ROWID;

-- With a rowid: most of a row are its byte columns, which would make the pages of its key few and far between.
CREATE TABLE visit_day (
    kind INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    part INTEGER NOT NULL,
    day INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    total INTEGER NOT NULL,
    bots INTEGER NOT NULL,
    version INTEGER NOT NULL,
    appended INTEGER NOT NULL,
    quarters BLOB NOT NULL,
    dimensions BLOB NOT NULL,
    visitors BLOB NOT NULL,
    addresses BLOB NOT NULL,
    PRIMARY KEY (kind, subject, part, day, slot)
) STRICT;

CREATE TABLE visit_month (
    kind INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    part INTEGER NOT NULL,
    month INTEGER NOT NULL,
    version INTEGER NOT NULL,
    total INTEGER NOT NULL,
    bots INTEGER NOT NULL,
    quarters BLOB NOT NULL,
    dimensions BLOB NOT NULL,
    visitors BLOB NOT NULL,
    addresses BLOB NOT NULL,
    PRIMARY KEY (kind, subject, part, month)
) STRICT;

CREATE TABLE visit_marks (
    kind INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    part INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    people_only INTEGER NOT NULL,
    total INTEGER NOT NULL,
    ids BLOB NOT NULL,
    PRIMARY KEY (kind, subject, part, quarter, people_only)
) STRICT;

CREATE TABLE visit_cut (
    link_id INTEGER PRIMARY KEY,
    before_id INTEGER NOT NULL,
    version INTEGER NOT NULL UNIQUE,
    has_rows INTEGER NOT NULL
) STRICT;

CREATE TABLE visit_state (
    one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO visit_state (version) VALUES (0);

CREATE TABLE visit_tag (
    link_id INTEGER NOT NULL,
    tag_id INTEGER NOT NULL,
    PRIMARY KEY (link_id, tag_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE visit_secret (
    name TEXT PRIMARY KEY,
    secret BLOB NOT NULL
) STRICT;

-- Numbers ascend, and none comes twice: the links' database knows the last one that it has added.
CREATE TABLE visit_link_batch (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    links BLOB NOT NULL
) STRICT;

-- How far two chores have come.
CREATE TABLE visit_upkeep (
    one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    -- The first day that rows are kept of; 0 if none was ever removed.
    rows_from INTEGER NOT NULL DEFAULT 0,
    -- The last batch of those that are being added to the links; 0 for none. It is noted before they are added: after a crash the same
    -- ones are sent again, and no later one with them.
    folding INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO visit_upkeep DEFAULT VALUES;
