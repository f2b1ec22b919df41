-- Code of mallory's. Each function that is called writes to the server's log, with its role. It uses no operator and no function
-- without its schema: some of those are mallory's, too.
CREATE FUNCTION evil.hit(tag text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN
    RAISE LOG 'locktop-attack|%|%|%|%|%|%', pg_catalog.current_database(), session_user, current_user,
        pg_catalog.current_setting('application_name'), tag,
        pg_catalog.translate(pg_catalog.left(pg_catalog.current_query(), 200), E'\n|', '  ');
    RETURN true;
END $f$;
CREATE FUNCTION evil.zero(tag text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
    $f$ BEGIN PERFORM evil.hit(tag); RETURN 0; END $f$;
CREATE FUNCTION evil.no(tag text) RETURNS boolean LANGUAGE plpgsql AS
    $f$ BEGIN PERFORM evil.hit(tag); RETURN false; END $f$;
CREATE FUNCTION evil.on_row() RETURNS trigger LANGUAGE plpgsql AS
    $f$ BEGIN PERFORM evil.hit(TG_ARGV[0]); IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $f$;

-- Types of mallory's own, and casts from them to the types that are read.
CREATE DOMAIN evil.checked AS text CHECK (evil.hit('domain'));
CREATE TYPE evil.mood AS ENUM ('a', 'b');
CREATE TYPE evil.pair AS (a integer, b text);
CREATE FUNCTION evil.apart(integer, integer) RETURNS double precision LANGUAGE plpgsql IMMUTABLE AS
    $f$ BEGIN PERFORM evil.hit('subtype_diff'); RETURN 0; END $f$;
CREATE TYPE evil.span AS RANGE (subtype = integer, subtype_diff = evil.apart);
DO $do$
DECLARE
    target text;
    value text;
BEGIN
    FOR target, value IN VALUES ('timestamptz', 'pg_catalog.now()'), ('bigint', '1'), ('text', $$'x'$$), ('interval', $$'1 s'$$),
                                ('double precision', '1'), ('boolean', 'true'), ('varchar', $$'x'$$) LOOP
        EXECUTE pg_catalog.format(
            'CREATE FUNCTION evil.%I(evil.mood) RETURNS %s LANGUAGE plpgsql IMMUTABLE AS
                 $f$ BEGIN PERFORM evil.hit(%L); RETURN %s; END $f$', 'to ' || target, target, 'cast to ' || target, value);
        EXECUTE pg_catalog.format('CREATE CAST (evil.mood AS %s) WITH FUNCTION evil.%I(evil.mood) AS IMPLICIT', target, 'to ' || target);
    END LOOP;
END $do$;

-- Everything that can be stored with an ordinary table.
CREATE PROCEDURE evil.trap(t regclass) LANGUAGE plpgsql AS $f$
DECLARE
    mark text := t::text || ' ';
BEGIN
    EXECUTE format('CREATE INDEX ON %s ((1)) WHERE evil.hit(%L)', t, mark || 'index predicate');
    EXECUTE format('CREATE INDEX ON %s ((evil.zero(%L)))', t, mark || 'index expression');
    EXECUTE format('CREATE STATISTICS evil.%I ON (evil.zero(%L)) FROM %s', 's' || t::oid, mark || 'statistics', t);
    EXECUTE format('ALTER TABLE %s ADD COLUMN e1 integer DEFAULT evil.zero(%L), ADD CHECK (evil.hit(%L)),
                        ADD COLUMN e2 integer GENERATED ALWAYS AS (evil.zero(%L)) STORED',
                   t, mark || 'default', mark || 'check', mark || 'generated');
    EXECUTE format('ALTER TABLE %s ADD COLUMN e3 evil.checked DEFAULT ''x'', ADD COLUMN e4 evil.mood DEFAULT ''a'',
                        ADD COLUMN e5 evil.pair DEFAULT ''(1,x)'', ADD COLUMN e6 evil.span DEFAULT ''[1,2]''', t);
    EXECUTE format('CREATE INDEX ON %s USING gist (e6)', t);
    IF current_setting('server_version_num')::int >= 180000 THEN
        EXECUTE format('ALTER TABLE %s ADD COLUMN e7 integer GENERATED ALWAYS AS (1 + 1) VIRTUAL', t);
    END IF;
    EXECUTE format('CREATE TRIGGER a_row BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION evil.on_row(%L)',
                   t, mark || 'row trigger');
    EXECUTE format('CREATE TRIGGER a_statement BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s
                        FOR EACH STATEMENT EXECUTE FUNCTION evil.on_row(%L)', t, mark || 'statement trigger');
    EXECUTE format('ANALYZE %s', t);
END $f$;

-- A rule on a table makes each of its changes a query of mallory's.
CREATE PROCEDURE evil.rule(t regclass) LANGUAGE plpgsql AS $f$
BEGIN
    EXECUTE format('CREATE RULE a_rule AS ON UPDATE TO %s DO ALSO SELECT evil.hit(%L)', t, t::text || ' rule');
END $f$;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
