-- Visits that erasures have moved to those without a row, where rows are in a database of their own.
CREATE TABLE visit_erased (
    id bigint PRIMARY KEY,
    -- The version of the erasure.
    version bigint NOT NULL,
    -- How often its row was found: it can arrive again.
    found integer NOT NULL DEFAULT 1,
    -- Whether a row may be left.
    has_row boolean NOT NULL DEFAULT true
);
CREATE INDEX visit_erased_rows ON visit_erased (id) WHERE has_row;

-- Deletions that are opened again together have one version.
ALTER TABLE visit_cut DROP CONSTRAINT visit_cut_version_key;

-- Grows when rows arrive that an erasure may concern: what was read of it before is outdated.
ALTER TABLE visit_erasure ADD COLUMN generation bigint NOT NULL DEFAULT 0;
