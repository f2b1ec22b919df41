use proptest::prelude::*;

use super::*;

fn said(text: &str) -> String {
    let one = |read: Result<Statement, Unknown>| match read {
        Ok(found) => {
            let takes = found.takes.iter().map(|take| {
                let table =
                    take.on_table_of_index.map(|mode| format!("+{}", mode.short())).unwrap_or_default();
                format!(" {} {}{table}", take.relation, take.mode.short())
            });
            format!("{}:{}", found.name, takes.collect::<Vec<_>>().join(","))
        }
        Err(unknown) => unknown.to_string(),
    };
    statements(text).into_iter().map(one).collect::<Vec<_>>().join("; ")
}

#[test]
fn what_statements_take() {
    for (text, expected) in [
        (
            "ALTER TABLE orders ADD COLUMN x int DEFAULT 0",
            "ALTER TABLE … ADD COLUMN … DEFAULT: orders AccessExclusive",
        ),
        (
            "alter table if exists only Shop.\"Orders\" * add x uuid default gen_random_uuid(), alter column y set statistics 9",
            "ALTER TABLE … ADD COLUMN … DEFAULT, volatile, ALTER COLUMN SET STATISTICS: shop.Orders AccessExclusive",
        ),
        (
            "ALTER TABLE a ADD x int REFERENCES b (id), ADD y int",
            "ALTER TABLE … ADD COLUMN, ADD COLUMN: a AccessExclusive, b ShareRowExclusive",
        ),
        (
            "ALTER TABLE a ADD CONSTRAINT f FOREIGN KEY (x, y) REFERENCES s.b (x, y) ON DELETE CASCADE NOT VALID",
            "ALTER TABLE … ADD FOREIGN KEY NOT VALID: a ShareRowExclusive, s.b ShareRowExclusive",
        ),
        (
            "ALTER TABLE a ALTER x TYPE bigint USING x::bigint",
            "ALTER TABLE … ALTER COLUMN TYPE: a AccessExclusive",
        ),
        (
            "ALTER TABLE a VALIDATE CONSTRAINT c, SET (fillfactor = 70)",
            "ALTER TABLE … VALIDATE CONSTRAINT, SET (…): a ShareUpdateExclusive",
        ),
        ("ALTER TABLE a FLY", "locktop does not know the action FLY of ALTER TABLE"),
        (
            "CREATE UNIQUE INDEX CONCURRENTLY ON a (x) WHERE y",
            "CREATE INDEX CONCURRENTLY: a ShareUpdateExclusive",
        ),
        (
            "DROP INDEX s.i, j",
            "DROP INDEX: s.i AccessExclusive+AccessExclusive, j AccessExclusive+AccessExclusive",
        ),
        ("CREATE TABLE x AS SELECT * FROM a, b", "CREATE TABLE AS: a AccessShare, b AccessShare"),
        (
            "CREATE TABLE x (a int REFERENCES b, LIKE c, d text CHECK (d LIKE 'e'))",
            "CREATE TABLE: b ShareRowExclusive, c AccessShare",
        ),
        ("EXPLAIN (ANALYZE) UPDATE a SET x = 1", "UPDATE: a RowExclusive"),
        ("EXPLAIN ANALYZE SELECT * FROM a", "SELECT: a AccessShare"),
        ("PREPARE p (int) AS DELETE FROM a WHERE x = $1", "DELETE: a RowExclusive"),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT * FROM a FOR SHARE", "SELECT … FOR UPDATE/SHARE: a RowShare"),
        ("COPY (SELECT * FROM a) TO STDOUT", "SELECT: a AccessShare"),
        ("COPY a (x, y) FROM STDIN", "COPY … FROM: a RowExclusive"),
        (
            "BEGIN; LOCK a IN SHARE MODE; -- ;\n COMMIT;",
            "BEGIN, COMMIT, …:; LOCK TABLE … SHARE: a Share; BEGIN, COMMIT, …:",
        ),
        ("VACUUM FULL VERBOSE a", "VACUUM FULL: a AccessExclusive"),
        ("VACUUM (ANALYZE, VERBOSE) a (x), b", "VACUUM: a ShareUpdateExclusive, b ShareUpdateExclusive"),
        (
            "REINDEX INDEX CONCURRENTLY i",
            "REINDEX INDEX CONCURRENTLY: i ShareUpdateExclusive+ShareUpdateExclusive",
        ),
        (
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; DROP TABLE a $$",
            "locktop does not know the statement CREATE FUNCTION f",
        ),
        ("DO $$ BEGIN DROP TABLE a; END $$", "locktop does not know the statement DO ?"),
        ("SELECT (1", "the statement does not end: a parenthesis is not closed, or one too many is"),
        ("VACUUM", "locktop does not know the statement VACUUM"),
        ("DROP TABLE U&\"d\\0061t\"", "locktop does not know the statement DROP TABLE ?"),
        (" ; -- nothing", ""),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}

#[test]
fn each_form_is_the_one_that_its_example_is_known_as() {
    for (form, text) in forms().into_iter().filter(|(_, text)| !text.is_empty()) {
        let read = statements(&text);
        let [Ok(found)] = &read[..] else { panic!("{text}: {read:?}") };
        assert_eq!(found.forms[0].name, form.name, "{text}");
        assert_eq!(found.forms[0].pattern, form.pattern, "{text}");
    }
    assert!(forms().len() > 100);
}

#[test]
fn a_statement_that_was_cut_says_what_it_is() {
    let found = first("/* app */ UPDATE accounts SET balance = (SELECT sum(x", 4096).unwrap();
    assert_eq!((found.name.as_str(), found.mode_on("accounts")), ("UPDATE", Some(LockMode::RowExclusive)));
    assert_eq!(found.mode_on("shop.accounts"), Some(LockMode::RowExclusive), "along the path of its session");
    assert_eq!(found.mode_on("old_accounts"), None);
    let other = first("UPDATE public.accounts SET x = 1", 4096).unwrap();
    assert_eq!(other.mode_on("accounts"), Some(LockMode::RowExclusive));
    assert_eq!(other.mode_on("shop.accounts"), None);
    assert_eq!(first("", 4096), None);
    assert_eq!(first("CREATE FUNC", 4096), None);
}

/// Long nonsense is read in a time that grows with its length: none of these would end otherwise.
#[test]
fn nothing_takes_the_square_of_the_length() {
    for part in [
        "(",
        "a,",
        "WITH a (",
        "ALTER TABLE a ADD x * GENERATED ",
        "/*",
        "$a",
        "\"",
        "FROM (",
        "DEFAULT x ",
        "AS (",
        ";",
    ] {
        let text = part.repeat(LONGEST / 4 / part.len());
        for head in ["", "SELECT ", "ALTER TABLE t ADD ", "WITH "] {
            let _ = statements(&format!("{head}{text}"));
        }
    }
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,200}") {
        let _ = statements(&text);
        let _ = first(&text, 100);
    }

    #[test]
    fn no_words_are_too_strange(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "SELECT", "FROM", "WITH", "a", "b", "(", ")", ",", ".", ";", "AS", "ALTER", "TABLE", "ADD", "CONSTRAINT", "DEFAULT", "\"", "'", "$$", "$1",
            "/*", "*/", "--", "\n", "FOR", "UPDATE", "OF", "JOIN", "USING", "DELETE", "MERGE", "INTO", "INSERT", "CREATE", "INDEX", "ON", "ONLY", "*",
            "DROP", "IF", "EXISTS", "U&\"", "E'", "EXPLAIN", "PREPARE", "DECLARE", "COPY", "VACUUM", "LOCK", "UNION", "REFERENCES", "LIKE", "CONCURRENTLY",
        ]), 0..40)) {
        let text = words.join(" ");
        for found in statements(&text).into_iter().flatten() {
            prop_assert!(!found.name.is_empty() && !found.forms.is_empty());
        }
        let _ = first(&text, 100);
    }
}
