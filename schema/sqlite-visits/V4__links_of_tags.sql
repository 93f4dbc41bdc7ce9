-- The links of a tag that was deleted.
CREATE INDEX visit_tag_links ON visit_tag (tag_id, link_id);
