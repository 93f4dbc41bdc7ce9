-- For lists of keys that see their own links, or those of one domain: the page they ask for may be far from the newest link of all.
CREATE INDEX link_created_by ON link (created_by, created_at, id);
CREATE INDEX link_domain ON link ((details->>'domain'), created_at, id) WHERE details->>'domain' IS NOT NULL;
