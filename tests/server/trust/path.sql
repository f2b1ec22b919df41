-- Everything that a name without its schema could mean, if mallory's schema is before pg_catalog: functions, operators,
-- aggregates, types and relations, each of which does the same as the one that it hides.
CREATE TEMP TABLE wanted AS
    SELECT t.oid, t.typname FROM pg_type t
     WHERE t.typnamespace = 'pg_catalog'::regnamespace
       AND t.typname IN ('text', 'varchar', 'name', 'oid', 'int2', 'int4', 'int8', 'bool', 'timestamptz', 'interval', 'float8', 'numeric',
                         'char', 'regclass', 'regproc', 'jsonb', 'json', 'uuid', 'xid', 'anyelement', 'anyarray', 'any', 'anynonarray',
                         '_text', '_name', '_oid', '_int4', '_int8', 'bytea', 'bit', 'inet', 'tid', 'pg_lsn', 'record');

-- Functions, including all those that are called in SQL.
DO $do$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT p.oid, p.proname, p.pronargs, p.proretset, p.prorettype,
               pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result,
               (SELECT coalesce(string_agg('$' || n, ', ' ORDER BY n), '') FROM generate_series(1, p.pronargs) n) AS numbers
          FROM pg_proc p
         WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.provariadic = 0
           AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[])
           AND (p.oid IN (SELECT oprcode FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace)
                OR p.proname IN ('lower', 'upper', 'left', 'length', 'substr', 'md5', 'hashtext', 'now', 'clock_timestamp', 'current_setting',
                    'set_config', 'current_database', 'pg_backend_pid', 'pg_stat_get_activity', 'pg_lock_status', 'pg_prepared_xact',
                    'pg_blocking_pids', 'pg_is_in_recovery', 'has_schema_privilege', 'has_table_privilege', 'has_sequence_privilege',
                    'obj_description', 'to_jsonb', 'to_regclass', 'row_security_active', 'pg_table_is_visible', 'pg_has_role', 'isfinite',
                    'extract', 'date_part', 'encode', 'textsend', 'pg_get_expr', 'pg_relation_size', 'quote_ident', 'translate',
                    'pg_advisory_xact_lock', 'pg_try_advisory_lock', 'pg_advisory_lock', 'pg_advisory_unlock', 'pg_advisory_unlock_all',
                    'pg_terminate_backend', 'pg_cancel_backend', 'pg_stat_clear_snapshot', 'pg_postmaster_start_time', 'version',
                    'pg_partition_ancestors', 'pg_get_userbyid', 'array_to_string', 'generate_series', 'octet_length', 'repeat',
                    'pg_control_system', 'json_build_object', 'make_interval', 'unnest', 'cardinality', 'array_remove', 'regexp_matches',
                    'pg_my_temp_schema', 'pg_get_function_identity_arguments', 'format_type', 'txid_current', 'pg_current_xact_id_if_assigned'))
           AND (SELECT bool_and(a IN (SELECT oid FROM wanted)) IS NOT FALSE FROM unnest(p.proargtypes::oid[]) a)
    LOOP
        BEGIN
            EXECUTE format(
                'CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS $body$ BEGIN PERFORM evil.hit(%L); %s END $body$',
                f.proname, f.arguments, f.result, 'function ' || f.oid::regprocedure,
                CASE WHEN f.proretset THEN format('RETURN QUERY SELECT * FROM pg_catalog.%I(%s);', f.proname, f.numbers)
                     WHEN f.prorettype = 'void'::regtype THEN format('PERFORM pg_catalog.%I(%s);', f.proname, f.numbers)
                     ELSE format('RETURN pg_catalog.%I(%s);', f.proname, f.numbers) END);
        EXCEPTION WHEN OTHERS THEN
            -- A few cannot be written in this language.
            NULL;
        END;
    END LOOP;
END $do$;

DO $do$
DECLARE
    o record;
BEGIN
    FOR o IN
        SELECT p.oid, p.oprname, p.oprleft, p.oprright, f.proname
          FROM pg_operator p JOIN pg_proc f ON f.oid = p.oprcode
         WHERE p.oprnamespace = 'pg_catalog'::regnamespace AND p.oprkind = 'b'
           AND p.oprleft IN (SELECT oid FROM wanted) AND p.oprright IN (SELECT oid FROM wanted)
    LOOP
        BEGIN
            EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = pg_catalog.%s, RIGHTARG = pg_catalog.%s, FUNCTION = evil.%I)',
                           o.oprname, (SELECT quote_ident(typname) FROM wanted WHERE oid = o.oprleft),
                           (SELECT quote_ident(typname) FROM wanted WHERE oid = o.oprright), o.proname);
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END LOOP;
END $do$;

-- What is compared by way of another type, such as a name with a text in older times, finds an exact match here.
CREATE FUNCTION evil.same(varchar, text) RETURNS boolean LANGUAGE plpgsql AS
    $f$ BEGIN PERFORM evil.hit('operator varchar = text'); RETURN $1::pg_catalog.text OPERATOR(pg_catalog.=) $2; END $f$;
CREATE OPERATOR evil.= (LEFTARG = varchar, RIGHTARG = text, FUNCTION = evil.same);
CREATE FUNCTION evil.joined(name, text) RETURNS text LANGUAGE plpgsql AS
    $f$ BEGIN PERFORM evil.hit('operator name || text'); RETURN $1::pg_catalog.text OPERATOR(pg_catalog.||) $2; END $f$;
CREATE OPERATOR evil.|| (LEFTARG = name, RIGHTARG = text, FUNCTION = evil.joined);

CREATE FUNCTION evil.next(bigint) RETURNS bigint LANGUAGE plpgsql AS
    $f$ BEGIN PERFORM evil.hit('aggregate count'); RETURN $1 OPERATOR(pg_catalog.+) 1; END $f$;
CREATE AGGREGATE evil.count(*) (SFUNC = evil.next, STYPE = bigint, INITCOND = '0');
CREATE FUNCTION evil.next(text, text, text) RETURNS text LANGUAGE plpgsql AS
    $f$ BEGIN PERFORM evil.hit('aggregate string_agg'); RETURN pg_catalog.concat($1, $3, $2); END $f$;
CREATE AGGREGATE evil.string_agg(text, text) (SFUNC = evil.next, STYPE = text);
CREATE FUNCTION evil.either(anyelement, anyelement) RETURNS anyelement LANGUAGE plpgsql AS
    $f$ BEGIN PERFORM evil.hit('aggregate max'); RETURN $2; END $f$;
CREATE AGGREGATE evil.max(anyelement) (SFUNC = evil.either, STYPE = anyelement);
CREATE AGGREGATE evil.min(anyelement) (SFUNC = evil.either, STYPE = anyelement);

-- Relations of the catalog.
DO $do$
DECLARE
    v record;
BEGIN
    FOR v IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v') LOOP
        BEGIN
            EXECUTE format('CREATE VIEW evil.%I AS SELECT * FROM pg_catalog.%I WHERE evil.hit(%L)',
                           v.relname, v.relname, 'relation ' || v.relname);
            EXECUTE format('GRANT SELECT ON evil.%I TO PUBLIC', v.relname);
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END LOOP;
END $do$;

-- Types last: from here on they would be meant above.
DO $do$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['text', 'name', 'oid', 'int2', 'int4', 'int8', 'bool', 'timestamptz', 'float8', 'jsonb', 'json', 'uuid', 'bytea',
                             'regclass', 'regrole', 'regtype', 'regnamespace', 'xid', 'tid', 'regproc', 'regprocedure'] LOOP
        EXECUTE format('CREATE DOMAIN evil.%I AS pg_catalog.%I CHECK (evil.hit(%L))', t, t, 'type ' || t);
    END LOOP;
END $do$;
