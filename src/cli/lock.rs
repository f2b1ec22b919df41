use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::schema::SchemaName;
use crate::text::parse_duration;

const HELP: &str = "\
The lock is a session-level advisory lock: the server releases it when locktop exits for any reason. Its key is a hash of NAME; \
the dashboard shows NAME. With --lease, the lock is a lease in locktop's tables, which outlasts the connection.

If the lock is lost, CMD gets SIGTERM, and SIGKILL 5 s later (with --lease at most a tenth of its time): its process group without a \
terminal, CMD alone on one. Signals are passed on. If locktop itself is killed (SIGKILL), CMD continues without the lock.

Exit status: that of CMD, or 128 + N if signal N ended it; 75: the lock is taken (see --wait); 76: the lock was lost; 1: an \
error; 2: wrong usage; 126: CMD cannot be run; 127: CMD not found.";

const LEAD_HELP: &str = "\
CMD runs on one machine at a time, the holder of the lock NAME. If the lock is lost, CMD gets SIGTERM, and SIGKILL 5 s later; \
then locktop waits for the lock again, and for the server if it cannot be reached. A standby has locks of its own: with several hosts, \
set target_session_attrs=read-write.

Exit status: that of CMD, or 128 + N if signal N ended it; 1: an error; 2: wrong usage; 126: CMD cannot be run; 127: CMD not found.";

const LEASE_HELP: &str =
    "Take a lease for this time (at least 0.1s) and renew it. CMD gets its fencing token in LOCKTOP_TOKEN";

/// `locktop lock`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct LockArgs {
    /// The lock's name; with --lease, the lease's number.
    pub name: String,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
    /// Longest time to wait for the lock; 0 tries once [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = wait)]
    pub wait: Option<Duration>,
    /// Share the lock with other holders that use --shared.
    #[arg(long, conflicts_with = "lease")]
    pub shared: bool,
    /// The term of a lease.
    #[arg(long, value_name = "TIME", value_parser = wait, help = LEASE_HELP)]
    pub lease: Option<Duration>,
    /// The name of the leases' schema: without quotes, case-sensitive.
    #[arg(long, value_name = "NAME", default_value_t, requires = "lease")]
    pub schema: SchemaName,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `locktop lead`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LEAD_HELP)]
pub struct LeadArgs {
    /// The lock's name.
    pub name: String,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

fn wait(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a duration such as 5s".to_owned())
}
