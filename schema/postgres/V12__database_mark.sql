-- How far this database has come, by its own count: raised by every start and beat of a holder, and told to the ledger. A database
-- that is below what the ledger has been told was put back from an older copy.
ALTER TABLE deployment ADD COLUMN mark bigint NOT NULL DEFAULT 0;
-- The number of the present history, drawn when a copy was found to be older; 0 for the first one.
ALTER TABLE deployment ADD COLUMN history bigint NOT NULL DEFAULT 0;
