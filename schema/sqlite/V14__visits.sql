-- Links whose tags have changed since the counters of visits last followed.
CREATE TABLE tag_change (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    link_id INTEGER NOT NULL
) STRICT;
-- Tags that exist already.
INSERT INTO tag_change (link_id) SELECT DISTINCT link_id FROM link_tag;

-- How often a link was visited. Rows of links that were only ever imported or restored have no visits.
ALTER TABLE link_seen ADD COLUMN total INTEGER NOT NULL DEFAULT 0;
ALTER TABLE link_seen ADD COLUMN bots INTEGER NOT NULL DEFAULT 0;
CREATE INDEX link_seen_total ON link_seen (total);

-- Its position is that of the last visits that were added to links.
INSERT INTO chore (name) VALUES ('add visits to links');
