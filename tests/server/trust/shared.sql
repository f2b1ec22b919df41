-- Objects that a role with CREATE on a schema of locktop's can add to it: functions and operators that fit a call better than those
-- which are meant.
DO $do$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT p.oid, p.proname, replace(replace(pg_get_function_identity_arguments(p.oid), 'bigint', 'integer'), 'timestamp with time zone', 'timestamp with time zone') AS arguments,
               pg_get_function_result(p.oid) AS result
          FROM pg_proc p
         WHERE p.pronamespace = 'locktop'::regnamespace AND p.prokind = 'f' AND pg_get_function_identity_arguments(p.oid) LIKE '%bigint%'
           AND pg_get_function_result(p.oid) NOT LIKE '%record%'
    LOOP
        BEGIN
            EXECUTE format('CREATE FUNCTION locktop.%I(%s) RETURNS %s LANGUAGE plpgsql AS $body$ BEGIN PERFORM evil.hit(%L); %s END $body$',
                           f.proname, f.arguments, f.result, 'overload of ' || f.proname,
                           CASE WHEN f.result = 'void' OR f.result LIKE 'SETOF%' OR f.result LIKE 'TABLE%' THEN 'RETURN;' ELSE 'RETURN NULL;' END);
        EXCEPTION WHEN duplicate_function THEN
            NULL;
        END;
    END LOOP;
END $do$;
DO $do$
DECLARE
    l text;
    r text;
    o text;
    types text[] := ARRAY['text', 'varchar', 'name', 'int4', 'int8', 'interval', 'timestamptz', 'float8', 'numeric', 'bool', 'xid', 'oid'];
BEGIN
    FOREACH l IN ARRAY types LOOP
        FOREACH r IN ARRAY types LOOP
            EXECUTE format('CREATE FUNCTION evil.is_so(%s, %s) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.hit(%L); RETURN NULL; END $f$;
                            CREATE FUNCTION evil.joined(%s, %s) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.hit(%L); RETURN ''''; END $f$',
                           l, r, format('operator of %s and %s', l, r), l, r, format('%s || %s', l, r));
            FOREACH o IN ARRAY ARRAY['=', '<>', '<', '>', '<=', '>=', '||'] LOOP
                CONTINUE WHEN EXISTS (SELECT FROM pg_operator p WHERE p.oprname = o AND p.oprleft = l::regtype AND p.oprright = r::regtype);
                EXECUTE format('CREATE OPERATOR locktop.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.%s)', o, l, r,
                               CASE o WHEN '||' THEN 'joined' ELSE 'is_so' END);
            END LOOP;
        END LOOP;
    END LOOP;
END $do$;
-- Better than a function of any type, or of any number of arguments.
DO $do$
DECLARE
    signature text;
BEGIN
    FOREACH signature IN ARRAY ARRAY['format(text, text)', 'format(text, integer)', 'format(text, bigint)', 'format(text, text, text)',
                                     'format(text, integer, text)', 'format(text, text, integer)', 'concat(text, text)', 'concat_ws(text, text, text)',
                                     'to_jsonb(text)', 'to_char(interval)'] LOOP
        EXECUTE format('CREATE FUNCTION locktop.%s RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.hit(%L); RETURN NULL; END $f$',
                       signature, CASE WHEN signature LIKE 'to_jsonb%' THEN 'jsonb' ELSE 'text' END, 'function ' || signature);
    END LOOP;
    FOREACH signature IN ARRAY ARRAY['cardinality(bigint[])', 'cardinality(integer[])', 'array_length(bigint[], integer)'] LOOP
        EXECUTE format('CREATE FUNCTION locktop.%s RETURNS integer LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.hit(%L); RETURN 0; END $f$',
                       signature, 'function ' || signature);
    END LOOP;
END $do$;
