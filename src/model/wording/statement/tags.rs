//! The comments that [`locktop_locks::advisory`] sends before a statement: `/* lock invoice:7 */ SELECT …`, `/* lead scheduler */ …`.
//! In a redacted statement, the number of the lock replaces its name: `/* lead#-4711 */`.

use locktop_locks::advisory::Key;

use crate::model::lock_key::LockKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPurpose {
    Lock,
    /// The election of a leader.
    Election,
    /// The lock in which sessions queue for a permit of a semaphore.
    Queue,
    /// The permits of a semaphore. The number is that of its queue.
    Permits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag<'a> {
    pub purpose: KeyPurpose,
    /// The name of the lock or the semaphore; None if the statement is redacted.
    pub name: Option<&'a str>,
    pub number: LockKey,
}

/// All at the beginning of a statement.
pub fn tags(statement: &str) -> impl Iterator<Item = Tag<'_>> {
    calls(statement).filter_map(|(call, _)| Tag::read(call))
}

/// The comments at the beginning as they are written, each with the text after it.
pub fn calls(mut statement: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::from_fn(move || {
        let (call, rest) = statement.strip_prefix("/* ")?.split_once(" */ ")?;
        statement = rest;
        Some((call, rest))
    })
}

/// The tags without their names, and the text after them.
pub fn numbered(statement: &str) -> (String, &str) {
    let mut left = String::new();
    let mut rest = statement;
    for (call, behind) in calls(statement) {
        let Some(tag) = Tag::read(call) else { break };
        rest = behind;
        left.push_str(&tag.numbered());
    }
    (left, rest)
}

impl<'a> Tag<'a> {
    fn read(call: &'a str) -> Option<Self> {
        Self::named(call).or_else(|| Self::without_name(call))
    }

    fn named(call: &'a str) -> Option<Self> {
        let (word, name) = call.split_once(' ')?;
        let of = |purpose, name: &'a str, lock: &str| {
            Some(Self { purpose, name: Some(name), number: Key::named(lock).number() })
        };
        let queue = |name: &'a str, purpose| of(purpose, name, &format!("{name} #queue"));
        match word {
            "lead" => of(KeyPurpose::Election, name, name),
            "lock" => match name.rsplit_once(" #") {
                Some((semaphore, "queue")) => queue(semaphore, KeyPurpose::Queue),
                Some((semaphore, count)) if is_count(count) => queue(semaphore, KeyPurpose::Permits),
                _ => of(KeyPurpose::Lock, name, name),
            },
            _ => None,
        }
    }

    fn without_name(call: &str) -> Option<Self> {
        let (word, number) = call.split_once('#')?;
        let (number, purpose) = number.split_once(' ').unwrap_or((number, ""));
        let purpose = match (word, purpose) {
            ("lead", "") => KeyPurpose::Election,
            ("lock", "") => KeyPurpose::Lock,
            ("lock", "queue") => KeyPurpose::Queue,
            ("lock", "permits") => KeyPurpose::Permits,
            _ => return None,
        };
        Some(Self { purpose, name: None, number: LockKey::Bigint(number.parse().ok()?) })
    }

    fn numbered(&self) -> String {
        let LockKey::Bigint(number) = self.number else { return String::new() };
        match self.purpose {
            KeyPurpose::Lock => format!("/* lock#{number} */ "),
            KeyPurpose::Election => format!("/* lead#{number} */ "),
            KeyPurpose::Queue => format!("/* lock#{number} queue */ "),
            KeyPurpose::Permits => format!("/* lock#{number} permits */ "),
        }
    }
}

/// `1-3`
fn is_count(text: &str) -> bool {
    text.strip_prefix("1-").is_some_and(|count| count.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_known_by_its_number_too() {
        for (call, purpose, name) in [
            ("/* lead a b */ SELECT 1", KeyPurpose::Election, "a b"),
            ("/* lock a */ SELECT 1", KeyPurpose::Lock, "a"),
            ("/* lock a #2 */ SELECT 1", KeyPurpose::Lock, "a #2"),
            ("/* lock a #1-b */ SELECT 1", KeyPurpose::Lock, "a #1-b"),
            ("/* lock a #queue */ SELECT 1", KeyPurpose::Queue, "a"),
            ("/* lock a #1-3 */ /* lock b */ SELECT 1", KeyPurpose::Permits, "a"),
        ] {
            let tag = tags(call).next().unwrap();
            assert_eq!((tag.purpose, tag.name), (purpose, Some(name)), "{call}");
            let (left, rest) = numbered(call);
            assert_eq!(rest, "SELECT 1");
            let number = tags(&left).next().unwrap();
            assert_eq!(number, Tag { name: None, ..tag }, "{left}");
            assert_eq!(numbered(&left).0, left, "a second time");
        }
        for other in ["SELECT 1", "/* lead */ SELECT 1", "/* lead#x */ SELECT 1", "/* lead a", "/* a b */ x"]
        {
            assert_eq!(tags(other).next(), None, "{other}");
            assert_eq!(numbered(other), (String::new(), other));
        }
    }
}
