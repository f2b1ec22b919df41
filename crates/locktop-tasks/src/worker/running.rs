use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{Id, JoinError, JoinSet};

use super::event::{JobEvent, Report};
use super::stop::{LockConfirmation, Stop, StopReason, StopSender, gate};
use super::stop::{Work, WorkError};
use crate::work_session::{Job, Ours, Source};
use locktop_base::clock;

/// How long work that was told to stop may take; then it is dropped.
const TIMEOUT: Duration = Duration::from_secs(5);

/// All jobs of a worker, each in a task of the async runtime.
#[derive(Debug)]
pub(super) struct RunningJobs<W> {
    work: Arc<W>,
    places: usize,
    set: JoinSet<Result<(), WorkError>>,
    running: HashMap<Id, RunningJob>,
    report: Report,
}

#[derive(Debug)]
struct RunningJob {
    job: Job,
    stop_sender: StopSender,
    began: Instant,
}

#[derive(Debug)]
pub(super) struct Done {
    pub(super) job: Job,
    pub(super) outcome: Result<(), WorkError>,
    /// Why the worker told it to stop, if it did.
    pub(super) stop_reason: Option<StopReason>,
    pub(super) took: Duration,
}

impl<W: Work> RunningJobs<W> {
    pub(super) fn new(work: W, places: usize, report: Report) -> Self {
        Self { work: Arc::new(work), places, set: JoinSet::new(), running: HashMap::new(), report }
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn free(&self) -> usize {
        self.places.saturating_sub(self.running.len())
    }

    pub(super) fn tasks(&self) -> Vec<i32> {
        let tasks = self.running.values().filter(|running| running.job.source == Source::Tasks);
        tasks.filter_map(|running| i32::try_from(running.job.task_id).ok()).collect()
    }

    /// Whether work that was told to stop, and no longer belongs to this session, is still running. Its task may be due,
    /// and must not run twice at the same time.
    pub(super) fn is_losing(&self) -> bool {
        self.running.values().any(|running| running.stop_sender.reason() == Some(StopReason::NotOurs))
    }

    pub(super) fn start(&mut self, job: Job, hold: &LockConfirmation) {
        let (teller, stop) = Stop::new(hold);
        self.report.send_of(&job, JobEvent::Began);
        let (work, own) = (Arc::clone(&self.work), job.clone());
        let task = self.set.spawn(async move {
            let over = async {
                let reason = stop.stopped().await;
                tokio::time::sleep(TIMEOUT).await;
                reason
            };
            tokio::select! {
                biased;
                outcome = gate(work.run(&own, stop.clone()), &stop) => outcome,
                reason = over => Err(WorkError::Stopped(reason)),
            }
        });
        self.running.insert(task.id(), RunningJob { job, stop_sender: teller, began: clock::monotonic() });
    }

    /// The next job that ends; pending while nothing runs.
    pub(super) async fn next(&mut self) -> Done {
        loop {
            let Some(joined) = self.set.join_next_with_id().await else { std::future::pending().await };
            let (id, outcome) = match joined {
                Ok(done) => done,
                Err(error) => (error.id(), Err(WorkError::Failed(panicked(error)))),
            };
            if let Some(RunningJob { job, stop_sender: teller, began }) = self.running.remove(&id) {
                return Done { job, outcome, stop_reason: teller.reason(), took: began.elapsed() };
            }
        }
    }

    pub(super) fn has(&self, source: Source) -> bool {
        self.running.values().any(|running| running.job.source == source)
    }

    /// Tells all jobs of that source to stop that are not in `ours`.
    pub(super) fn keep(&self, source: Source, ours: &[Ours]) {
        let lost = |job: &Job| job.source == source && !ours.iter().any(|ours| ours.is(job));
        for running in self.running.values().filter(|running| lost(&running.job)) {
            self.request_stop(running, StopReason::NotOurs);
        }
    }

    pub(super) fn stop_all(&self, reason: &StopReason) {
        for running in self.running.values() {
            self.request_stop(running, reason.clone());
        }
    }

    fn request_stop(&self, running: &RunningJob, reason: StopReason) {
        if running.stop_sender.request(reason.clone()) {
            let took = running.began.elapsed();
            self.report.send_of(&running.job, JobEvent::Stopped { took, reason });
        }
    }
}

fn panicked(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "the work was aborted".to_owned() };
    let said = panic.downcast_ref::<&str>().map(ToString::to_string);
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the work panicked: {}", said.unwrap_or_default())
}
