-- Deleted links, to be listed and brought back. No link that lives is in it, so it costs an insert nothing.
CREATE INDEX link_deleted ON link ((details->>'slug')) WHERE details->>'deletedAt' IS NOT NULL;
