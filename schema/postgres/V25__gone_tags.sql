-- Tags that were deleted, and whose links and counters are not removed yet. They may be a million: a deletion notes the tag here, and the
-- upkeep of visits removes the rest in steps. Ids of tags are never used again.
CREATE TABLE tag_gone (
    tag_id bigint PRIMARY KEY
);
