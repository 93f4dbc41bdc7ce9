-- Days of visits are added and removed by functions with their owner's rights, so that the role of a resolver needs none to
-- change the schema. They find functions and operators in pg_catalog only, and name the schema of each table: another role
-- that may create objects in the schema could otherwise put its own in their place, to be run with the owner's rights.
DO $$
BEGIN
    EXECUTE format($sql$
        CREATE FUNCTION visit_add_day(day integer, first bigint, past bigint) RETURNS void
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
        BEGIN
            EXECUTE format('CREATE TABLE %%1$I.visit_%%2$s (LIKE %%1$I.visit)', %1$L, day);
            -- Rows that arrived before the day had a table of its own.
            EXECUTE format(
                'WITH moved AS (DELETE FROM %%1$I.visit_default WHERE id >= %%2$s AND id < %%3$s RETURNING *)
                 INSERT INTO %%1$I.visit_%%4$s SELECT * FROM moved', %1$L, first, past, day);
            EXECUTE format(
                'ALTER TABLE %%1$I.visit ATTACH PARTITION %%1$I.visit_%%2$s FOR VALUES FROM (%%3$s) TO (%%4$s)',
                %1$L, day, first, past);
        END $body$
    $sql$, current_schema());
    EXECUTE format($sql$
        CREATE FUNCTION visit_remove_day(day integer) RETURNS void
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
        BEGIN
            EXECUTE format('DROP TABLE IF EXISTS %%1$I.visit_%%2$s', %1$L, day);
        END $body$
    $sql$, current_schema());
END $$;
REVOKE EXECUTE ON FUNCTION visit_add_day(integer, bigint, bigint), visit_remove_day(integer) FROM PUBLIC;
