use proptest::prelude::*;

use super::*;

fn described(text: &str) -> String {
    let one = |piece: StatementPiece| match piece.read {
        Ok(found) => {
            let takes = found.takes.iter().filter(|take| take.mode != LockMode::SIRead).map(|take| {
                let table =
                    take.on_table_of_index.map(|mode| format!("+{}", mode.short())).unwrap_or_default();
                let only = if take.relation().is_some_and(|relation| relation.only) { "ONLY " } else { "" };
                let since = if take.since > 0 { format!(" from {}", take.since) } else { String::new() };
                format!(" {only}{} {}{table}{since}", take.target, take.mode.short())
            });
            let unseen = found.unseen.iter().map(|unseen| format!("?{unseen}"));
            format!("{}:{}", found.name, takes.chain(unseen).collect::<Vec<_>>().join(","))
        }
        Err(unknown) => unknown.to_string(),
    };
    statements(text).into_iter().map(one).collect::<Vec<_>>().join("; ")
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_statement_shows_the_locks_that_it_takes() {
    for (text, expected) in [
        (
            "ALTER TABLE orders ADD COLUMN x int DEFAULT 0",
            "ALTER TABLE … ADD COLUMN … DEFAULT: orders AccessExclusive",
        ),
        (
            "alter table if exists only Shop.\"Orders\" * add x uuid default gen_random_uuid(), alter column y set statistics 9",
            "ALTER TABLE … ADD COLUMN … DEFAULT, volatile, ALTER COLUMN SET STATISTICS: ONLY shop.Orders AccessExclusive",
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
        (
            "ALTER TABLE a FLY",
            "locktop does not know this form of ALTER TABLE, from \"FLY\" on: a syntax error, or syntax that locktop does not have",
        ),
        (
            "CREATE UNIQUE INDEX CONCURRENTLY ON a (x) WHERE y",
            "CREATE INDEX CONCURRENTLY: a ShareUpdateExclusive",
        ),
        (
            "DROP INDEX s.i, j",
            "DROP INDEX: s.i AccessExclusive+AccessExclusive, j AccessExclusive+AccessExclusive",
        ),
        (
            "CREATE TABLE x AS SELECT * FROM a, b",
            "CREATE TABLE AS: the schema it is created in AccessShare, a AccessShare, b AccessShare",
        ),
        (
            "CREATE TABLE x (a int REFERENCES b, LIKE c, d text CHECK (d LIKE 'e'))",
            "CREATE TABLE: the schema it is created in AccessShare, b ShareRowExclusive, c AccessShare",
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
            "CREATE FUNCTION, PROCEDURE:",
        ),
        ("DO $$ BEGIN DROP TABLE a; END $$", "DO:?objects that its code locks"),
        ("SELECT (1", "syntax error: a parenthesis is not closed"),
        ("SELECT 1)", "syntax error at or near \")\""),
        ("SELECT 'open", "syntax error: a quoted string does not end"),
        ("VACUUM", "VACUUM of the database:?each table of the database in a transaction of its own"),
        (
            "DROP TABLE U&\"d\\0061t\"",
            "locktop does not know this form of DROP TABLE, from \"?\" on: a syntax error, or syntax that locktop does not have",
        ),
        (" ; -- nothing", ""),
        ("SELCT * FROM t", "syntax error at or near \"SELCT\""),
        ("ALTER TABEL t ADD x int", "syntax error at or near \"TABEL\""),
        ("CREATE INDX ON t (x)", "syntax error at or near \"INDX\""),
        ("INSERT t VALUES (1)", "syntax error at or near \"t\""),
        ("DELETE", "syntax error at end of input"),
        (
            "LOCK TABLE a IN SHRE MODE",
            "locktop does not know this form of LOCK TABLE, from \"SHRE\" on: a syntax error, or syntax that locktop does not have",
        ),
        (
            "DROP TABLE",
            "locktop does not know this form of DROP TABLE, from its end on: a syntax error, or syntax that locktop does not have",
        ),
        ("DROP TABLE :name", "the value of the psql variable :name is not known"),
        (
            "\\set x 1\n\\i other.sql\nLOCK a",
            "\\set:; locktop does not run the psql command \\i other.sql: what it does is not known; LOCK TABLE: a AccessExclusive",
        ),
        ("\\copy a from 'x.csv'", "COPY … FROM: a RowExclusive"),
        ("LOCK TABLE ONLY a, b NOWAIT", "LOCK TABLE: ONLY a AccessExclusive, b AccessExclusive"),
        (
            "DROP FUNCTION IF EXISTS s.f(int, t), g",
            "DROP: function s.f AccessExclusive, function g AccessExclusive",
        ),
        (
            "DROP SCHEMA a CASCADE",
            "DROP SCHEMA: schema a AccessExclusive,?everything in it, in AccessExclusive",
        ),
        ("COMMENT ON EXTENSION hstore IS 'x'", "COMMENT ON: extension hstore ShareUpdateExclusive"),
        ("GRANT SELECT, UPDATE (x) ON a, b TO c", "GRANT … ON: a AccessShare from 18, b AccessShare from 18"),
        ("GRANT USAGE ON SCHEMA a TO c", "GRANT … ON object: schema a AccessShare from 18"),
        (
            "GRANT a, b TO c",
            "GRANT: role a ShareUpdateExclusive from 16, role b ShareUpdateExclusive from 16",
        ),
        ("ALTER TYPE mood ADD VALUE 'x'", "ALTER TYPE … VALUE: type mood Exclusive"),
        ("CREATE TABLE s.x (a int)", "CREATE TABLE: schema s AccessShare"),
        ("CREATE TEMP TABLE x (a int)", "CREATE TABLE:"),
        ("CREATE DATABASE x", "CREATE DATABASE: database template1 Share"),
        ("NOTIFY x", "NOTIFY: the queue of notifications AccessExclusive"),
        ("SELECT pg_notify('a', 'b')", "SELECT: the queue of notifications AccessExclusive"),
        ("SELECT nextval('s.q'), setval('q', 1)", "SELECT: s.q RowExclusive, q RowExclusive"),
        (
            "SELECT pg_advisory_lock(7), pg_try_advisory_lock(1, 2)",
            "SELECT: advisory lock 7 Exclusive, advisory lock (1, 2) Exclusive",
        ),
        (
            "INSERT INTO a SELECT pg_advisory_lock_shared(id) FROM b",
            "INSERT: a RowExclusive, b AccessShare, advisory lock id Share",
        ),
        (
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 2 END; END; LOCK a",
            "CREATE FUNCTION, PROCEDURE:; LOCK TABLE: a AccessExclusive",
        ),
    ] {
        assert_eq!(described(text), expected, "{text}");
    }
}

#[test]
fn each_form_is_the_one_that_its_example_is_known_as() {
    for (form, text) in forms().into_iter().filter(|(_, text)| !text.is_empty()) {
        let mut read = statements(&text);
        let found = read.remove(0).read.unwrap_or_else(|unknown| panic!("{text}: {unknown}"));
        assert!(read.is_empty(), "{text}");
        assert_eq!(found.forms[0].name, form.name, "{text}");
        assert_eq!(found.forms[0].pattern, form.pattern, "{text}");
    }
    assert!(forms().len() > 200);
}

#[test]
fn a_truncated_statement_is_still_recognized() {
    let found = first("/* app */ UPDATE accounts SET balance = (SELECT sum(x", 4096).unwrap();
    assert_eq!((found.name.as_str(), found.mode_on("accounts")), ("UPDATE", Some(LockMode::RowExclusive)));
    assert_eq!(
        found.mode_on("shop.accounts"),
        Some(LockMode::RowExclusive),
        "on the search_path of its session"
    );
    assert_eq!(found.mode_on("old_accounts"), None);
    let other = first("UPDATE public.accounts SET x = 1", 4096).unwrap();
    assert_eq!(other.mode_on("accounts"), Some(LockMode::RowExclusive));
    assert_eq!(other.mode_on("shop.accounts"), None);
    assert_eq!(first("", 4096), None);
    assert_eq!(first("CREATE FUNC", 4096), None);
    assert_eq!(first("DROP TABLE a; SELECT '", 4096).unwrap().name, "DROP TABLE");
}

/// Reading time is linear in the length of the text; in quadratic time none of these would end.
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

#[test]
fn statements_have_the_line_of_their_first_word() {
    let text = "-- head\n\nSELECT 1;\n\n/* a\nb */ LOCK a;LOCK b;\n\\i x\nFLY";
    let lines: Vec<usize> = statements(text).iter().map(|piece| piece.line).collect();
    assert_eq!(lines, [3, 6, 6, 7, 8]);
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC{0,200}") {
        let _ = statements(&text);
        let _ = first(&text, 100);
    }

    #[test]
    fn any_words_are_read_without_a_panic(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "SELECT", "FROM", "WITH", "a", "b", "(", ")", ",", ".", ";", "AS", "ALTER", "TABLE", "ADD", "CONSTRAINT", "DEFAULT", "\"", "'", "$$", "$1",
            "/*", "*/", "--", "\n", "FOR", "UPDATE", "OF", "JOIN", "USING", "DELETE", "MERGE", "INTO", "INSERT", "CREATE", "INDEX", "ON", "ONLY", "*",
            "DROP", "IF", "EXISTS", "U&\"", "E'", "EXPLAIN", "PREPARE", "DECLARE", "COPY", "VACUUM", "LOCK", "UNION", "REFERENCES", "LIKE", "CONCURRENTLY",
        ]), 0..40)) {
        let text = words.join(" ");
        for found in statements(&text).into_iter().filter_map(|piece| piece.read.ok()) {
            prop_assert!(!found.name.is_empty() && !found.forms.is_empty());
        }
        let _ = first(&text, 100);
    }
}
