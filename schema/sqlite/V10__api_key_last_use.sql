-- When a key was last used, to about ten seconds; none for one that was not used since this column is there.
ALTER TABLE api_key ADD COLUMN last_used_at INTEGER;
