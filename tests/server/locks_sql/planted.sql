-- A schema with an operator for each of the server's, and a function, type and table for each that the functions of locktop's schema may
-- name, which all fail if they are used. A session with the schema first on its path finds them in place of the server's own.
CREATE SCHEMA trap;
DO $$
DECLARE
    v record;
BEGIN
    FOR v IN
        SELECT o.oprname AS name, NULLIF(o.oprleft, 0)::regtype AS a, o.oprright::regtype AS b, o.oprresult::regtype AS result, o.oid
          FROM pg_operator o
         WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprcode <> 0
           AND NOT EXISTS (SELECT FROM pg_type t WHERE t.oid IN (o.oprleft, o.oprright, o.oprresult) AND t.typtype = 'p')
    LOOP
        EXECUTE format('CREATE FUNCTION trap.%I(%s) RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''sprung''; END $f$',
                       'operator ' || v.oid, concat_ws(', ', v.a, v.b), v.result);
        EXECUTE format('CREATE OPERATOR trap.%s (FUNCTION = trap.%I, RIGHTARG = %s%s)', v.name, 'operator ' || v.oid, v.b,
                       ', LEFTARG = ' || v.a::text);
    END LOOP;
    -- Each function of the server that the schema may call, as their bodies have it, and those behind the grammar's own words.
    FOR v IN
        SELECT p.proname AS name, pg_get_function_identity_arguments(p.oid) AS arguments, p.prorettype::regtype AS result
          FROM pg_proc p
         WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset AND p.proargmodes IS NULL
           AND p.provariadic = 0 AND p.prorettype <> 'trigger'::regtype
           AND NOT EXISTS (SELECT FROM pg_type t WHERE t.oid = ANY (p.proargtypes::oid[] || p.prorettype) AND t.typtype = 'p'
                              AND t.oid <> 'void'::regtype)
           AND EXISTS (SELECT FROM pg_proc s
                        WHERE s.pronamespace = 'locktop'::regnamespace AND s.prosrc ~ ('\m' || p.proname || '\('))
    LOOP
        EXECUTE format('CREATE FUNCTION trap.%I(%s) RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''sprung''; END $f$',
                       v.name, v.arguments, v.result);
    END LOOP;
    FOR v IN SELECT c.relname AS name FROM pg_class c WHERE c.relnamespace = 'locktop'::regnamespace AND c.relkind = 'r' LOOP
        EXECUTE format('CREATE TABLE trap.%I (sprung int)', v.name);
    END LOOP;
    FOR v IN SELECT p.proname AS name, pg_get_function_identity_arguments(p.oid) AS arguments
               FROM pg_proc p
              WHERE p.pronamespace = 'locktop'::regnamespace AND p.prokind = 'f' AND p.proargmodes IS NULL
                AND p.prorettype <> 'trigger'::regtype LOOP
        EXECUTE format('CREATE FUNCTION trap.%I(%s) RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''sprung''; END $f$',
                       v.name, v.arguments);
    END LOOP;
    FOREACH v.name IN ARRAY ARRAY['text', 'timestamptz', 'int4', 'int8', 'bool', 'interval', 'regclass', 'float8', 'xid', 'numeric'] LOOP
        EXECUTE format('CREATE DOMAIN trap.%I AS pg_catalog.bytea CHECK (false)', v.name);
    END LOOP;
END
$$;
