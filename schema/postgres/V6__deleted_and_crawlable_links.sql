-- Deleted links, to be listed and brought back. No link that lives is in it, so it costs an insert nothing.
CREATE INDEX link_deleted ON link ((details->>'slug')) WHERE details->>'deletedAt' IS NOT NULL;

-- Links that robots may follow, the latest first: few, and those in the list for crawlers.
CREATE INDEX link_crawlable ON link (created_at) WHERE crawlable;
