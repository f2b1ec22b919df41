//! Reading the numbers.

use tokio_postgres::Client;

use super::ground::Ground;
use super::summary::Summary;
use super::witness::{Evidence, Stop, Verdict};

/// What the log, the audit and the witnesses say, into a summary.
pub(super) async fn count(
    client: &Client,
    ground: &Ground,
    stops: &[Stop],
    summary: &mut Summary,
) -> Result<Verdict, tokio_postgres::Error> {
    let schema = ground.schema.quoted();
    let closed =
        if ground.recipe { "error_message LIKE 'Task timeout%'" } else { "recovered_by IS NOT NULL" };
    let log = format!(
        "SELECT count(*), count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed'),
                count(*) FILTER (WHERE status = 'running'), count(*) FILTER (WHERE {closed})
           FROM {schema}.task_execution_log"
    );
    let row = client.query_one(&log, &[]).await?;
    let number =
        |index: usize| row.try_get::<_, i64>(index).map(|count| u64::try_from(count).unwrap_or_default());
    summary.executions = number(0)?;
    summary.completed = number(1)?;
    summary.failed = number(2)?;
    summary.running = number(3)?;
    summary.recovered = number(4)?;
    if !ground.recipe {
        let audit = format!(
            "SELECT count(*) FILTER (WHERE times > 1), count(*) FILTER (WHERE superseded)
               FROM (SELECT count(*) AS times, bool_or(action = 'superseded') AS superseded
                       FROM {schema}.locktop_audit
                      WHERE action IN ('recovered', 'gave_up', 'superseded') AND execution_id IS NOT NULL
                      GROUP BY execution_id) q"
        );
        let row = client.query_one(&audit, &[]).await?;
        summary.recovered_twice = u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or_default();
        summary.superseded = u64::try_from(row.try_get::<_, i64>(1)?).unwrap_or_default();
    }
    let verdict = Evidence::read(client).await?.weigh(stops);
    summary.runs = verdict.runs;
    summary.double_runs = verdict.double_runs;
    summary.woken_runs = verdict.woken_runs;
    summary.finishes_refused = verdict.finishes_refused;
    summary.finishes_accepted = verdict.finishes_accepted;
    Ok(verdict)
}
