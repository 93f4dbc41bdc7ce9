-- When a keyspace came: codes are minted in it once every resolver has heard of it.
ALTER TABLE keyspace ADD COLUMN adopted_at INTEGER NOT NULL DEFAULT 0;
