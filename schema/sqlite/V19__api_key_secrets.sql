-- How many secrets a key has had; see `schema/postgres/V19__api_key_secrets.sql`.
ALTER TABLE api_key ADD COLUMN secrets INTEGER NOT NULL DEFAULT 1;
