-- Edits of links that are made at a moment. `resolver/links/src/schedule.rs` describes the values.
CREATE TABLE scheduled_change (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    link_id bigint NOT NULL,
    due_at timestamptz NOT NULL,
    -- The fields that are set, as an object with the names of the API.
    fields text NOT NULL,
    -- The key that makes the edit.
    created_by bigint NOT NULL,
    -- Why the edit was not made. It is not tried again.
    failed_because text
);
CREATE INDEX scheduled_change_due ON scheduled_change (due_at) WHERE failed_because IS NULL;
CREATE INDEX scheduled_change_of_link ON scheduled_change (link_id, due_at);
CREATE INDEX scheduled_change_of_key ON scheduled_change (created_by);
