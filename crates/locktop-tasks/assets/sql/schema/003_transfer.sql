-- Optimistic locking: read with a version, write only if the version is still the one that was read.

CREATE TABLE @schema@.accounts (
    id serial PRIMARY KEY,
    username varchar(50),
    balance numeric(10, 2) NOT NULL DEFAULT 0 CHECK (balance >= 0),
    -- Grows with every change.
    version integer NOT NULL DEFAULT 0
);
COMMENT ON TABLE @schema@.accounts IS 'locktop: accounts with a version, between which money is moved under an optimistic lock';

-- One attempt: moves the money if both accounts have the versions that were read, and otherwise changes nothing.
CREATE FUNCTION @schema@.transfer_at_versions(p_from_id int, p_from_version int, p_to_id int, p_to_version int, p_amount numeric)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_rows integer;
BEGIN
    -- NaN is above every number. More decimals than an account keeps would be rounded on both sides, each in its own way.
    IF p_amount IS NULL OR NOT (p_amount > 0 AND p_amount < 'Infinity') OR p_amount <> round(p_amount, 2) THEN
        RAISE EXCEPTION 'cannot transfer %: an amount is above 0 and has at most 2 decimals', coalesce(p_amount::text, 'null')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF p_from_id = p_to_id THEN
        RAISE EXCEPTION 'account % cannot transfer to itself', p_from_id USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Both are locked in the order of their ids, whichever way the money goes: two that cross wait, and do not deadlock. An attempt
    -- that lost gives its locks back with its block: with one of them still held, the next attempt would not keep the order.
    BEGIN
        PERFORM a.id
           FROM accounts a
          WHERE a.id = p_from_id AND a.version = p_from_version OR a.id = p_to_id AND a.version = p_to_version
          ORDER BY a.id
            FOR UPDATE;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        IF v_rows = 2 THEN
            UPDATE accounts a
               SET balance = a.balance + CASE a.id WHEN p_to_id THEN p_amount ELSE -p_amount END, version = a.version + 1
             WHERE a.id = p_from_id AND a.version = p_from_version OR a.id = p_to_id AND a.version = p_to_version;
            GET DIAGNOSTICS v_rows = ROW_COUNT;
        END IF;
        IF v_rows <> 2 THEN
            RAISE SQLSTATE 'LT002';
        END IF;
    EXCEPTION WHEN SQLSTATE 'LT002' THEN
        RETURN false;
    END;
    RETURN true;
END
$body$;
COMMENT ON FUNCTION @schema@.transfer_at_versions(int, int, int, int, numeric) IS
    'Moves money between two accounts if their versions are these; false when one has changed, and nothing was done';

-- In READ COMMITTED each statement sees what others have committed by then, so trying again in here is worth it. In REPEATABLE READ
-- and above it is not, and the server says so itself with a serialization failure (40001): the whole transaction has to be tried
-- again. To give up after p_max_retries attempts is the same failure. Attempts that lost count in `attempts`.
CREATE FUNCTION @schema@.try_transfer(p_from_id int, p_to_id int, p_amount numeric, p_max_retries int DEFAULT 3)
RETURNS TABLE (transferred boolean, attempts int)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_from accounts;
    v_to accounts;
BEGIN
    IF p_max_retries IS NULL OR p_max_retries < 1 THEN
        RAISE EXCEPTION 'p_max_retries is %: expected 1 or more', coalesce(p_max_retries::text, 'null')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    transferred := false;
    attempts := 0;
    WHILE NOT transferred AND attempts < p_max_retries LOOP
        attempts := attempts + 1;
        SELECT * INTO v_from FROM accounts a WHERE a.id = p_from_id;
        SELECT * INTO v_to FROM accounts a WHERE a.id = p_to_id;
        IF v_from.id IS NULL OR v_to.id IS NULL THEN
            RAISE EXCEPTION 'there is no account %', CASE WHEN v_from.id IS NULL THEN p_from_id ELSE p_to_id END
                USING ERRCODE = 'no_data_found';
        END IF;
        IF v_from.balance < p_amount AND p_amount < 'Infinity' THEN
            RAISE EXCEPTION 'account % has % and not %', p_from_id, v_from.balance, p_amount
                USING ERRCODE = 'check_violation';
        END IF;
        transferred := transfer_at_versions(p_from_id, v_from.version, p_to_id, v_to.version, p_amount);
    END LOOP;
    RETURN NEXT;
END
$body$;
COMMENT ON FUNCTION @schema@.try_transfer(int, int, numeric, int) IS
    'Moves money between two accounts, trying again when others change one of them meanwhile: whether it did, and in which attempt';

CREATE FUNCTION @schema@.transfer_optimistic(p_from_id int, p_to_id int, p_amount numeric, p_max_retries int DEFAULT 3)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    IF NOT (SELECT t.transferred FROM try_transfer(p_from_id, p_to_id, p_amount, p_max_retries) t) THEN
        RAISE EXCEPTION 'gave up the transfer from account % to % after % attempts: others changed them each time',
            p_from_id, p_to_id, p_max_retries
            USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN true;
END
$body$;
COMMENT ON FUNCTION @schema@.transfer_optimistic(int, int, numeric, int) IS
    'As try_transfer: true, or an error (40001) when all attempts lost to others';
