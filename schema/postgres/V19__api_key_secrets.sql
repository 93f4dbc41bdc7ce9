-- How many secrets a key has had. What was given to the holder of an older one ends with that.
ALTER TABLE api_key ADD COLUMN secrets integer NOT NULL DEFAULT 1;
