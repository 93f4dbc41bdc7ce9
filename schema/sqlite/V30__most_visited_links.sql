-- The order of lists by visits, and which links to cache at a start.
CREATE INDEX link_seen_visits ON link_seen (total + imported);
DROP INDEX link_seen_total;
