-- The history of a link: the latest entries about one object.
CREATE INDEX audit_subject ON audit (subject, id);
