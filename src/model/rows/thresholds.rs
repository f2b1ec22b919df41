use std::fmt::Write;
use std::time::Duration;

use crate::model::Text;
use crate::model::backend::Backend;
use crate::model::lock::Prepared;
use crate::text;

/// A limit, as the config and recordings have it.
#[derive(Debug)]
pub enum Limit<'a> {
    Seconds(&'a mut f64),
    /// From 1.
    Count(&'a mut u32),
    /// From 0 to 1.
    Share(&'a mut f64),
}

/// Declares each limit of `[thresholds]` with its kind and its default.
macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $kind:ident($type:ty) = $default:literal,)*) => {
        /// Limits for [`crate::model::finding`], from the config's `[thresholds]`. Durations are in seconds.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Thresholds {
            $($(#[$doc])* pub $name: $type,)*
            /// Expected blockers, from `[[expected]]`.
            pub expected: Vec<ExpectedBlocker>,
        }

        impl Default for Thresholds {
            fn default() -> Self {
                Self { $($name: $default,)* expected: Vec::new() }
            }
        }

        impl Thresholds {
            /// The limits by their names.
            pub fn limits(&mut self) -> Vec<(&'static str, Limit<'_>)> {
                vec![$((stringify!($name), Limit::$kind(&mut self.$name)),)*]
            }
        }
    };
}

limits! {
    /// A wait longer than this is a finding.
    wait: Seconds(f64) = 30.0,
    /// A root that is idle in transaction for longer than this is critical at once.
    idle_in_transaction: Seconds(f64) = 60.0,
    /// Share of `max_connections` in use.
    connections: Share(f64) = 0.9,
    /// An idle session that holds a session-level lock for longer than this is a finding.
    idle_lock: Seconds(f64) = 600.0,
    /// A task without a limit of its own is slow when it runs for longer than this.
    task_timeout: Seconds(f64) = 1800.0,
    /// A task that runs in the log while its key is free is an orphan after this long.
    orphan_grace: Seconds(f64) = 30.0,
    /// A task that has been due for longer than this, and was not started, is overdue.
    task_overdue: Seconds(f64) = 60.0,
    /// A queue item that no worker has taken for longer than this is a finding.
    queue_pending: Seconds(f64) = 600.0,
    /// An id generator further ahead of the server's clock than this is a finding.
    id_ahead: Seconds(f64) = 1.0,
    /// A root that blocks at least this many is critical.
    blocked: Count(u32) = 10,
    /// A convoy has at least this many waiters behind one request that itself waits.
    convoy: Count(u32) = 5,
    /// A pile-up has at least this many backends waiting on one LWLock, SyncRep or IO event.
    pile_up: Count(u32) = 10,
}

/// An entry of the config's `[[expected]]`: a blocker that meets all its conditions is not a problem. An entry without
/// conditions matches nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExpectedBlocker {
    /// `pg_stat_activity.application_name`, in full. None: any.
    pub application: Option<Text>,
    /// The role of the session (`usename`), or the owner of a prepared transaction. None: any.
    pub user: Option<Text>,
    pub database: Option<Text>,
    /// The only lock that others wait for behind it: the name of an advisory lock, or a relation.
    pub lock: Option<Text>,
    /// A part of its current or last statement; the case of ASCII letters is ignored.
    pub statement: Option<Text>,
    /// The maximum duration of the waits behind it; not a condition on its own.
    pub longest_wait: Option<Duration>,
    /// Why it may block, in the operator's words: findings and screens show it after `expected`.
    pub reason: Option<Text>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Blocker<'a> {
    /// `application_name`. None for a prepared transaction.
    pub application: Option<&'a str>,
    /// `usename` of a session, the owner of a prepared transaction. None if the server does not report it.
    pub user: Option<&'a str>,
    /// None for a session without a database.
    pub database: Option<&'a str>,
    /// The current or last statement. None for a prepared transaction, and if hidden from the role.
    pub statement: Option<&'a str>,
    /// Seconds that others have waited behind it.
    pub waited: f64,
}

impl<'a> Blocker<'a> {
    /// The facts of a session, with a wait of 0 s: the caller fills in how long others have waited.
    pub fn of(backend: &'a Backend) -> Self {
        Self {
            application: backend.application.as_deref(),
            user: backend.user.as_deref(),
            database: backend.database.as_deref(),
            statement: backend.query.as_ref().map(|query| &**query.unredacted()),
            waited: 0.0,
        }
    }

    pub fn of_prepared(row: &'a Prepared) -> Self {
        Self { user: row.owner.as_deref(), database: row.database.as_deref(), ..Self::default() }
    }
}

impl ExpectedBlocker {
    /// Whether a blocker meets the conditions; `holds` returns whether a lock of that name is the only one that others wait
    /// for.
    pub fn is_met(&self, blocker: Blocker<'_>, holds: impl FnOnce(&str) -> bool) -> bool {
        let conditions = [
            (&self.application, blocker.application),
            (&self.user, blocker.user),
            (&self.database, blocker.database),
        ];
        let runs = |part: &str| blocker.statement.is_some_and(|statement| contains(statement, part));
        self.has_condition()
            && conditions.iter().all(|(wanted, found)| wanted.is_none() || wanted.as_deref() == *found)
            && self.longest_wait.is_none_or(|longest| blocker.waited <= longest.as_secs_f64())
            && self.statement.as_deref().is_none_or(runs)
            && self.lock.as_deref().is_none_or(holds)
    }

    /// `longest_wait` alone is not a condition.
    pub fn has_condition(&self) -> bool {
        [&self.application, &self.user, &self.database, &self.lock, &self.statement]
            .into_iter()
            .any(Option::is_some)
    }

    pub fn toml(&self) -> String {
        let longest = self.longest_wait.map(|longest| Text::from(format!("{}s", longest.as_secs_f64())));
        let keys = [
            ("application", &self.application),
            ("user", &self.user),
            ("database", &self.database),
            ("lock", &self.lock),
            ("statement", &self.statement),
            ("longest_wait", &longest),
            ("reason", &self.reason),
        ];
        let mut table = "[[expected]]\n".to_owned();
        for (key, value) in keys.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?))) {
            // Writing to a string does not fail.
            let _ = writeln!(table, "{key} = {}", quoted(value));
        }
        table
    }

    /// `, expected: nightly migration`: the end of a finding's summary.
    pub fn words(&self) -> String {
        self.reason.as_ref().map_or_else(|| ", expected".to_owned(), |reason| format!(", expected: {reason}"))
    }
}

fn contains(statement: &str, part: &str) -> bool {
    let part = part.as_bytes();
    !part.is_empty()
        && statement.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

/// A TOML string. Characters that would control a terminal or be displayed misleadingly are escaped as numbers.
fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for character in value.chars() {
        let is_plain = || text::one_line(character.encode_utf8(&mut [0; 4])) == character.to_string();
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            ' ' => text.push(' '),
            _ if is_plain() => text.push(character),
            _ => {
                let _ = write!(text, "\\U{:08X}", u32::from(character));
            }
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_written_as_it_is_read() {
        let entry = ExpectedBlocker {
            application: Some("a \"b\" \\ c".into()),
            user: Some("é\u{1b}]0;x\u{202e}\n".into()),
            longest_wait: Some(Duration::from_millis(1500)),
            ..Default::default()
        };
        let text = entry.toml();
        assert_eq!(
            text,
            "[[expected]]\napplication = \"a \\\"b\\\" \\\\ c\"\n\
             user = \"é\\U0000001B]0;x\\U0000202E\\U0000000A\"\nlongest_wait = \"1.5s\"\n"
        );
    }

    #[test]
    fn a_part_of_a_statement_and_the_longest_wait_are_conditions() {
        let entry = ExpectedBlocker {
            statement: Some("locktop:EXPECTED".into()),
            longest_wait: Some(Duration::from_secs(60)),
            ..Default::default()
        };
        let met =
            |statement, waited| entry.is_met(Blocker { statement, waited, ..Blocker::default() }, |_| true);
        assert!(met(Some("/* locktop:expected */ ALTER TABLE t"), 60.0));
        assert!(!met(Some("/* locktop:expected */ ALTER TABLE t"), 60.1), "it has taken too long");
        assert!(!met(Some("ALTER TABLE t"), 0.0));
        assert!(!met(None, 0.0), "what cannot be seen");
        let only = ExpectedBlocker { statement: None, ..entry };
        assert!(!only.is_met(Blocker::default(), |_| true), "a time alone is no condition");
    }
}
