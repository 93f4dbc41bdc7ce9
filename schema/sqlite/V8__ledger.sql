-- The same change as for Postgres; the reason stands there.
ALTER TABLE deployment ADD COLUMN ledger TEXT;
