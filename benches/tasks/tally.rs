//! The results of a round.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use locktop::clock;

use super::Round;

pub(crate) const HEAD: &str = "  at once  work ms  system                completed/s    asked/s     lost/s  lost %    again   overlap  core %  per core s";

/// One execution, by this machine's monotonic clock: from the response that returned the task until just before it is
/// completed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) task: i32,
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    /// Whether its completion was recorded.
    pub(crate) counted: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    runs: Vec<Run>,
    asked: usize,
    lost: usize,
    /// When the measurement began, and the number of runs before it.
    began: Option<(Instant, usize)>,
    /// After the end only runs are added.
    ended: Option<Figures>,
}

#[derive(Debug, Clone, Copy)]
struct Figures {
    seconds: f64,
    /// CPU time of the server.
    cpu: f64,
    /// Completed tasks; each counts once.
    completed: usize,
}

impl Tally {
    /// Counts a request for a task; some tasks are always due.
    pub(crate) fn asked(&mut self, is_lost: bool) {
        if self.ended.is_none() {
            self.asked += 1;
            self.lost += usize::from(is_lost);
        }
    }

    pub(crate) fn ran(&mut self, run: Run) {
        self.runs.push(run);
    }

    /// Number of runs that have finished.
    pub(crate) fn finished(&self) -> usize {
        self.runs.len()
    }

    /// The warm-up is over.
    pub(crate) fn begin(&mut self) {
        self.began = Some((clock::monotonic(), self.runs.len()));
        (self.asked, self.lost) = (0, 0);
    }

    /// Ends the measurement; later runs only count for tasks that ran twice.
    pub(crate) fn end(&mut self, cpu: f64) {
        let (from, first) = self.began.unwrap();
        let mut seen: HashSet<i32> = self.runs[..first].iter().map(|run| run.task).collect();
        let completed = self.runs[first..].iter().filter(|run| run.counted && seen.insert(run.task)).count();
        self.ended = Some(Figures { seconds: from.elapsed().as_secs_f64(), cpu, completed });
    }

    pub(crate) fn completed_a_second(&self) -> f64 {
        let figures = self.ended.unwrap();
        number(figures.completed) / figures.seconds
    }

    /// The number of runs of a task that had already run, although each was due once; and how many of them began before
    /// the previous run of the task had ended.
    fn twice(&self) -> (usize, usize) {
        let mut of_task: HashMap<i32, Vec<Run>> = HashMap::new();
        for run in &self.runs {
            of_task.entry(run.task).or_default().push(*run);
        }
        let mut overlapping = 0;
        for runs in of_task.values_mut() {
            runs.sort_by_key(|run| run.started);
            overlapping += runs.windows(2).filter(|pair| pair[1].started < pair[0].ended).count();
        }
        (self.runs.len() - of_task.len(), overlapping)
    }

    pub(crate) fn line(&self, system: &str, round: Round) -> String {
        let figures = self.ended.unwrap();
        let (again, overlapping) = self.twice();
        format!(
            "{:>9}{:>9}  {system:<22}{:>11.1}{:>11.0}{:>11.0}{:>8.1}{again:>9}{overlapping:>10}{:>8.0}{:>12.0}",
            round.batch,
            round.work.as_millis(),
            self.completed_a_second(),
            number(self.asked) / figures.seconds,
            number(self.lost) / figures.seconds,
            number(self.lost) / number(self.asked) * 100.0,
            figures.cpu / figures.seconds * 100.0,
            number(figures.completed) / figures.cpu,
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn number(count: usize) -> f64 {
    count as f64
}
