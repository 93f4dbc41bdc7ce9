-- How far this database has come, by its own count: raised by every start and beat of a holder, and by every batch of new links.
-- The ledger and the witness file are told: a database that is below was put back from an older copy.
ALTER TABLE deployment ADD COLUMN mark integer NOT NULL DEFAULT 0;
-- The number of the present history, drawn when a copy was found to be older; 0 for the first one.
ALTER TABLE deployment ADD COLUMN history integer NOT NULL DEFAULT 0;
