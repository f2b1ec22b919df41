use std::cell::Cell;
use std::io::{self, IsTerminal, Write};

use super::super::args::SnapshotFormat;
use super::super::password as confirm;
use super::super::settings::CliSettings;
use super::{Failure, configured, open_any, status_line};
use crate::action::Actor;
use crate::action::audit::{AuditError, AuditLog};
use crate::action::recover::execute_recorded;
use crate::cli::schema::{RecoverArgs, TimeLimit};
use crate::model::plan::{
    PlanContext, PublishedTarget, RecoveryPlan, RecoveryResult, Request, Selection, published_plan,
};
use crate::output;
use crate::schema::Schema;
use crate::text::{self, one_line};
use locktop_tasks::recovery::{self, RecoverError, RecoveryOrder};
use pg_connect::conninfo::ConnInfo;

pub(super) async fn run(settings: CliSettings, arguments: &RecoverArgs) -> Result<u8, Failure> {
    if !arguments.dry_run {
        let dry = "--dry-run to see what it would do";
        let (writes, instead) = (format!("a recovery writes: use {dry}"), format!("--yes, or {dry}"));
        super::may_write(&settings, arguments.yes, ["recover", &writes, &instead])?;
    }
    let (connection, info) = open_any(&settings).await?;
    let client = &connection.client;
    let trusted_owners = settings.trusted_owners.clone();
    let schema = Schema { name: arguments.schema.clone(), trusted_owners: trusted_owners.clone() };
    let (plan, targets) = match recovery::plan(client, schema.clone(), &request(arguments)).await {
        Err(RecoverError::Foreign { printed, .. })
            if printed.contains(&arguments.schema.as_str().to_owned()) =>
        {
            published(&settings, info.clone(), arguments).await?
        }
        plan => (plan?, Vec::new()),
    };
    let output = RecoveryOutput { settings: &settings, arguments, plan: &plan, broken: Cell::new(None) };
    output.plan();
    if arguments.dry_run || plan.rows.is_empty() {
        return output.end(&[], 0);
    }
    let actor = Actor::of_process("locktop recover", info.user());
    let log = configured::audit_log(&info, actor.clone(), trusted_owners);
    if plan.acts().count() > 0 {
        open_record(&log).await?;
        if !arguments.yes && !output.is_confirmed()? {
            status_line("nothing was changed");
            return output.end(&[], 1);
        }
    }
    let order = RecoveryOrder { actor, reason: arguments.reason.clone(), wait: arguments.wait };
    let report = |result: &RecoveryResult| output.result(result);
    let results = execute_recorded(client, schema, (&plan, &targets), &order, &log, report).await;
    let all = results.iter().all(|result| result.outcome.is_settled());
    output.end(&results, u8::from(!all))
}

/// The plan for published tables, made from a snapshot as the screens show it.
async fn published(
    settings: &CliSettings,
    info: ConnInfo,
    arguments: &RecoverArgs,
) -> Result<(RecoveryPlan, Vec<PublishedTarget>), Failure> {
    let mut settings = settings.clone();
    for table in ["scheduled_tasks", "task_execution_log"] {
        let place = format!("{}.{table}", arguments.schema.quoted());
        settings.config.tables.insert(table, place);
    }
    let view = super::snapshot::take(&settings, info).await?;
    let plan_context = PlanContext { view: &view, rights: None, own_pids: &[], terminated: &[] };
    let grace = settings.config.thresholds.orphan_grace;
    let plan = published_plan(&plan_context, arguments.schema.as_str(), &request(arguments), grace);
    plan.ok_or_else(|| {
        Failure::Other(format!("the task tables of the schema {} cannot be read", arguments.schema.quoted()))
    })
}

/// Fails unless the audit log can be written. Also reports actions of earlier commands without a recorded result.
async fn open_record(log: &AuditLog) -> Result<(), Failure> {
    let failure =
        |error: AuditError| Failure::Other(format!("{}; nothing was changed", one_line(&error.to_string())));
    log.ready().await.map_err(failure)?;
    for lost in log.unfinished().await.map_err(failure)? {
        let at = lost.at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        status_line(&format!("{} {}, asked for at {at}: the result is not known", lost.verb, lost.name));
    }
    Ok(())
}

fn request(arguments: &RecoverArgs) -> Request {
    let select = match arguments.timeout {
        None => Selection::Orphans,
        Some(TimeLimit::Own) => Selection::Longer(None),
        Some(TimeLimit::Longer(limit)) => Selection::Longer(Some(limit.as_secs_f64())),
    };
    Request { select, task: arguments.task.clone(), terminate: arguments.terminate }
}

/// Prints plan and results. A write error does not stop an action that has started, and the exit status stays that of the
/// action if the reader has closed the pipe.
struct RecoveryOutput<'a> {
    settings: &'a CliSettings,
    arguments: &'a RecoverArgs,
    plan: &'a RecoveryPlan,
    broken: Cell<Option<io::Error>>,
}

impl RecoveryOutput<'_> {
    fn is_table(&self) -> bool {
        self.arguments.format == SnapshotFormat::Table
    }

    fn plan(&self) {
        if self.is_table() {
            self.print(&output::table::recovery_plan(self.plan));
        }
    }

    fn result(&self, result: &RecoveryResult) {
        if self.is_table() {
            self.print(&[output::table::recovery_result(self.plan, result)]);
        }
    }

    /// Prints the last line of a table, or the whole JSON object. Returns the exit status.
    fn end(&self, results: &[RecoveryResult], status: u8) -> Result<u8, Failure> {
        if !self.is_table() {
            let json = output::json::recovery(self.plan, results, self.arguments.dry_run);
            self.print(&[json?]);
        } else if !results.is_empty() {
            self.print(&[output::table::recovery_summary(results)]);
        }
        match self.broken.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(status),
        }
    }

    fn print(&self, lines: &[String]) {
        if let Err(error) = self.write(lines) {
            self.broken.set(Some(error));
        }
    }

    fn write(&self, lines: &[String]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let ascii = self.is_table() && io::stdout().is_terminal() && self.is_ascii();
        for line in lines {
            if ascii { writeln!(out, "{}", text::ascii(line))? } else { writeln!(out, "{line}")? }
        }
        out.flush()
    }

    fn is_ascii(&self) -> bool {
        configured::is_ascii(self.settings)
    }

    /// Asks on the terminal, and shows the plan there if standard output is not a terminal.
    fn is_confirmed(&self) -> io::Result<bool> {
        let mut lines = Vec::new();
        if !self.is_table() || !io::stdout().is_terminal() {
            lines = output::table::recovery_plan(self.plan);
        }
        if self.is_ascii() {
            lines = lines.iter().map(|line| text::ascii(line).into_owned()).collect();
        }
        confirm::ask(&lines, &question(self.plan))
    }
}

/// The question. Names every session to be terminated and its other executions.
fn question(plan: &RecoveryPlan) -> String {
    let number = plan.acts().count();
    let executions = if number == 1 { "execution" } else { "executions" };
    let pids = plan.ended_pids();
    let runs = |pid: &i32| match plan.also_ended(*pid) {
        [] => None,
        also => Some(output::table::recovery_names(also)),
    };
    match pids.as_slice() {
        [] => format!("Recover {number} {executions}?"),
        [pid] => {
            let also = runs(pid).map(|names| format!(", which also runs {names}")).unwrap_or_default();
            format!("Terminate session {pid}{also}, and recover {number} {executions}?")
        }
        _ => {
            let also = |pid| runs(pid).map(|names| format!(" (which also runs {names})")).unwrap_or_default();
            let all: Vec<String> = pids.iter().map(|pid| format!("{pid}{}", also(pid))).collect();
            format!(
                "Terminate {} sessions {}, and recover {number} {executions}?",
                pids.len(),
                all.join(", ")
            )
        }
    }
}
