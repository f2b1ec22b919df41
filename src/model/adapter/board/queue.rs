use std::collections::BTreeMap;

use super::{BoardBuilder, WorkerRow};
use crate::model::adapter::{COUNTED, Job, Part};
use crate::model::systems::TextId;
use crate::model::{Text, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub struct QueueRow {
    pub id: TextId,
    pub source: Text,
    pub place: usize,
    /// None: all queues of the installation.
    pub queue: Option<Text>,
    pub state: QueueState,
    /// Jobs by the word for their state (`due`, `running`, …).
    pub counts: BTreeMap<Text, Count>,
    /// Since when the oldest job could have been started.
    pub oldest_at: Option<Timestamp>,
    /// None if it is not paused, or its system does not record the time.
    pub paused_at: Option<Timestamp>,
}

words! {
    /// The state of a queue, worst first.
    pub enum QueueState {
        /// Jobs are due, and no worker of this installation is alive, or none is connected.
        Unserved,
        /// A job has been due for longer than `[thresholds] task_overdue`.
        Overdue,
        Paused,
        Open,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    pub number: u64,
    /// A lower bound: counting stops at a limit.
    pub is_least: bool,
    /// An estimate from the planner's statistics.
    pub is_estimate: bool,
}

impl BoardBuilder<'_> {
    /// Its queues by name, after a row for all of them if something was read for all.
    pub(super) fn queues(&self, place: usize, workers: &[WorkerRow]) -> Vec<QueueRow> {
        let rows = self.rows;
        let mut queues: BTreeMap<Option<Text>, QueueRow> = BTreeMap::new();
        let counted = rows.counted();
        for depth in rows.depth.last_rows().iter() {
            let row = self.queue_of(&mut queues, place, depth.queue.as_ref());
            let is_least = !depth.is_estimate && counted.get(&*depth.state).is_some_and(|all| *all > COUNTED);
            let number = if depth.is_estimate { depth.number } else { depth.number.min(COUNTED) };
            row.counts
                .insert(depth.state.clone(), Count { number, is_least, is_estimate: depth.is_estimate });
            row.oldest_at = earliest(row.oldest_at, depth.oldest_at);
        }
        let runs = rows.runs();
        // If due jobs are counted for all queues together, the oldest job is that of all.
        let is_due_of_all = queues.get(&None).is_some_and(|row| row.counts.contains_key("due"));
        for (part, word) in [(Part::Running, "running"), (Part::Due, "due")] {
            let Some(read) = rows.jobs.get(&part) else { continue };
            let is_twice = |job: &&Job| part != Part::Running && runs.contains(&job.id);
            // In the part `due`, a job to be retried counts as due.
            let is_so = |job: &&Job| *job.state == *word || part == Part::Due && &*job.state == "retry";
            let mut listed: BTreeMap<Option<&Text>, u64> = BTreeMap::new();
            for job in read.last_rows().iter().filter(|job| is_so(job) && !is_twice(job)) {
                let row = self.queue_of(&mut queues, place, job.queue.as_ref());
                if part == Part::Due {
                    row.oldest_at = earliest(row.oldest_at, job.due_at);
                    if is_due_of_all && job.queue.is_some() {
                        let all = self.queue_of(&mut queues, place, None);
                        all.oldest_at = earliest(all.oldest_at, job.due_at);
                    }
                }
                *listed.entry(job.queue.as_ref()).or_default() += 1;
            }
            for (queue, number) in listed.into_iter().filter(|_| !counted.contains_key(word)) {
                let row = self.queue_of(&mut queues, place, queue);
                // An estimate includes the listed jobs. A query of due jobs may return only the first few.
                if row.counts.get(word).is_none_or(|estimate| estimate.number < number) {
                    let is_least = read.is_cut || part == Part::Due;
                    row.counts.insert(word.into(), Count { number, is_least, is_estimate: false });
                }
            }
        }
        for paused in rows.paused.last_rows().iter() {
            let row = self.queue_of(&mut queues, place, Some(&paused.queue));
            (row.state, row.paused_at) = (QueueState::Paused, paused.since);
        }
        let evidence = &rows.installation.adapter.evidence;
        let is_away = evidence.has_presence && rows.sessions == Some(0);
        let unserved_after = if workers.is_empty() {
            // Workers may be about to start.
            let is_nobody = (evidence.lists_workers && self.has_workers()) || is_away;
            is_nobody.then_some(self.thresholds.task_overdue)
        } else {
            (self.has_workers() && workers.iter().all(|worker| worker.state.is_over())).then_some(0.0)
        };
        let mut queues: Vec<QueueRow> = queues.into_values().collect();
        for row in &mut queues {
            row.state = self.queue_state(row, unserved_after);
        }
        queues
    }

    fn queue_state(&self, row: &QueueRow, unserved_after: Option<f64>) -> QueueState {
        let waits = row.oldest_at.map(|oldest| (self.snapshot.taken_at - oldest).as_seconds_f64());
        let has_due = row.counts.get("due").is_some_and(|count| count.number > 0);
        if row.state == QueueState::Paused {
            QueueState::Paused
        } else if has_due
            && unserved_after.is_some_and(|after| after == 0.0 || waits.is_some_and(|waits| waits > after))
        {
            QueueState::Unserved
        } else if waits.is_some_and(|waits| waits > self.thresholds.task_overdue) {
            QueueState::Overdue
        } else {
            QueueState::Open
        }
    }

    fn queue_of<'a>(
        &self,
        queues: &'a mut BTreeMap<Option<Text>, QueueRow>,
        place: usize,
        queue: Option<&Text>,
    ) -> &'a mut QueueRow {
        queues.entry(queue.cloned()).or_insert_with(|| {
            // A queue may have any name, also an empty one.
            let name = queue.map_or_else(|| "queues".to_owned(), |queue| format!("queue {queue}"));
            QueueRow {
                id: self.id(&name),
                source: self.source.clone(),
                place,
                queue: queue.cloned(),
                state: QueueState::Open,
                counts: BTreeMap::new(),
                oldest_at: None,
                paused_at: None,
            }
        })
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
