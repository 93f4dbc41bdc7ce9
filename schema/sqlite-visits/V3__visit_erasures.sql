-- Visits of an address or a network that are erased; see `schema/postgres/V16__visit_erasures.sql`.
CREATE TABLE visit_erasure (
    version INTEGER PRIMARY KEY,
    network TEXT NOT NULL,
    before_id INTEGER NOT NULL,
    next_id INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0,
    has_rows INTEGER NOT NULL DEFAULT 1
) STRICT;
