-- Browsers that are signed in with an API key. A session grants what its key does, as long as the
-- key and the secret are valid. So a key that is revoked or rotated ends its sessions, and their
-- rows need not be removed then.
CREATE TABLE session (
    -- SHA-256 of the token that the browser holds. The token is 256 random bits and stored nowhere,
    -- so a copy of the database does not let its reader sign in.
    hash bytea PRIMARY KEY,
    -- No foreign key: keys are never removed.
    api_key_id bigint NOT NULL,
    -- The number of the secret that opened the session, which ends with that secret.
    secret integer NOT NULL,
    expires_at timestamptz NOT NULL
);
-- Each sign-in removes sessions that have expired, and those of its key beyond a maximum.
CREATE INDEX session_expires_at ON session (expires_at);
CREATE INDEX session_of_key ON session (api_key_id, expires_at);
