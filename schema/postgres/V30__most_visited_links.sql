-- The order of lists by visits, and which links to cache at a start.
CREATE INDEX link_seen_visits ON link_seen ((total + imported));
-- No statement used it.
DROP INDEX link_seen_total;
