//! The table that rows come from: its owner, whether the owner is trusted, its size; and ids of rows by table and name.
//!
//! Using a table runs code of its owner with the privileges of the connected role. A table of an untrusted owner is shown
//! only as far as no such code runs, and is never acted on.

use std::hash::{DefaultHasher, Hash, Hasher};

use locktop_tasks::trust::remedy;

use super::Text;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owner {
    /// Name of the role; empty if unknown.
    pub name: Text,
    /// An untrusted owner of the table, its schema or a part of it; `None` if all owners are trusted.
    pub stranger: Option<Text>,
    /// A table of another role that an unqualified name would mean if this untrusted table did not precede it on the search
    /// path.
    pub hides: Option<Text>,
}

impl Owner {
    /// Why no action is taken on the table; `None` if actions are allowed.
    pub fn refusal(&self, table: &str) -> Option<String> {
        let stranger = self.stranger.as_deref()?;
        Some(format!("{table} belongs to {stranger}, who is not trusted; {}", remedy(stranger)))
    }

    /// The fact shown in the dialog; `None` if the owner is unknown.
    pub fn fact(&self, table: &str) -> Option<String> {
        (!self.name.is_empty()).then(|| format!("table {table} of {}", self.name))
    }
}

/// The size of a log by the planner's statistics: an estimate that opens no table.
#[derive(Debug, Clone, Copy, Default)]
pub struct Growth {
    /// Estimated number of rows (`pg_class.reltuples`); 0 if the table was never analyzed.
    pub rows: u64,
    /// Whether a setting of the database defines the retention.
    pub is_limited: bool,
    /// Estimated number of rows past the retention. None if not known.
    pub old: Option<u64>,
}

/// Always equal: a table is the same whatever its size.
impl PartialEq for Growth {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Growth {}

/// Identifies something by where it is stored and its name there. A hash of both, small enough to select and mark by; an
/// action needs the row itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub(crate) u64);

impl TextId {
    /// The id of `name` in the table, or on the server, `source`.
    pub fn of(source: &str, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (source, name).hash(&mut hasher);
        Self(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_is_named_with_what_helps() {
        let owner = Owner { name: "app".into(), stranger: Some("app".into()), hides: None };
        let expected = "public.t belongs to app, who is not trusted; \
                        --trust-owner app, or trusted_owners = [\"app\"] in the config, permits it";
        assert_eq!(owner.refusal("public.t").as_deref(), Some(expected));
        let trusted = Owner { stranger: None, ..owner };
        assert_eq!(
            (trusted.refusal("t"), trusted.fact("public.t")),
            (None, Some("table public.t of app".to_owned()))
        );
        assert_eq!(Owner::default().fact("t"), None);
    }
}
