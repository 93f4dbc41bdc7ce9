-- Searches and orders that are the same on every server, whatever its locale (links/src/search.rs).
-- ICU has the case of all letters. A server without it, or with another encoding than UTF-8, folds
-- letters of ASCII only. Texts of ASCII, which nearly all are, take a tenth of the time.
DO $$
DECLARE
    upper_case text := 'upper($1 COLLATE shortmint_unicode)';
    searched text := upper_case;
    sorted text := upper_case;
BEGIN
    BEGIN
        CREATE COLLATION shortmint_unicode (provider = icu, locale = 'und');
    EXCEPTION WHEN feature_not_supported OR invalid_parameter_value OR undefined_object THEN
        CREATE COLLATION shortmint_unicode FROM "C";
    END;
    IF getdatabaseencoding() = 'UTF8' THEN
        searched := format($f$replace(normalize(%s, NFC), U&'\0130', 'I')$f$, upper_case);
        sorted := format($f$regexp_replace(normalize(%s, NFD), '[\u0300-\u036f]', '', 'g')$f$, upper_case);
    END IF;
    EXECUTE format(
        'CREATE FUNCTION search_key(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS %L',
        'SELECT CASE WHEN octet_length($1) = length($1) THEN upper($1 COLLATE "C") ELSE (' || searched || ') COLLATE "C" END'
    );
    EXECUTE format(
        'CREATE FUNCTION sort_key(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS %L',
        'SELECT CASE WHEN octet_length($1) = length($1) THEN upper($1 COLLATE "C") ELSE (' || sorted || ') COLLATE "C" END'
    );
END
$$;
