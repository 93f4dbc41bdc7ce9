-- How many items of an import were refused; see `schema/postgres/V27__import_refusals.sql`.
ALTER TABLE import ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
