-- The same changes as for Postgres; the reasons stand there.
ALTER TABLE link ADD COLUMN details TEXT;

CREATE TABLE domain (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    authority TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO domain (id, authority) VALUES (0, '');

CREATE TABLE slug (
    domain_id INTEGER NOT NULL,
    slug TEXT NOT NULL,
    link_id INTEGER NOT NULL,
    PRIMARY KEY (domain_id, slug)
) STRICT;

CREATE TABLE picked (
    id INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE tag (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE link_tag (
    tag_id INTEGER NOT NULL,
    link_id INTEGER NOT NULL,
    PRIMARY KEY (tag_id, link_id)
) STRICT;
CREATE INDEX link_tag_link ON link_tag (link_id);

CREATE TABLE link_use (
    link_id INTEGER PRIMARY KEY,
    used INTEGER NOT NULL
) STRICT;

CREATE TABLE dedupe (
    digest TEXT PRIMARY KEY,
    link_id INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX dedupe_expires_at ON dedupe (expires_at);
