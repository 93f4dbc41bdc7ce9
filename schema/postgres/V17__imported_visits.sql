-- Visits that another system counted before a link was imported. They are part of the link's total.
ALTER TABLE link_seen ADD COLUMN imported bigint NOT NULL DEFAULT 0;

-- Links that were imported before this migration.
INSERT INTO link_seen (link_id, seen_at, imported)
    SELECT id, created_at, CAST(least(CAST(details->'origin'->>'visits' AS numeric), 1000000000000) AS bigint) FROM link
    WHERE details->'origin'->>'visits' IS NOT NULL
    ORDER BY id
    ON CONFLICT (link_id) DO UPDATE SET imported = excluded.imported;
