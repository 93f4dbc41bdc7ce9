-- Days of visits are added and removed by functions with their owner's rights, so that the role of a resolver needs none to
-- change the schema. The path is fixed when they are made: otherwise a caller's temporary table could stand in for one of these.
DO $$
BEGIN
    EXECUTE format($sql$
        CREATE FUNCTION visit_add_day(day integer, first bigint, past bigint) RETURNS void
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = %1$I, pg_temp AS $body$
        BEGIN
            EXECUTE format('CREATE TABLE visit_%%s (LIKE visit)', day);
            -- Rows that arrived before the day had a table of its own.
            EXECUTE format(
                'WITH moved AS (DELETE FROM visit_default WHERE id >= %%s AND id < %%s RETURNING *)
                 INSERT INTO visit_%%s SELECT * FROM moved', first, past, day);
            EXECUTE format('ALTER TABLE visit ATTACH PARTITION visit_%%s FOR VALUES FROM (%%s) TO (%%s)', day, first, past);
        END $body$
    $sql$, current_schema());
    EXECUTE format($sql$
        CREATE FUNCTION visit_remove_day(day integer) RETURNS void
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = %1$I, pg_temp AS $body$
        BEGIN
            EXECUTE format('DROP TABLE IF EXISTS visit_%%s', day);
        END $body$
    $sql$, current_schema());
END $$;
REVOKE EXECUTE ON FUNCTION visit_add_day(integer, bigint, bigint), visit_remove_day(integer) FROM PUBLIC;
