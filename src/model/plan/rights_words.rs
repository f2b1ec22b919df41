use super::Rights;
use crate::model::Text;
use crate::text::one_line;

const NAMES: usize = 5;

impl Rights {
    /// What the role sees and may do to sessions: a label and its text, each in one sanitized line.
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
        let missing = self.lacks(super::Verb::Terminate, None, Some("autovacuum worker"));
        match missing {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_where_it_is_missing() {
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
