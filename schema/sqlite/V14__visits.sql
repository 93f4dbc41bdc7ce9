-- Links whose tags have changed since the counters of visits last followed.
CREATE TABLE tag_change (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    link_id INTEGER NOT NULL
) STRICT;
-- Tags that exist already.
INSERT INTO tag_change (link_id) SELECT DISTINCT link_id FROM link_tag;
