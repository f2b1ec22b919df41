use serde::{Deserialize, Serialize};

use super::running::{self, AlsoEnded, Session};
use super::running::{RunState, RunningExecution};
use locktop_base::Timestamp;
use locktop_base::text::duration;

/// Which of the executions that are running by the log a recovery takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// Those whose session no longer exists: the key is free, and there was no sign of life within the grace.
    Orphans,
    /// Those that have run for longer than this many seconds; with `None`, longer than their own timeout.
    Longer(Option<f64>),
    /// Those with these ids, in any state.
    Executions(Vec<i64>),
}

/// The request for a recovery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Which of the executions.
    pub select: Selection,
    /// Only executions of the task with this name; `None` for all tasks.
    pub task: Option<String>,
    /// Whether the session that holds the key of a slow execution is terminated.
    pub terminate: bool,
}

/// The action for one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// It is marked as failed in the log, and its task is due again or given up.
    Recover,
    /// The session that holds its key is terminated first.
    Terminate {
        /// The process id of that session.
        pid: i32,
        /// When its process started (`backend_start`): a process id alone may be reused.
        start: Timestamp,
    },
    /// Nothing is done, for this reason.
    Leave(Reason),
}

/// Why an execution is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its key is not the task's, so a free key proves nothing.
    Unknown,
    /// Its key is free, and its last sign of life or the server's start is within the grace.
    Settling,
    /// It runs, within its own timeout.
    InTime,
    /// It runs, past its timeout, and its termination was not requested.
    Held,
    /// A prepared transaction holds its key.
    Prepared,
    /// The session that holds its key is not the one in the log.
    Stranger,
    /// This role cannot see when the session that holds its key began.
    Hidden,
    /// It would be left alone, but its session is terminated for another execution.
    SessionEnds,
}

/// An execution and its action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// The execution as it was seen.
    pub seen: RunningExecution,
    /// The action, or why there is none.
    pub step: Step,
    /// Other executions that end with the terminated session, and that this plan does not recover.
    pub also_ended: Vec<AlsoEnded>,
    /// A description of the action, or why there is none, for tables that are not of locktop's schema: it is not known what
    /// they count. `None` for locktop's schema.
    #[serde(skip)]
    pub foreign_effect: Option<String>,
}

/// Counts of the executions that were not requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Others {
    /// Their key is free, and their last sign of life or the server's start is within the grace.
    pub settling: u32,
    /// Past their timeout, and their key is held.
    pub slow: u32,
    /// Their key is not the task's.
    pub unknown: u32,
}

/// The actions that a recovery is going to take. The plan is valid as long as everything remains as it was seen: the
/// caller makes the server compare, in the statement that acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecoveryPlan {
    /// The name of the schema that the tables are in.
    pub schema: String,
    /// When it was seen, on the server's clock.
    pub taken_at: Timestamp,
    /// How long ago, in seconds, the last sign of life of an execution with a free key must be.
    pub grace: f64,
    /// The requested executions, oldest first.
    pub rows: Vec<Planned>,
    /// Counts of the other executions that are running by the log.
    pub others: Others,
}

impl RecoveryPlan {
    /// Makes a plan from the executions that are running by the log.
    #[must_use]
    pub fn of(
        schema: &str,
        taken_at: Timestamp,
        grace: f64,
        running: &[RunningExecution],
        request: &Request,
    ) -> Self {
        let mut plan =
            Self { schema: schema.to_owned(), taken_at, grace, rows: Vec::new(), others: Others::default() };
        for seen in running {
            if request.task.as_ref().is_some_and(|name| *name != seen.task_name) {
                continue;
            }
            if request.select.takes(seen) {
                let step = step(seen, request.terminate);
                plan.rows.push(Planned {
                    seen: seen.clone(),
                    step,
                    also_ended: Vec::new(),
                    foreign_effect: None,
                });
            } else {
                plan.others.add(seen.state);
            }
        }
        fill(&mut plan.rows, running);
        plan
    }

    /// The row of the execution with this id; `None` if it was not requested.
    #[must_use]
    pub fn row(&self, execution_id: i64) -> Option<&Planned> {
        self.rows.iter().find(|row| row.seen.execution_id == execution_id)
    }

    /// The rows with an action.
    pub fn acts(&self) -> impl Iterator<Item = &Planned> {
        self.rows.iter().filter(|row| row.acts())
    }

    /// The processes that are terminated, each once.
    #[must_use]
    pub fn ended_pids(&self) -> Vec<i32> {
        let mut pids = Vec::new();
        for (pid, _) in self.rows.iter().filter_map(ended) {
            if !pids.contains(&pid) {
                pids.push(pid);
            }
        }
        pids
    }

    /// Other executions that end with this process, and are not recovered.
    #[must_use]
    pub fn also_ended(&self, pid: i32) -> &[AlsoEnded] {
        let of = |row: &&Planned| ended(row).is_some_and(|(ended, _)| ended == pid);
        self.rows.iter().find(of).map_or(&[], |row| &row.also_ended)
    }
}

impl Selection {
    /// Whether the selection includes an execution.
    #[must_use]
    pub fn takes(&self, seen: &RunningExecution) -> bool {
        match self {
            Self::Orphans => seen.state == RunState::Orphan,
            Self::Longer(limit) => {
                let limit = limit.or(seen.timeout_seconds);
                seen.run_seconds.zip(limit).is_some_and(|(run, limit)| run >= limit)
            }
            Self::Executions(ids) => ids.contains(&seen.execution_id),
        }
    }
}

impl Others {
    /// Counts an execution in this state.
    pub fn add(&mut self, state: RunState) {
        match state {
            RunState::Settling => self.settling += 1,
            RunState::Slow => self.slow += 1,
            RunState::Unknown => self.unknown += 1,
            RunState::Running | RunState::Orphan => {}
        }
    }
}

/// The action for an execution. One that is within its own timeout is never terminated, whatever limit was requested.
fn step(seen: &RunningExecution, terminate: bool) -> Step {
    match seen.state {
        RunState::Orphan => Step::Recover,
        RunState::Settling => Step::Leave(Reason::Settling),
        RunState::Unknown => Step::Leave(Reason::Unknown),
        RunState::Running | RunState::Slow if seen.held_by_prepared => Step::Leave(Reason::Prepared),
        RunState::Running => Step::Leave(Reason::InTime),
        RunState::Slow if seen.holder_pid != seen.backend_pid => Step::Leave(Reason::Stranger),
        RunState::Slow => match (seen.holder_pid, seen.holder_start) {
            (_, Some(start)) if Some(start) != seen.backend_start => Step::Leave(Reason::Stranger),
            _ if !terminate => Step::Leave(Reason::Held),
            (Some(pid), Some(start)) => Step::Terminate { pid, start },
            _ => Step::Leave(Reason::Hidden),
        },
    }
}

fn ended(row: &Planned) -> Option<Session> {
    match row.step {
        Step::Terminate { pid, start } => Some((pid, start)),
        Step::Recover | Step::Leave(_) => None,
    }
}

/// Adds to each row the other executions of its session from `running`, which contains all executions, requested or not.
fn fill(rows: &mut [Planned], running: &[RunningExecution]) {
    let sessions: Vec<Session> = rows.iter().filter_map(ended).collect();
    for row in &mut *rows {
        if !row.acts() && running::holder(&row.seen).is_some_and(|session| sessions.contains(&session)) {
            row.step = Step::Leave(Reason::SessionEnds);
        }
    }
    if sessions.is_empty() {
        return;
    }
    let asked: Vec<i64> = rows.iter().filter(|row| row.acts()).map(|row| row.seen.execution_id).collect();
    let others: Vec<(Session, AlsoEnded)> = running
        .iter()
        .filter(|seen| !asked.contains(&seen.execution_id))
        .filter_map(|seen| Some((running::holder(seen)?, running::also(seen))))
        .collect();
    for row in rows {
        let Some(session) = ended(row) else { continue };
        let same = others.iter().filter(|(other, _)| *other == session);
        row.also_ended = same.map(|(_, also)| also.clone()).collect();
    }
}

impl Planned {
    /// Whether the execution is closed, with or without terminating a session for it.
    #[must_use]
    pub fn acts(&self) -> bool {
        !matches!(self.step, Step::Leave(_))
    }

    /// A description of the action and its consequence; or why there is none.
    #[must_use]
    pub fn effect(&self, grace: f64) -> String {
        if let Some(effect) = &self.foreign_effect {
            return effect.clone();
        }
        match self.step {
            Step::Leave(reason) => self.left_alone(reason, grace),
            Step::Recover => self.consequence(),
            Step::Terminate { pid, .. } => {
                format!("the worker's session {pid} will be terminated; {}", self.consequence())
            }
        }
    }

    /// The consequence for the task when its execution fails.
    fn consequence(&self) -> String {
        let RunningExecution { attempt, max_attempts, .. } = self.seen;
        let mut text = if self.seen.gives_up() {
            let next =
                if self.seen.is_scheduled { "it runs next by its schedule" } else { "it is not run again" };
            format!("failed for good after attempt {attempt} of {max_attempts}; {next}")
        } else {
            let pause = match self.seen.retry_seconds {
                Some(seconds) if seconds > 0.0 => format!("in {}", duration(seconds)),
                _ => "at once".to_owned(),
            };
            format!("due again {pause}; attempt {attempt} of {max_attempts} failed")
        };
        if !self.seen.is_enabled {
            text.push_str("; the task is disabled");
        }
        text
    }

    fn left_alone(&self, reason: Reason, grace: f64) -> String {
        let pid = self.seen.holder_pid.map_or_else(|| "a session".to_owned(), |pid| format!("pid {pid}"));
        match reason {
            Reason::Unknown => {
                "skipped: its lock_id is not the key of its task, so not known whether it is running"
                    .to_owned()
            }
            Reason::Settling => {
                let grace = duration(grace);
                format!(
                    "skipped: its key is free, but its last heartbeat, or the server's start, is less than {grace} ago"
                )
            }
            Reason::InTime => format!("skipped: {pid} runs it, within its own timeout"),
            Reason::Held => format!("skipped: {pid} holds its key (--terminate terminates that session)"),
            Reason::Prepared => "skipped: a prepared transaction holds its key".to_owned(),
            Reason::Stranger => {
                format!("skipped: {pid} holds its key, but is not the session recorded for it")
            }
            Reason::SessionEnds => {
                let cost = running::cost(&self.seen);
                format!("skipped, but its session, {pid}, will be terminated for another execution; {cost}")
            }
            Reason::Hidden => {
                format!("skipped: the start of {pid} is hidden from this role: GRANT pg_read_all_stats")
            }
        }
    }
}
