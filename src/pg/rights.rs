use tokio_postgres::Row;

use super::decode::texts::Encoding;
use super::decode::value::{raw, text};
use crate::model::Text;
use crate::model::plan::Rights;

/// Limit of roles of a kind; the statement (`assets/sql/rights.sql`) returns one more.
const ROLES: usize = 1000;

/// None if the role itself is not among the rows.
pub(super) fn rights_of(rows: &[Row], encoding: Encoding) -> Option<Rights> {
    of(rows.iter().filter_map(|row| Some((text(raw(row, 0))?, encoding.shared(raw(row, 1)?)))))
}

fn of<W: AsRef<str>, N: AsRef<str>>(rows: impl Iterator<Item = (W, N)>) -> Option<Rights> {
    let mut rights = Rights::default();
    let mut role = None;
    for (word, name) in rows {
        let name = name.as_ref();
        match (word.as_ref(), name) {
            ("role", _) => role = Some(Text::from(name)),
            ("version", _) => rights.version_num = name.parse().unwrap_or_default(),
            ("is", "superuser") => rights.superuser = true,
            ("is", "no_inherit") => rights.no_inherit = true,
            ("has", "pg_read_all_stats") => rights.read_all_stats = true,
            ("has", "pg_signal_backend") => rights.signal_backend = true,
            ("has", "pg_signal_autovacuum_worker") => rights.signal_autovacuum = true,
            ("member", _) => rights.member_of.push(name.into()),
            ("superuser", _) => rights.superusers.push(name.into()),
            _ => {}
        }
    }
    rights.role = role?;
    rights.partial = rights.member_of.len() > ROLES || rights.superusers.len() > ROLES;
    for roles in [&mut rights.member_of, &mut rights.superusers] {
        roles.sort_unstable();
        roles.truncate(ROLES);
    }
    Some(rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_put_together() {
        let rows = [
            ("member", "ops"),
            ("role", "ops"),
            ("version", "170002"),
            ("has", "pg_signal_backend"),
            ("member", "app"),
            ("superuser", "postgres"),
            ("is", "something new"),
        ];
        let rights = of(rows.into_iter()).unwrap();
        let expected = Rights {
            role: "ops".into(),
            version_num: 170_002,
            signal_backend: true,
            member_of: vec!["app".into(), "ops".into()],
            superusers: vec!["postgres".into()],
            ..Rights::default()
        };
        assert_eq!(rights, expected);
        assert_eq!(of([("member", "ops")].into_iter()), None);
    }

    #[test]
    fn more_roles_than_are_taken_are_not_all() {
        let many = (0..=ROLES).map(|number| ("member", format!("r{number}")));
        let rights = of(many.chain([("role", "r0".to_owned())])).unwrap();
        assert_eq!((rights.member_of.len(), rights.partial), (ROLES, true));
    }
}
