-- The order of lists. Rows come in about this order, so each insert changes the last page, as with the primary key. By itself: while it is
-- built, links are read and not written, and whatever else a migration changed about them would keep readers away as well.
CREATE INDEX link_created_at ON link (created_at, id);
