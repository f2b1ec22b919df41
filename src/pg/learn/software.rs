use crate::model::Text;
use crate::model::lock_key::LockKey;
use crate::model::lock_name::{flyway, golang_migrate};

/// By its word in `tables.sql`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Software {
    /// `pg_partman`: its only key, for maintenance.
    PgPartman,
    /// pgmq: a key per queue.
    Pgmq,
    /// `GoodJob`: a key per job, by the id of its row.
    GoodJobs,
    /// `GoodJob`: a key per job, by the id of Active Job.
    GoodJobsActive,
    /// `GoodJob`: a key per finished job, by the id of its row.
    GoodJobsFinished,
    /// Flyway: a key per history table.
    Flyway,
    /// golang-migrate: a key per table.
    GolangMigrate,
    /// `GoodJob`: a key per process.
    GoodJobProcesses,
    /// Que: the key of a job is its id.
    Que,
    /// Terraform: the key of a state is its id.
    Terraform,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SoftwareTable {
    pub software: Software,
    /// The schema of its table; `pg_catalog` if no table is read.
    pub schema: Text,
    /// None if no table is read.
    pub table: Option<SoftwareRelation>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SoftwareRelation {
    pub oid: u32,
    pub name: Text,
}

impl Software {
    /// Software that is read from the catalogs alone.
    pub(super) const WITHOUT_TABLE: [Self; 3] = [Self::PgPartman, Self::Flyway, Self::GolangMigrate];

    /// The key and the name from a row of its query. Some rows have the text of which the key is a hash.
    pub(super) fn named(self, (key, name): (LockKey, Text)) -> (LockKey, Text) {
        match self {
            Self::Flyway => {
                let place = name.replace('"', "");
                (LockKey::Bigint(flyway(&name)), place_of("Flyway", &place, "public.flyway_schema_history"))
            }
            Self::GolangMigrate => {
                let mut parts = name.split('\u{1}');
                let place = [parts.next(), parts.next()].map(Option::unwrap_or_default).join(".");
                let key = golang_migrate(&name.replace('\u{1}', "\0"));
                (LockKey::Bigint(key), place_of("golang-migrate", &place, "public.schema_migrations"))
            }
            _ => (key, name),
        }
    }

    /// Whether a key is a plain id: a small number that other software may use, too.
    pub fn is_small(self) -> bool {
        matches!(self, Self::Que | Self::Terraform)
    }

    pub(super) fn query(self) -> &'static str {
        self.source().0
    }

    pub fn origin(self) -> &'static str {
        self.source().1
    }

    /// The query for its keys, and the origin of a key in words.
    fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::PgPartman => (
                include_str!("../../../assets/sql/learn/pg_partman.sql"),
                "hashtext('pg_partman run_maintenance')",
            ),
            Self::Pgmq => (
                include_str!("../../../assets/sql/learn/pgmq.sql"),
                "hashtext of \"pgmq.queue_\" and a name in meta",
            ),
            Self::GoodJobs => (
                include_str!("../../../assets/sql/learn/good_jobs.sql"),
                "md5 of \"good_jobs-\" and an id in good_jobs",
            ),
            Self::GoodJobsActive => (
                include_str!("../../../assets/sql/learn/good_jobs_active.sql"),
                "md5 of \"good_jobs-\" and an active_job_id in good_jobs",
            ),
            Self::GoodJobsFinished => (
                include_str!("../../../assets/sql/learn/good_jobs_finished.sql"),
                "md5 of \"good_jobs-\" and an id in good_jobs; the job is done",
            ),
            Self::Flyway => (
                include_str!("../../../assets/sql/learn/flyway.sql"),
                "0x466C79776179 and the hash code of the quoted name of its table",
            ),
            Self::GolangMigrate => (
                include_str!("../../../assets/sql/learn/golang_migrate.sql"),
                "1486364155 * crc32 of schema, table and database",
            ),
            Self::GoodJobProcesses => (
                include_str!("../../../assets/sql/learn/good_job_processes.sql"),
                "md5 of \"good_job_processes-\" and an id in good_job_processes",
            ),
            Self::Que => (include_str!("../../../assets/sql/learn/que.sql"), "an id in que_jobs"),
            Self::Terraform => (include_str!("../../../assets/sql/learn/terraform.sql"), "an id in states"),
        }
    }
}

/// `Flyway`, with the table unless it is the usual one.
fn place_of(tool: &str, table: &str, usual: &str) -> Text {
    if table == usual { tool.into() } else { format!("{tool} {table}").into() }
}
