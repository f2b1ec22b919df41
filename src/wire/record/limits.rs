use std::time::Duration;

use super::columns::flat_rows;
use crate::model::Text;
use crate::model::expected::ExpectedBlocker;
use crate::model::thresholds::Thresholds;
use crate::text::{one_line, one_line_prefix};

impl Limit {
    fn number(name: &str, number: f64) -> Self {
        Self { name: Some(name.into()), number, ..Self::default() }
    }

    /// The number of an expected blocker is the longest wait behind it, in seconds; 0 for none.
    fn expected(entry: &ExpectedBlocker) -> Self {
        let ExpectedBlocker { application, user, database, lock, statement, longest_wait, reason } =
            entry.clone();
        let number = longest_wait.map_or(0.0, |longest| longest.as_secs_f64());
        Self { name: None, number, application, user, database, lock, reason, statement }
    }

    fn blocker(&self) -> ExpectedBlocker {
        let longest = Duration::try_from_secs_f64(self.number).ok();
        ExpectedBlocker {
            application: self.application.clone(),
            user: self.user.clone(),
            database: self.database.clone(),
            lock: self.lock.clone(),
            statement: self.statement.clone(),
            longest_wait: longest.filter(|longest| !longest.is_zero()),
            reason: self.reason.as_ref().map(|reason| {
                if reason.len() > REASON { one_line_prefix(reason, REASON) } else { one_line(reason) }.into()
            }),
        }
    }
}

pub(super) fn of_expected(expected: &[ExpectedBlocker]) -> Vec<Limit> {
    expected.iter().map(Limit::expected).collect()
}

/// Maximum number of entries, and bytes of a reason. No config exceeds them, but a file can contain anything.
const EXPECTED: usize = 1000;
const REASON: usize = 4000;

pub(super) fn expected(rows: &[Limit]) -> Vec<ExpectedBlocker> {
    rows.iter().take(EXPECTED).map(Limit::blocker).collect()
}

macro_rules! limits {
    ($($name:literal $field:ident,)*) => {
        /// The limits, and behind them the blockers that are expected.
        pub(super) fn of_thresholds(thresholds: &Thresholds) -> Vec<Limit> {
            let mut rows = vec![
                $(Limit::number($name, thresholds.$field),)*
                Limit::number("blocked", thresholds.blocked.into()),
                Limit::number("convoy", thresholds.convoy.into()),
                Limit::number("pile_up", thresholds.pile_up.into()),
            ];
            rows.extend(of_expected(&thresholds.expected));
            rows
        }

        /// Those that were kept; one that is not known here is left out.
        pub(super) fn thresholds(rows: &[Limit]) -> Thresholds {
            let mut thresholds = Thresholds::default();
            for row in rows {
                match row.name.as_deref() {
                    $(Some($name) => thresholds.$field = row.number,)*
                    Some("blocked") => thresholds.blocked = count(row.number),
                    Some("convoy") => thresholds.convoy = count(row.number),
                    Some("pile_up") => thresholds.pile_up = count(row.number),
                    Some(_) => {}
                    None if thresholds.expected.len() < EXPECTED => thresholds.expected.push(row.blocker()),
                    None => {}
                }
            }
            thresholds
        }
    };
}

limits! {
    "wait" wait,
    "idle_in_transaction" idle_in_transaction,
    "connections" connections,
    "idle_lock" idle_lock,
    "task_timeout" task_timeout,
    "orphan_grace" orphan_grace,
    "task_overdue" task_overdue,
    "queue_pending" queue_pending,
    "id_ahead" id_ahead,
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn count(number: f64) -> u32 {
    number as u32
}

flat_rows! {
    /// A limit of the findings by its name in the config, or a blocker that is expected.
    LimitRows of #[derive(Default)] Limit {
        1 name: Option<Text>,
        2 number: f64,
        3 application: Option<Text>,
        4 user: Option<Text>,
        5 database: Option<Text>,
        6 lock: Option<Text>,
        7 reason: Option<Text>,
        8 statement: Option<Text>,
    }
}
