//! What a role may do to a session, by the rules of the server, and which privileges it lacks.
//!
//! `pg_signal_backend()` in `src/backend/storage/ipc/signalfuncs.c`: signalling a session of a superuser takes a superuser;
//! any other session takes the privileges of its role, or `pg_signal_backend`. A process without a role counts as a
//! superuser's, but from 18 on `pg_signal_autovacuum_worker` is enough for autovacuum workers. Before 14.10, 15.5 and 16.1
//! such a process was not protected (CVE-2023-5870).
//! `pg_stat_get_activity()`: without `pg_read_all_stats` or the privileges of its role, the start of a session is hidden,
//! and without it the session cannot be distinguished from the next one with the same pid.

use super::Verb;
use crate::model::Text;
use crate::text::one_line;

/// The `backend_type` that `pg_signal_autovacuum_worker` of 18 applies to.
const AUTOVACUUM_WORKER: &str = "autovacuum worker";

/// A privilege that a role lacks for an action, in one sanitized line, with the required statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPrivilege {
    pub words: String,
    /// The statement that grants what is missing: `GRANT pg_read_all_stats, pg_signal_backend TO "ops"`; `None` if only a
    /// superuser may.
    pub grant: Option<String>,
}

impl Rights {
    /// What the role lacks to do `verb` to a session with this owner and `backend_type` in `pg_stat_activity`. `None` if
    /// nothing is known to be lacking; the server decides. Verbs other than [`Verb::Cancel`] and [`Verb::Terminate`] concern
    /// tables, whose privileges only the server knows.
    pub fn lacks(
        &self,
        verb: Verb,
        owner: Option<&str>,
        backend_type: Option<&str>,
    ) -> Option<MissingPrivilege> {
        if self.superuser || !matches!(verb, Verb::Cancel | Verb::Terminate) {
            return None;
        }
        let is_superuser = |owner: &str| self.superusers.iter().any(|superuser| **superuser == *owner);
        let (doing, what) =
            if verb == Verb::Cancel { ("cancel", "queries") } else { ("terminate", "sessions") };
        let by_autovacuum = self.version_num >= 180_000 && backend_type == Some(AUTOVACUUM_WORKER);
        let mut signal = "pg_signal_backend";
        // Whether only a superuser may signal it, and whether the role may, as far as any other may.
        let (kind, needs_superuser, may_signal) = match owner {
            Some(owner) if is_superuser(owner) => {
                (format!("{what} of the superuser {}", shown(owner)), true, false)
            }
            Some(owner) => {
                let may_signal = self.signal_backend || self.is_member_of(owner);
                (format!("{what} of {}", shown(owner)), false, may_signal)
            }
            // The required privilege is known only once the process is visible.
            None if backend_type.is_none() && !self.sees(None) => {
                ("processes that are hidden from it".to_owned(), false, true)
            }
            None if by_autovacuum => {
                signal = "pg_signal_autovacuum_worker";
                ("autovacuum workers".to_owned(), false, self.signal_autovacuum)
            }
            None => {
                let is_autovacuum = backend_type == Some(AUTOVACUUM_WORKER);
                let kind = if is_autovacuum { "autovacuum workers" } else { "processes without a role" };
                (kind.to_owned(), self.guards_processes(), self.signal_backend)
            }
        };
        let roles = match (self.sees(owner), may_signal) {
            _ if needs_superuser => None,
            (true, true) => return None,
            (true, false) => Some(signal.to_owned()),
            (false, true) => Some("pg_read_all_stats".to_owned()),
            (false, false) => Some(format!("pg_read_all_stats, {signal}")),
        };
        let grant = roles.map(|roles| self.grant(&roles));
        let (role, remedy) = (shown(&self.role), grant.as_deref().unwrap_or("only a superuser is"));
        let words = format!("role {role} is not permitted to {doing} {kind}: {remedy}");
        Some(MissingPrivilege { words, grant })
    }

    pub fn sees(&self, owner: Option<&str>) -> bool {
        self.superuser || self.read_all_stats || owner.is_some_and(|owner| self.is_member_of(owner))
    }

    /// Whether the role has the privileges of another role. True if in doubt: the memberships may not all have been read.
    pub fn is_member_of(&self, role: &str) -> bool {
        self.partial || self.member_of.iter().any(|member| **member == *role)
    }

    /// The statement that grants roles to the role. For a role with NOINHERIT the grant is made inheriting, or before 16 the
    /// role is altered.
    pub fn grant(&self, roles: &str) -> String {
        let role = shown(&self.role);
        match (self.no_inherit, self.version_num >= 160_000) {
            (false, _) => format!("GRANT {roles} TO {role}"),
            (true, true) => format!("GRANT {roles} TO {role} WITH INHERIT TRUE"),
            (true, false) => format!("GRANT {roles} TO {role}; ALTER ROLE {role} INHERIT"),
        }
    }

    fn guards_processes(&self) -> bool {
        match self.version_num / 10_000 {
            14 => self.version_num >= 140_010,
            15 => self.version_num >= 150_005,
            16 => self.version_num >= 160_001,
            _ => true,
        }
    }
}

fn shown(name: &str) -> String {
    one_line(&format!("\"{}\"", name.replace('"', "\"\""))).into_owned()
}

const NAMES: usize = 5;

impl Rights {
    /// Privileges of the role that concern sessions: a label and its text, each in one sanitized line.
    pub fn words(&self) -> Vec<(&'static str, String)> {
        if self.superuser {
            let all = "all sessions: it is a superuser".to_owned();
            return vec![("can see", "the activity of all roles".to_owned()), ("can terminate", all)];
        }
        vec![
            ("can see", self.sight()),
            ("can terminate", self.reach()),
            (
                "superusers",
                format!("the sessions of {} can be terminated only by a superuser", names(&self.superusers)),
            ),
            ("autovacuum", self.autovacuum()),
        ]
    }

    fn sight(&self) -> String {
        if self.read_all_stats {
            return "the activity of all roles".to_owned();
        }
        let own = names(&self.member_of);
        format!("the activity of {own}; for that of others: {}", self.grant("pg_read_all_stats"))
    }

    /// The privileges to terminate, which also allow to cancel.
    fn reach(&self) -> String {
        let missing = match (self.read_all_stats, self.signal_backend) {
            (true, true) => return "the sessions of all roles except superusers".to_owned(),
            (true, false) => "pg_signal_backend",
            (false, true) => "pg_read_all_stats",
            (false, false) => "pg_read_all_stats, pg_signal_backend",
        };
        format!("the sessions of {}; for those of others: {}", names(&self.member_of), self.grant(missing))
    }

    fn autovacuum(&self) -> String {
        match self.lacks(Verb::Terminate, None, Some(AUTOVACUUM_WORKER)) {
            None => "it can terminate autovacuum workers".to_owned(),
            Some(lack) => match lack.grant {
                Some(grant) => format!("to terminate autovacuum workers: {grant}"),
                None => {
                    "autovacuum workers can be terminated only by a superuser before PostgreSQL 18".to_owned()
                }
            },
        }
    }
}

fn names(roles: &[Text]) -> String {
    let mut named: Vec<String> = roles.iter().take(NAMES).map(|role| one_line(role).into_owned()).collect();
    if roles.len() > NAMES {
        named.push(format!("{} more", roles.len() - NAMES));
    }
    named.join(", ")
}

/// The privileges of the connection's role. Read once per connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a right of its own")]
pub struct Rights {
    pub role: Text,
    /// `server_version_num`, such as 170002: the effect of a grant depends on the version.
    pub version_num: u32,
    /// `rolsuper`: bypasses all permission checks of the server.
    pub superuser: bool,
    /// Has the privileges of `pg_read_all_stats`: sees the activity of all sessions.
    pub read_all_stats: bool,
    /// May signal all sessions except those of superusers.
    pub signal_backend: bool,
    /// May signal autovacuum workers (from 18 on; before, only a superuser may).
    pub signal_autovacuum: bool,
    /// Roles whose privileges it has, including itself, sorted: it may signal their sessions and see their activity.
    pub member_of: Vec<Text>,
    /// Superuser roles, sorted: only a superuser may signal their sessions.
    pub superusers: Vec<Text>,
    /// There are more roles in either list than were read; only the server knows the rest.
    pub partial: bool,
    /// A grant of some role alone does not give its privileges: the role is `NOINHERIT`, or the grant is without INHERIT.
    pub no_inherit: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ops(version_num: u32) -> Rights {
        Rights {
            role: "ops".into(),
            version_num,
            member_of: vec!["ops".into()],
            superusers: vec!["postgres".into()],
            ..Rights::default()
        }
    }

    fn lack(rights: &Rights, owner: Option<&str>, kind: &str) -> String {
        let lack = rights.lacks(Verb::Terminate, owner, Some(kind));
        lack.map_or_else(|| "nothing".to_owned(), |lack| lack.words)
    }

    #[test]
    fn grants_are_named_one_by_one() {
        let mut rights = ops(170_000);
        let app = |rights: &Rights| lack(rights, Some("app"), "client backend");
        let may_not = "role \"ops\" is not permitted to terminate sessions of \"app\": ";
        assert_eq!(app(&rights), format!("{may_not}GRANT pg_read_all_stats, pg_signal_backend TO \"ops\""));
        rights.read_all_stats = true;
        assert_eq!(app(&rights), format!("{may_not}GRANT pg_signal_backend TO \"ops\""));
        (rights.read_all_stats, rights.signal_backend) = (false, true);
        assert_eq!(app(&rights), format!("{may_not}GRANT pg_read_all_stats TO \"ops\""));
        rights.read_all_stats = true;
        assert_eq!(app(&rights), "nothing");
        let cancel = rights.lacks(Verb::Cancel, Some("postgres"), None).unwrap();
        let text = "role \"ops\" is not permitted to cancel queries of the superuser \"postgres\": only a superuser is";
        assert_eq!((cancel.words.as_str(), cancel.grant), (text, None));
        rights.superuser = true;
        assert_eq!(lack(&rights, Some("postgres"), "client backend"), "nothing");
    }

    #[test]
    fn its_own_sessions_and_those_of_its_roles_need_nothing() {
        let mut rights = ops(140_010);
        assert_eq!(lack(&rights, Some("ops"), "client backend"), "nothing");
        assert!(rights.lacks(Verb::Terminate, Some("app"), None).is_some());
        rights.member_of.push("app".into());
        assert_eq!(lack(&rights, Some("app"), "client backend"), "nothing");
        // Membership in a superuser role does not make a role a superuser.
        rights.member_of.push("postgres".into());
        assert!(lack(&rights, Some("postgres"), "client backend").ends_with("only a superuser is"));
    }

    #[test]
    fn terminating_autovacuum_needs_the_rights_of_the_server_version() {
        let worker = |version_num, granted: bool| {
            let rights = Rights { read_all_stats: true, signal_backend: true, ..ops(version_num) };
            lack(&Rights { signal_autovacuum: granted, ..rights }, None, "autovacuum worker")
        };
        for (version, text) in [
            (140_009, "nothing"),
            (140_010, "role \"ops\" is not permitted to terminate autovacuum workers: only a superuser is"),
            (150_004, "nothing"),
            (160_000, "nothing"),
            (170_000, "role \"ops\" is not permitted to terminate autovacuum workers: only a superuser is"),
            (
                180_000,
                "role \"ops\" is not permitted to terminate autovacuum workers: GRANT pg_signal_autovacuum_worker TO \"ops\"",
            ),
        ] {
            assert_eq!(worker(version, false), text, "{version}");
        }
        assert_eq!(worker(180_000, true), "nothing");
        let rights = Rights { read_all_stats: true, signal_autovacuum: true, ..ops(180_000) };
        let launcher = lack(&rights, None, "autovacuum launcher");
        assert_eq!(
            launcher,
            "role \"ops\" is not permitted to terminate processes without a role: only a superuser is"
        );
    }

    #[test]
    fn a_hidden_process_needs_pg_read_all_stats() {
        let lack = ops(180_000).lacks(Verb::Terminate, None, None).unwrap().words;
        let text = "role \"ops\" is not permitted to terminate processes that are hidden from it: GRANT pg_read_all_stats TO \"ops\"";
        assert_eq!(lack, text);
    }

    #[test]
    fn a_role_without_inherit_gets_a_grant_that_inherits() {
        let grant = |version| Rights { no_inherit: true, ..ops(version) }.grant("pg_signal_backend");
        assert_eq!(grant(150_000), "GRANT pg_signal_backend TO \"ops\"; ALTER ROLE \"ops\" INHERIT");
        assert_eq!(grant(160_000), "GRANT pg_signal_backend TO \"ops\" WITH INHERIT TRUE");
    }

    #[test]
    fn a_hostile_name_stays_in_its_quotes_and_its_line() {
        let rights = Rights { role: "o\"p\ns\u{1b}[2J".into(), ..ops(170_000) };
        let text = lack(&rights, Some("a\"; DROP\n"), "client backend");
        assert!(
            !text.contains(['\n', '\u{1b}']) && text.contains("\"o\"\"p") && text.contains("\"a\"\"; DROP")
        );
    }

    #[test]
    fn other_verbs_are_not_about_sessions() {
        assert_eq!(ops(170_000).lacks(Verb::Unlock, None, None), None);
    }

    #[test]
    fn each_missing_right_is_shown_with_its_grant() {
        let mut rights = Rights {
            role: "ops".into(),
            version_num: 170_002,
            member_of: vec!["app".into(), "ops".into()],
            superusers: vec!["postgres".into()],
            ..Rights::default()
        };
        let word = |rights: &Rights, word: &str| {
            rights.words().into_iter().find(|(name, _)| *name == word).unwrap().1
        };
        let grant = "GRANT pg_read_all_stats, pg_signal_backend TO \"ops\"";
        assert_eq!(
            word(&rights, "can terminate"),
            format!("the sessions of app, ops; for those of others: {grant}")
        );
        assert!(word(&rights, "can see").ends_with("GRANT pg_read_all_stats TO \"ops\""));
        assert_eq!(
            word(&rights, "superusers"),
            "the sessions of postgres can be terminated only by a superuser"
        );
        (rights.read_all_stats, rights.signal_backend) = (true, true);
        assert_eq!(word(&rights, "can terminate"), "the sessions of all roles except superusers");
        assert!(word(&rights, "autovacuum").ends_with("before PostgreSQL 18"));
        rights.version_num = 180_001;
        assert!(word(&rights, "autovacuum").ends_with("GRANT pg_signal_autovacuum_worker TO \"ops\""));
        rights.superuser = true;
        assert_eq!(rights.words().len(), 2);
        let many: Vec<Text> = (0..9).map(|number| format!("r{number}").into()).collect();
        assert_eq!(names(&many), "r0, r1, r2, r3, r4, 4 more");
    }
}
