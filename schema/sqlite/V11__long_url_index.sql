-- Which links lead to a long URL, by the first eight bytes of its SHA-256. Written by a task in the background, not by creates: its keys come at
-- random, and would cost each of them another page. An entry may be of a link that leads elsewhere by now.
CREATE TABLE long_url_index (
    digest INTEGER NOT NULL,
    link_id INTEGER NOT NULL,
    PRIMARY KEY (digest, link_id)
) STRICT, WITHOUT ROWID;

-- How far that task has come in the order of creation: links up to this one are in the index; and which resolver does it, until when.
CREATE TABLE long_url_index_state (
    one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    indexed_until INTEGER NOT NULL DEFAULT 0,
    after_id INTEGER NOT NULL DEFAULT 0,
    holder TEXT NOT NULL DEFAULT '',
    held_until INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO long_url_index_state DEFAULT VALUES;
