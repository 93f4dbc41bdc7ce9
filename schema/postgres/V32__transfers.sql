-- Transfers of counters to ClickHouse, where that has the visits. In `visit_day`, the rows of a
-- transfer have the slot -2, and changes of past days 128.
ALTER TABLE visit_state
    -- The last transfer that has ended or was given up. Numbers are microseconds since 1970.
    ADD COLUMN transferred bigint NOT NULL DEFAULT 0,
    -- The one that is under way. Its rows stay as they are until it is there. NULL: there is none.
    ADD COLUMN transfer bigint,
    -- The era of both.
    ADD COLUMN era bigint,
    -- Processes without ClickHouse, or of the release before, do not read what was transferred.
    ADD COLUMN transfers_from timestamptz;
-- What was transferred of the visits up to this transfer is deleted.
ALTER TABLE visit_cut ADD COLUMN transferred bigint NOT NULL DEFAULT 0;

-- Each start of the server begins an era: it may have an older copy, which does not know all
-- transfers of before.
CREATE TABLE visit_era (
    -- Random, and a part of the name of each transfer.
    era bigint PRIMARY KEY,
    copy text NOT NULL,
    -- The last transfer of this era that counts: none that the database does not know.
    until bigint NOT NULL
);
