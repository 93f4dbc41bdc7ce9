-- How many items of an import were refused, so that a repeated run, which reads none of them again, still tells of them.
ALTER TABLE import ADD COLUMN refused bigint NOT NULL DEFAULT 0;
