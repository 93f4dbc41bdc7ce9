CREATE INDEX link_created_at ON link (created_at, id);
