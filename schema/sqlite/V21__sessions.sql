-- Browsers that are signed in with an API key; see `schema/postgres/V21__sessions.sql`.
CREATE TABLE session (
    -- SHA-256 of the token that the browser holds.
    hash BLOB PRIMARY KEY NOT NULL,
    api_key_id INTEGER NOT NULL,
    -- The number of the secret that opened the session, which ends with that secret.
    secret INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Each sign-in removes sessions that have expired, and those of its key beyond a maximum.
CREATE INDEX session_expires_at ON session (expires_at);
CREATE INDEX session_of_key ON session (api_key_id, expires_at);
