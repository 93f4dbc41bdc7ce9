-- The start of the server (`pg_postmaster_start_time()`) since which the mark was compared with the ledger's. After another start
-- the database may be an older copy: until then no number is used.
ALTER TABLE deployment ADD COLUMN compared_start timestamptz;
-- The table in which that was noted: a dump that is restored beside it brings another one.
ALTER TABLE deployment ADD COLUMN compared_table oid;
