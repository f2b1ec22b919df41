/// Title, name and help of a column.
pub(super) type Words = (&'static str, &'static str, &'static str);

pub(super) const PID: Words = ("PID", "pid", "process id of the session");
pub(super) const DB: Words = ("DB", "db", "database");
pub(super) const WHO: Words = ("WHO", "who", WHO_HELP);
pub(super) const WHO_HELP: &str =
    "role@application; in a narrow column the application, or else the role, or the address";
pub(super) const TYPE_HELP: &str = "the lock type, as in pg_locks";
pub(super) const QUERY: Words = ("QUERY", "query", "the query it runs, or ran last");
pub(super) const XACT: Words = ("XACT", "xact", "age of its transaction; w: it may have written");
pub(super) const BLOCKS: Words =
    ("BLOCKS", "blocks", "sessions that wait behind it, directly or through others");
pub(super) const TABLE: Words = ("TABLE", "table", "the table of the row");
pub(super) const WORKER: Words = ("WORKER", "worker", "the worker, as the table names it");
pub(super) const TRY: Words = ("TRY", "try", "the attempt, and the limit");
pub(super) const BEAT: Words = ("BEAT", "beat", "since the worker's last heartbeat");
