-- PgQueuer 1.6: names, types and indexes as its queries need them.
CREATE TYPE pgqueuer_status AS ENUM ('queued', 'picked', 'successful', 'exception', 'canceled', 'deleted', 'failed');
CREATE TABLE pgqueuer (id bigserial PRIMARY KEY, priority integer NOT NULL, queue_manager_id uuid, created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now(),
    heartbeat timestamptz NOT NULL DEFAULT now(), execute_after timestamptz NOT NULL DEFAULT now(), status pgqueuer_status NOT NULL, entrypoint text NOT NULL, payload bytea,
    attempts integer NOT NULL DEFAULT 0, slot bigint);
CREATE INDEX pgqueuer_priority_id_id1_idx ON pgqueuer (priority, id DESC) INCLUDE (id) WHERE status = 'queued';
CREATE INDEX pgqueuer_updated_id_id1_idx ON pgqueuer (updated, id DESC) INCLUDE (id) WHERE status = 'picked';
CREATE INDEX pgqueuer_picked_heartbeat_idx ON pgqueuer (heartbeat) WHERE status = 'picked';
CREATE INDEX pgqueuer_queue_manager_id_idx ON pgqueuer (queue_manager_id) WHERE queue_manager_id IS NOT NULL;
CREATE INDEX pgqueuer_ep_prio_id_idx ON pgqueuer (entrypoint, priority DESC, id) WHERE status = 'queued';
CREATE INDEX pgqueuer_ep_ea_idx ON pgqueuer (entrypoint, execute_after) WHERE status = 'queued';
CREATE TABLE pgqueuer_schedules (id bigserial PRIMARY KEY, expression text NOT NULL, entrypoint text NOT NULL, heartbeat timestamptz NOT NULL DEFAULT now(), next_run timestamptz NOT NULL DEFAULT now(),
    last_run timestamptz, status pgqueuer_status DEFAULT 'queued', UNIQUE (expression, entrypoint));
