//! Witnesses: what ran when, as recorded by the workers. Each worker writes on a connection that is independent of its
//! lock, before, during and after the work. The log of executions cannot show it: a recovery closes a row there while the
//! work continues, and then no two rows ever overlap.

mod interval;
mod log;
mod record;

pub(super) use log::{ACCEPTED, REFUSED, WitnessLog};
pub(super) use record::{Record, Witness};

use std::time::Duration;

use crate::scenario::SCHEMA;

/// Interval between two signs of work.
pub(super) const TICK: Duration = Duration::from_millis(100);

pub(super) fn table() -> String {
    format!(
        "CREATE TABLE {SCHEMA}.witness (
             run bigserial PRIMARY KEY,
             task_id integer NOT NULL,
             execution_id bigint,
             worker text NOT NULL,
             process integer NOT NULL,
             pid integer NOT NULL,
             began timestamptz NOT NULL DEFAULT clock_timestamp(),
             before_last timestamptz,
             last timestamptz NOT NULL DEFAULT clock_timestamp(),
             ended timestamptz,
             outcome text
         ) WITH (fillfactor = 60);
         COMMENT ON TABLE {SCHEMA}.witness IS
             'The runs of tasks as their workers record them, on a connection other than that of their lock, before, during and after'"
    )
}
