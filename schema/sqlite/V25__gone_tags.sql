-- Tags that were deleted; the reasons stand in `schema/postgres/V25__gone_tags.sql`.
CREATE TABLE tag_gone (
    tag_id INTEGER PRIMARY KEY
) STRICT;
