-- What webhooks are to be told of stored visits, until the links' database has it.
CREATE TABLE visit_event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    domain_id INTEGER,
    link_id INTEGER,
    -- Ids of the link's tags, 8 bytes each, little-endian.
    tags BLOB NOT NULL,
    data TEXT NOT NULL
) STRICT;
