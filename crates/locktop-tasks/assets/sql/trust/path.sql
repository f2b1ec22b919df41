-- Sets the search path for a query of the config: of the role's own path the schemas that belong to whom we trust, and in which nobody
-- else may put anything.
SELECT pg_catalog.set_config('search_path', 'pg_catalog' || coalesce(
         (SELECT pg_catalog.string_agg(', ' || pg_catalog.quote_ident(n.nspname), '' ORDER BY p.place)
            FROM pg_catalog.jsonb_array_elements_text(pg_catalog.current_setting('$path', true)::pg_catalog.jsonb) WITH ORDINALITY AS p (name, place)
            JOIN pg_catalog.pg_namespace AS n ON n.nspname = p.name
           WHERE p.name <> 'pg_catalog' AND $trusts(n.nspowner)
             AND NOT EXISTS (SELECT FROM pg_catalog.aclexplode(n.nspacl) AS a
                              WHERE a.privilege_type = 'CREATE' AND (a.grantee = 0 OR NOT $trusts(a.grantee)))), '')
         || ', pg_temp', $is_local)
