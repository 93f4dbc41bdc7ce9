-- Which links lead to a long URL, by the first eight bytes of its SHA-256. Written by a task in the background, not by creates: its keys come at
-- random, and would cost each of them another page. An entry may be of a link that leads elsewhere by now.
CREATE TABLE long_url_index (
    digest bigint NOT NULL,
    link_id bigint NOT NULL,
    PRIMARY KEY (digest, link_id)
);

-- How far that task has come in the order of creation: links up to this one are in the index; and which resolver does it, until when.
CREATE TABLE long_url_index_state (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    indexed_until timestamptz NOT NULL DEFAULT 'epoch',
    after_id bigint NOT NULL DEFAULT 0,
    holder text NOT NULL DEFAULT '',
    held_until timestamptz NOT NULL DEFAULT now()
);
INSERT INTO long_url_index_state DEFAULT VALUES;
