-- Keys of advisory locks: a namespace in the top 16 bits, an id in the low 48, so that the tasks' keys meet neither each other's
-- system nor a small number that somebody else locks.

CREATE FUNCTION @schema@.lock_key(p_namespace integer, p_id bigint)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    IF p_namespace NOT BETWEEN 1 AND 32767 THEN
        RAISE EXCEPTION 'lock namespace % is outside 1 to 32767', p_namespace
            USING ERRCODE = 'numeric_value_out_of_range';
    END IF;
    IF p_id NOT BETWEEN 0 AND 281474976710655 THEN
        RAISE EXCEPTION 'id % has no lock key', p_id
            USING ERRCODE = 'numeric_value_out_of_range',
                  DETAIL = 'Ids from 0 to 281474976710655 (48 bits) have one.';
    END IF;
    RETURN p_namespace::bigint << 48 | p_id;
END
$body$;
COMMENT ON FUNCTION @schema@.lock_key(integer, bigint) IS
    'The advisory lock key of an id in a namespace: namespace << 48 | id';

-- When this session began: with its process id, what tells it from every other one.
CREATE FUNCTION @schema@.own_backend_start()
RETURNS timestamptz
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_start timestamptz;
BEGIN
    SELECT a.backend_start INTO v_start FROM pg_stat_get_activity(pg_backend_pid()) a;
    IF v_start IS NULL THEN
        RAISE EXCEPTION 'role "%" may not see when its own session, of role "%", began', current_user, session_user
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'Grant it pg_read_all_stats, or do not SET ROLE.';
    END IF;
    RETURN v_start;
END
$body$;
COMMENT ON FUNCTION @schema@.own_backend_start() IS 'backend_start of this session';

-- Who has the exclusive key, in either mode. A prepared transaction has no process and a gid.
-- The two halves of a bigint key are in classid and objid, with objsubid 1 (src/backend/utils/adt/lockfuncs.c).
CREATE FUNCTION @schema@.key_holders(p_key bigint)
RETURNS TABLE (pid integer, backend_start timestamptz, mode text, prepared_gid text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT l.pid, a.backend_start, l.mode, p.gid
      FROM pg_locks l
      LEFT JOIN pg_stat_activity a ON a.pid = l.pid
      -- A prepared transaction goes by the virtual id of the session that prepared it, and has its own id locked.
      LEFT JOIN pg_locks x
        ON l.pid IS NULL AND x.pid IS NULL AND x.virtualtransaction = l.virtualtransaction
           AND x.locktype = 'transactionid' AND x.granted
      LEFT JOIN pg_prepared_xacts p ON p.transaction = x.transactionid
     WHERE l.locktype = 'advisory'
       AND l.objsubid = 1
       AND l.classid::bigint = p_key >> 32 & 4294967295
       AND l.objid::bigint = p_key & 4294967295
       AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
       AND l.granted
$body$;
COMMENT ON FUNCTION @schema@.key_holders(bigint) IS 'Who holds an advisory lock key in this database';
