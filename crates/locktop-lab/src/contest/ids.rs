use std::collections::HashSet;
use std::sync::Mutex;

use fastrand::Rng;
use tokio_postgres::{Client, Error};

use super::runner::{Report, Runner, SessionWork};
use super::tally::{ContestOutcome, Tally, count, tally};
use super::{Contest, Environment, Rules, lock};
use crate::DemoError;
use locktop_locks::Error as LockError;
use locktop_tasks::snowflake::{Generator, Snowflake, SnowflakeError};

tally! {
    sessions workers ids duplicates out_of_order of_another_worker errors
}

const SESSIONS: usize = 8;
const WORKERS: u16 = 4;
/// One call in `SEVERAL` asks for several ids, at most `MOST`.
const SEVERAL: u64 = 8;
const MOST: u64 = 200;
/// How many ids are remembered. A duplicate of an older id is out of order, and so is still detected.
const REMEMBERED: usize = 2_000_000;

#[derive(Debug, Default)]
struct IdCounts {
    seen: HashSet<Snowflake>,
    /// The highest id of each worker that a session has received.
    highest: [Option<Snowflake>; WORKERS as usize],
    numbers: Numbers,
}

impl IdCounts {
    fn highest(&self, index: usize) -> Option<Snowflake> {
        self.highest.get(index).copied().flatten()
    }

    /// `before` is the worker's highest id when these were requested: each is above it, and above the one before.
    fn note(&mut self, index: usize, before: Option<Snowflake>, ids: &[Snowflake], worker: u16) {
        let mut last = before;
        for id in ids {
            self.numbers.ids += 1;
            self.numbers.duplicates += u64::from(!self.seen.insert(*id));
            self.numbers.out_of_order += u64::from(Some(*id) <= last);
            self.numbers.of_another_worker += u64::from(id.worker() != worker);
            last = Some(*id);
        }
        if let Some(highest) = self.highest.get_mut(index) {
            *highest = (*highest).max(last);
        }
        if self.seen.len() > REMEMBERED {
            self.seen.clear();
        }
    }
}

#[derive(Debug)]
struct Ids {
    generators: Vec<Generator>,
    counts: Mutex<IdCounts>,
}

pub(super) async fn begin(environment: &Environment, client: &Client) -> Result<Runner, DemoError> {
    let refused = |error: SnowflakeError| {
        DemoError::Other(format!("the server refuses a request of the demo (id generators): {error}"))
    };
    let mut generators = Vec::new();
    for worker in 1..=WORKERS {
        let mut generator = Generator::new(worker).map_err(refused)?;
        generator.schema = environment.schema.clone();
        generator.register(client).await.map_err(refused)?;
        generators.push(generator);
    }
    Ok(Runner::sessions(environment, Ids { generators, counts: Mutex::default() }, SESSIONS))
}

impl SessionWork for Ids {
    const NAME: &'static str = "ids";
    const LONGEST: u64 = 40;

    async fn attempt(&self, session: usize, client: &Client, random: &mut Rng) -> Result<(), LockError> {
        let index = session % usize::from(WORKERS);
        let Some(generator) = self.generators.get(index) else { return Ok(()) };
        let before = lock(&self.counts).highest(index);
        let ids = if random.u64(..SEVERAL) == 0 {
            let count = u16::try_from(1 + random.u64(..MOST)).unwrap_or(1);
            generator.many(client, count).await
        } else {
            generator.next(client).await.map(|id| vec![id])
        };
        lock(&self.counts).note(index, before, &ids.map_err(failed)?, generator.worker());
        Ok(())
    }
}

impl Rules for Ids {
    async fn count(&self, _: &Client, report: &Report) -> Result<ContestOutcome, Error> {
        let (sessions, workers) = (count(SESSIONS), u64::from(WORKERS));
        let mut found = Numbers { sessions, workers, ..lock(&self.counts).numbers };
        found.extend(report.numbers(&KEYS));
        Ok(ContestOutcome::new(found.tally(Contest::Ids.as_str()))
            .zero(&[
                ("duplicates", "ids that existed before"),
                ("out_of_order", "ids that are not above the previous ones of their worker"),
                ("of_another_worker", "ids of another worker"),
            ])
            .some("ids", "no id was generated", report.first_error.as_deref()))
    }
}

fn failed(error: SnowflakeError) -> LockError {
    match error {
        SnowflakeError::Call(error) => error,
        other => LockError::Answer { what: "generate_snowflake_id".to_owned(), reason: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_and_out_of_order_ids_are_counted() {
        let id = |time: i64, worker: i64| Snowflake(time << 22 | worker << 12);
        let mut counts = IdCounts::default();
        counts.note(0, None, &[id(5, 1), id(6, 1)], 1);
        assert_eq!(counts.highest(0), Some(id(6, 1)));
        // Requested before the others arrived: another session may have been faster.
        counts.note(0, None, &[id(4, 1)], 1);
        let Numbers { ids, duplicates, out_of_order, of_another_worker, .. } = counts.numbers;
        assert_eq!((ids, duplicates, out_of_order, of_another_worker), (3, 0, 0, 0));
        assert_eq!(counts.highest(0), Some(id(6, 1)));
        counts.note(0, counts.highest(0), &[id(6, 1), id(3, 1), id(7, 2)], 1);
        let Numbers { duplicates, out_of_order, of_another_worker, .. } = counts.numbers;
        assert_eq!((duplicates, out_of_order, of_another_worker), (1, 2, 1));
    }
}
