-- Workers that take some types of work and leave the others alone: seven functions get one more argument. A function with another
-- argument is another function, and the old one would be as good a match for a call: so it goes. What was granted on it, and whose it
-- is, goes over to the new one (006_after).

DO $do$
BEGIN
    PERFORM set_config('locktop.replaced', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('name', p.proname, 'owner', pg_get_userbyid(p.proowner), 'acl', (
                   SELECT jsonb_agg(jsonb_build_array(CASE WHEN a.grantee <> 0 THEN pg_get_userbyid(a.grantee) END, a.is_grantable))
                     FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                    WHERE a.grantee <> p.proowner))), '[]')::text
          FROM pg_proc p
          JOIN (VALUES ('fetch_tasks', 'text, integer'), ('worker_fetch_and_execute_task', 'text'),
                       ('try_acquire_multiple_tasks', 'text, integer'), ('next_due_at', ''), ('claim_queue_items', 'text, integer'),
                       ('consume_task', ''), ('next_item_due_at', '')) AS o (name, arguments)
            ON o.name = p.proname AND o.arguments = oidvectortypes(p.proargtypes)
         WHERE p.pronamespace = to_regnamespace(@schema_literal@)), true);
END
$do$;

DROP FUNCTION @schema@.fetch_tasks(text, integer), @schema@.worker_fetch_and_execute_task(text),
    @schema@.try_acquire_multiple_tasks(text, integer), @schema@.next_due_at(), @schema@.claim_queue_items(text, integer),
    @schema@.consume_task(), @schema@.next_item_due_at();
DELETE FROM @schema@.locktop_objects
 WHERE kind = 'function'
   AND identity IN ('fetch_tasks(text, integer)', 'worker_fetch_and_execute_task(text)', 'try_acquire_multiple_tasks(text, integer)',
                    'next_due_at()', 'claim_queue_items(text, integer)', 'consume_task()', 'next_item_due_at()');
