//! What is not as it was seen, in words.

use super::Answer;
use super::sql::Signal;
use crate::model::Timestamp;
use crate::model::plan::{Seen, SessionTarget};

pub(super) const OWN: &str = "that is a session of locktop's own";

/// Says times as the screens do.
pub(super) struct Words {
    pub(super) offset: chrono::FixedOffset,
}

impl Words {
    /// Why nothing was signalled.
    pub(super) fn changed(&self, seen: &SessionTarget, now: &Answer) -> String {
        let began = |was: Option<Timestamp>, is: Option<Timestamp>| self.began(was, is);
        match now.word.as_str() {
            "gone" => format!("there is no session of pid {} any more", seen.pid),
            "session" => {
                let began = began(Some(seen.backend_start), now.backend_start);
                format!("pid {} is another session: {began}", seen.pid)
            }
            "transaction" => match (was(seen.xact_start), now.xact_start) {
                (Some(_), None) => "its transaction has ended".to_owned(),
                (None, Some(at)) => format!("it has a transaction now: began {}", self.time(at, TIME)),
                (was, is) => format!("its transaction is another one: {}", began(was, is)),
            },
            "query" => {
                format!("its query is another one: {}", began(was(seen.query_start), now.query_start))
            }
            "not_active" => {
                let state = now.state.as_deref().unwrap_or("in no state");
                format!("no query runs in it: it is {state}, which a cancellation does not change")
            }
            "released" => match seen.holds {
                Some((tag, mode)) => {
                    format!("it no longer holds {} on its {}", mode.as_str(), tag.locktype.as_str())
                }
                None => "it no longer holds its lock".to_owned(),
            },
            "blocks_nobody" => "it no longer blocks anybody".to_owned(),
            other => format!("it has changed ({other})"),
        }
    }

    /// `began 14:02:31, not 13:59:40`, as exactly as it takes to see the difference.
    fn began(&self, was: Option<Timestamp>, is: Option<Timestamp>) -> String {
        let both = |format| (was.map(|at| self.time(at, format)), is.map(|at| self.time(at, format)));
        let formats = [TIME, "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S%.6f"];
        let told = formats.into_iter().map(both).find(|(was, is)| was != is);
        let word = |time: Option<String>| time.unwrap_or_else(|| "never".to_owned());
        told.map_or_else(String::new, |(was, is)| format!("began {}, not {}", word(is), word(was)))
    }

    fn time(&self, at: Timestamp, format: &str) -> String {
        at.with_timezone(&self.offset).format(format).to_string()
    }
}

const TIME: &str = "%H:%M:%S";

fn was(seen: Seen<Option<Timestamp>>) -> Option<Timestamp> {
    match seen {
        Seen::Same(at) => at,
        Seen::Any => None,
    }
}

/// The server's function answered false.
pub(super) fn unsent(signal: Signal) -> String {
    format!("{} answers false: the process has just ended, or is none that takes it", signal.function())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn seen() -> SessionTarget {
        SessionTarget {
            pid: 7,
            backend_start: at("2026-01-01T09:00:00Z"),
            xact_start: Seen::Same(Some(at("2026-01-01T13:59:40Z"))),
            query_start: Seen::Any,
            holds: None,
            blocks: true,
        }
    }

    #[test]
    fn times_are_as_exact_as_the_difference_needs() {
        let words = Words { offset: chrono::FixedOffset::east_opt(3600).unwrap() };
        let answer = |xact_start: Option<&str>| Answer {
            word: "transaction".to_owned(),
            sent: None,
            backend_start: None,
            xact_start: xact_start.map(at),
            query_start: None,
            state: None,
        };
        for (now, expected) in [
            (Some("2026-01-01T14:02:31Z"), "its transaction is another one: began 15:02:31, not 14:59:40"),
            (
                Some("2026-01-02T13:59:40Z"),
                "its transaction is another one: began 2026-01-02 14:59:40, not 2026-01-01 14:59:40",
            ),
            (
                Some("2026-01-01T13:59:40.000001Z"),
                "its transaction is another one: began 2026-01-01 14:59:40.000001, not 2026-01-01 14:59:40.000000",
            ),
            (None, "its transaction has ended"),
        ] {
            assert_eq!(words.changed(&seen(), &answer(now)), expected);
        }
    }
}
