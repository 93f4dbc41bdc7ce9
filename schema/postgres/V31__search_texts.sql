-- Long enough for an autovacuum of `link` to give way. Nothing here keeps its readers and writers out.
SET LOCAL lock_timeout = '1500ms';

-- What searches look through: the search keys of a link's long URL, title and slug, each on a line of its own. Written by a task in the
-- background, not by creates: it is the most expensive index by far.
CREATE TABLE link_text (
    link_id bigint PRIMARY KEY,
    text text NOT NULL
);

-- How far that task has come, as for the index of long URLs (V11).
CREATE TABLE link_text_state (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    indexed_until timestamptz NOT NULL DEFAULT 'epoch',
    after_id bigint NOT NULL DEFAULT 0,
    holder text NOT NULL DEFAULT '',
    held_until timestamptz NOT NULL DEFAULT now()
);
-- Resolvers of the release before do not note what they edit and import, so the task waits until they are gone.
INSERT INTO link_text_state (holder) SELECT CASE WHEN EXISTS (SELECT 1 FROM link) THEN 'upgrade' ELSE '' END;

DO $$
DECLARE
    texts text := 'concat_ws(E''\n'', %1$I.search_key(long_url), %1$I.search_key(title), %1$I.search_key(details->>''slug''))';
    trigrams text;
BEGIN
    -- The small letter that pg_trgm makes of a capital sigma depends on what follows, from Postgres 18 on.
    IF getdatabaseencoding() = 'UTF8' THEN
        texts := format('replace(%s, chr(931), chr(963))', texts);
    END IF;
    EXECUTE format(
        'CREATE FUNCTION link_search_text(long_url text, title text, details jsonb) RETURNS text
         LANGUAGE sql STABLE PARALLEL SAFE AS %L',
        'SELECT ' || format(texts, current_schema())
    );

    -- A database may lack the extension, or its owner the right to add or use it. Searches read all links then.
    BEGIN
        CREATE EXTENSION IF NOT EXISTS pg_trgm;
        SELECT nspname INTO trigrams FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
        WHERE extname = 'pg_trgm';
        EXECUTE format('CREATE INDEX link_text_trigrams ON link_text USING gin (text %I.gin_trgm_ops)', trigrams);
    EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR undefined_object THEN
        RAISE WARNING 'searches read all links: %', SQLERRM;
    END;
END
$$;

-- Nearly all links are not deleted. Without this the planner takes that for one of two hundred.
CREATE STATISTICS link_is_deleted ON (details->>'deletedAt') FROM link;
-- Plans that are made for an empty table would be kept for the first million links.
DO $$ BEGIN IF EXISTS (SELECT 1 FROM link) THEN ANALYZE link; END IF; END $$;
