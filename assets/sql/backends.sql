-- pg_stat_activity from the function below the view: names of databases and roles are looked up by locktop, so that
-- no catalog has to be opened.
COPY (
SELECT pid, backend_start, leader_pid, datid, usesysid, application_name, client_addr, client_port, backend_type,
       state, wait_event_type, wait_event, xact_start, query_start, state_change, backend_xid, backend_xmin,
       query_id, query
  FROM pg_catalog.pg_stat_get_activity(NULL)
) TO STDOUT (FORMAT binary)
