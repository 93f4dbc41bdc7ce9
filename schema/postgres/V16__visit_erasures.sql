-- Visits of an address or a network that are erased: their rows are deleted in steps, and visits that are still in a spool get none. It is
-- kept for as long as a visit before it would have a row.
CREATE TABLE visit_erasure (
    -- The version of `visit_state` from which on batches respect it.
    version bigint PRIMARY KEY,
    network text NOT NULL,
    before_id bigint NOT NULL,
    -- No row below this id is left.
    next_id bigint NOT NULL DEFAULT 0,
    deleted bigint NOT NULL DEFAULT 0,
    -- Whether rows may be left.
    has_rows boolean NOT NULL DEFAULT true
);
