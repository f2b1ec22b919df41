use std::fmt::Write as _;

use locktop_locks::SchemaName;

/// The newest version of the schema, which an installation makes.
pub const LATEST: u32 = 9;

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../assets/sql/schema/", $name, ".sql"))
    };
}

/// The files of each version from 1 on, in order. A version that was released is never edited: what changes is a new one.
static VERSIONS: [&[&str]; LATEST as usize] = [
    &[file!("001_marks"), file!("001_keys"), file!("001_audit"), file!("001_cron")],
    &[
        file!("002_tables"),
        file!("002_settle"),
        file!("002_triggers"),
        file!("002_acquire"),
        file!("002_release"),
        file!("002_give_back"),
        file!("002_views"),
        file!("002_recover"),
        file!("002_terminate"),
    ],
    &[
        file!("003_queue"),
        file!("003_requeue"),
        file!("003_rate_limit"),
        file!("003_snowflake"),
        file!("003_transfer"),
        file!("003_lease"),
        file!("003_contention"),
    ],
    &[file!("004_up_since"), file!("004_audit"), file!("004_lease")],
    &[
        file!("005_lease"),
        file!("005_rate_limit"),
        file!("005_snowflake"),
        file!("005_audit"),
        file!("005_purge"),
    ],
    &[file!("006_before"), file!("006_tasks"), file!("006_queue"), file!("006_after")],
    &[file!("007_workers"), file!("007_purge")],
    &[file!("008_refusals")],
    &[file!("009_lease_names")],
];

/// Records the version at the end of its script, and marks the created objects.
const MARK: &str = file!("mark");
const OBJECTS: &str = file!("objects");

/// Settings of the transaction that changes a schema. `lock_timeout`: no session waits long behind it.
pub(super) const SETTINGS: &str = "\
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL lock_timeout = '3s';
SET LOCAL statement_timeout = '60s';
SET LOCAL client_min_messages = warning;
SET LOCAL check_function_bodies = on;
SET LOCAL standard_conforming_strings = on;
";

/// The scripts that bring a schema from one version (0: not installed) up to another.
pub(super) fn versions(schema: &SchemaName, after: u32, up_to: u32) -> impl Iterator<Item = String> {
    let wanted = (1..).zip(VERSIONS).filter(move |(number, _)| (after + 1..=up_to).contains(number));
    wanted.map(|(number, files)| {
        let number = number.to_string();
        files.iter().chain([&MARK]).map(|part| fill(part, schema, &number) + "\n").collect()
    })
}

/// The query for the contents of a schema.
pub(super) fn objects(schema: &SchemaName) -> String {
    fill(OBJECTS, schema, "")
}

/// Everything that an installation does, as a script for psql.
#[must_use]
pub fn script(schema: &SchemaName) -> String {
    let mut sql = format!(
        "-- The schema {} of locktop, version {LATEST}. One transaction; fails if a schema of this name exists.\n\nBEGIN;\n{SETTINGS}\n",
        schema.quoted()
    );
    for version in versions(schema, 0, LATEST) {
        let _ = writeln!(sql, "{version}");
    }
    sql.push_str("COMMIT;\n");
    sql
}

/// Replaces the placeholders for the name, in one pass: a name may resemble a placeholder. `@literal:x@` is the qualified
/// name of x in the schema, as a string constant.
fn fill(text: &str, schema: &SchemaName, version: &str) -> String {
    let (quoted, literal) = (schema.quoted(), schema.quoted_literal());
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('@') {
        filled.push_str(before);
        let values =
            [("schema@", quoted.as_str()), ("schema_literal@", literal.as_str()), ("version@", version)];
        let found = values.iter().find_map(|(mark, value)| Some((after.strip_prefix(mark)?, value)));
        let named = after.strip_prefix("literal:").and_then(|after| after.split_once('@'));
        let named =
            named.filter(|(name, _)| name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase()));
        rest = if let Some((after, value)) = found {
            filled.push_str(value);
            after
        } else if let Some((name, after)) = named {
            filled.push_str(&schema.literal_of(name));
            after
        } else {
            filled.push('@');
            after
        };
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    /// A schema that a release installed is upgraded by the versions after it, so released versions must not change.
    #[test]
    fn released_versions_are_never_edited() {
        // 0.1.0 has versions 1 to 7.
        let released = versions(&SchemaName::default(), 0, 7).collect::<String>();
        let sum: Vec<_> = Sha256::digest(released).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sum.concat(), "1db67b2a76c3e1ce1fdee89d05c7b82a70176e5392e28b9af70dfa389e1bbb72");
    }

    #[test]
    fn a_database_of_any_encoding_can_take_it() {
        assert!(script(&SchemaName::default()).is_ascii());
    }

    #[test]
    fn a_name_that_looks_like_a_placeholder_stays_a_name() {
        let schema = SchemaName::new("a@version@b").unwrap();
        assert_eq!(fill("@schema@.t @version@ @daily", &schema, "7"), "\"a@version@b\".t 7 @daily");
        assert_eq!(fill("@literal:t@::x @literal: @", &schema, "7"), "'\"a@version@b\".t'::x @literal: @");
    }
}
