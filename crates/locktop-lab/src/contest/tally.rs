use std::fmt::Display;

use serde::{Serialize, Serializer};

use tokio_postgres::{Client, Column, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    pub name: &'static str,
    keys: &'static [&'static str],
    numbers: Vec<u64>,
}

impl Tally {
    /// `numbers` are in the order of the keys.
    pub(crate) fn new<const N: usize>(
        name: &'static str,
        keys: &'static [&'static str; N],
        numbers: [u64; N],
    ) -> Self {
        Self { name, keys, numbers: numbers.into() }
    }

    pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.keys.iter().copied().zip(self.numbers.iter().copied())
    }

    #[must_use]
    pub fn value(&self, key: &str) -> Option<u64> {
        self.entries().find(|(name, _)| *name == key).map(|(_, number)| number)
    }
}

impl Serialize for Tally {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.entries())
    }
}

/// The keys of a contest's numbers, in order, with a number for each. Keys may be added, never renamed.
macro_rules! tally {
    ($($key:ident)+) => {
        pub(super) const KEYS: [&str; [$(stringify!($key)),+].len()] = [$(stringify!($key)),+];

        #[derive(Debug, Clone, Copy, Default)]
        struct Numbers {
            $($key: u64,)+
        }

        impl Numbers {
            fn tally(&self, name: &'static str) -> Tally {
                Tally::new(name, &KEYS, [$(self.$key),+])
            }
        }

        impl Extend<(String, u64)> for Numbers {
            fn extend<I: IntoIterator<Item = (String, u64)>>(&mut self, numbers: I) {
                for (key, number) in numbers {
                    match key.as_str() {
                        $(stringify!($key) => self.$key = number,)+
                        _ => debug_assert!(false, "{key} is no number of this contest"),
                    }
                }
            }
        }
    };
}

pub(crate) use tally;

/// The numbers, and the violations, one line each.
#[derive(Debug, Clone)]
pub(crate) struct ContestOutcome {
    pub(crate) tally: Tally,
    pub(crate) violations: Vec<String>,
}

impl ContestOutcome {
    pub(super) fn new(tally: Tally) -> Self {
        Self { tally, violations: Vec::new() }
    }

    pub(super) fn must_not(mut self, is_so: bool, what: impl Display) -> Self {
        if is_so {
            self.violations.push(format!("{}: {what}", self.tally.name));
        }
        self
    }

    pub(super) fn zero(mut self, what: &[(&str, &str)]) -> Self {
        for (key, words) in what {
            let number = self.tally.value(key).unwrap_or_default();
            self = self.must_not(number > 0, format!("{words}: {number}"));
        }
        self
    }

    /// This number must not be 0, and no process may have ended unexpectedly. `first_error` may explain why.
    pub(super) fn some(self, key: &str, what: &str, first_error: Option<&str>) -> Self {
        let (none, lost) = (self.tally.value(key) == Some(0), self.tally.value("lost_workers") > Some(0));
        let why = first_error.map_or_else(String::new, |first_error| format!(": {first_error}"));
        self.must_not(none, format!("{what}{why}")).must_not(lost, first_error.unwrap_or_default())
    }
}

pub(crate) fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The columns of a query's only row, with their names.
pub(crate) async fn numbers(client: &Client, sql: &str) -> Result<Vec<(String, u64)>, Error> {
    let row = client.query_one(sql, &[]).await?;
    let named = |(index, column): (usize, &Column)| {
        Ok((column.name().to_owned(), u64::try_from(row.try_get::<_, i64>(index)?).unwrap_or_default()))
    };
    row.columns().iter().enumerate().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Contest, rate_limit};
    use super::*;

    #[test]
    fn every_number_has_a_name_of_its_own() {
        for contest in Contest::ALL {
            let mut keys = contest.keys().to_vec();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), contest.keys().len(), "{contest:?}");
        }
    }

    #[test]
    fn violations_are_reported() {
        let found =
            ContestOutcome::new(Tally::new("ratelimit", &rate_limit::KEYS, [50, 100, 7, 0, 7, 1, 0, 2, 1]));
        let found = found.zero(&[("errors", "errors"), ("windows_met", "windows that met")]);
        let found = found.some("allowed", "nothing was allowed", Some("no server"));
        let violations = [
            "ratelimit: errors: 1",
            "ratelimit: windows that met: 2",
            "ratelimit: nothing was allowed: no server",
        ];
        assert_eq!(found.violations, violations);
        assert_eq!(found.tally.value("limit"), Some(100));
        assert_eq!(found.tally.value("none"), None);
    }
}
