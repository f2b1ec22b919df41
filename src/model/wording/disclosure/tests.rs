use proptest::prelude::*;

use super::*;

fn recorded(mode: Mode, statement: &str) -> String {
    shown_text(Channel::Recording(mode), statement).into_owned()
}

#[test]
fn strings_numbers_and_comments_are_taken_out() {
    for (query, expected) in [
        ("SELECT * FROM t1 WHERE a = 'it''s' AND b2 = 42", "SELECT * FROM t1 WHERE a = ? AND b2 = ?"),
        (r"SELECT E'a\'b', 1.5e10, x, 'c\', y", "SELECT ?, ?, x, ?"),
        ("SELECT $$it's$$, $fn$ $$ $fn$, $1, $12::int", "SELECT ?, ?, $1, $12::int"),
        ("SELECT \"a'b1\".c FROM \"T 2\"", "SELECT \"a'b1\".c FROM \"T 2\""),
        ("SELECT 1 -- don't\n, 2 /* a /* 'b' */ c */ FROM t", "SELECT ? --\n, ? /**/ FROM t"),
        ("UPDATE t SET secret = 'abc", "UPDATE t SET secret = ?"),
        ("报表 = '宽字符' AND n=-7", "报表 = ? AND n=-?"),
        ("SELECT $tag$ never ends", "SELECT ?"),
        ("a1b2 _3 0x1F", "a1b2 _3 ?"),
    ] {
        assert_eq!(without_literals(query), expected);
    }
}

#[test]
fn the_screen_shows_literals_except_in_statements_with_secrets() {
    for (statement, expected) in [
        ("SELECT 's3cret' -- x", "SELECT 's3cret' -- x"),
        ("SELECT * FROM passengers, shipping, bypass WHERE id = 5", ""),
        ("ALTER ROLE r PASSWORD 's3cret' VALID UNTIL '2027'", "ALTER ROLE r PASSWORD ? VALID UNTIL ?"),
        ("ALTER ROLE r PASSWORD NULL", ""),
        ("CREATE USER u ENCRYPTED PASSWORD \"s3cret\" LOGIN", "CREATE USER u ENCRYPTED PASSWORD ? LOGIN"),
        ("ALTER USER u PASSWORD s3cret; SELECT x", "ALTER USER u PASSWORD ?; SELECT x"),
        ("ALTER USER u PASSWORD p@s3cret!'x", "ALTER USER u PASSWORD ?"),
        ("SET app.password = s3cret.a, b; SELECT x", "SET app.password = ?; SELECT x"),
        ("ALTER ROLE r SET app.token TO s3cret", "ALTER ROLE r SET app.token TO ?"),
        (
            "UPDATE u SET pwd = crypt('s3cret', salt) WHERE id = 1",
            "UPDATE u SET pwd = crypt(?, salt) WHERE id = ?",
        ),
        ("SELECT crypt(\"s3cret\", gen_salt($1))", "SELECT crypt(?, gen_salt($1))"),
        ("SELECT password FROM t WHERE password = $1 AND token::text <> u.token", ""),
        ("ALTER SUBSCRIPTION s CONNECTION \"host=a password=s3cret\"", "ALTER SUBSCRIPTION s CONNECTION ?"),
        ("COPY t FROM PROGRAM 'curl -u me:s3cret x'", "COPY t FROM PROGRAM ?"),
        ("SELECT program FROM t WHERE id = 1", ""),
        ("EXECUTE p('s3cret', 1)", "EXECUTE p(?, ?)"),
        ("postgres://me:s3cret@db/app", "postgres://?@db/app"),
        ("SELECT dblink('postgres://me:s3cret@db/app', 'x')", "SELECT dblink(?, ?)"),
        ("SELECT \"userPwd\" FROM t WHERE a = 's3cret'", "SELECT \"userPwd\" FROM t WHERE a = ?"),
        ("SELECT 1 -- the passWORD is s3cret", "SELECT ? --"),
    ] {
        let expected = if expected.is_empty() { statement } else { expected };
        assert_eq!(shown_text(Channel::Screen, statement), expected);
    }
}

#[test]
fn each_channel_shows_its_own_form_of_a_statement() {
    let statement = QueryText::from("SELECT  a, 's3cret' FROM t");
    for (channel, expected) in [
        (Channel::Screen, "SELECT  a, 's3cret' FROM t"),
        (Channel::Check, "SELECT a, ? FROM t"),
        (Channel::Report(Mode::Literals), "SELECT  a, ? FROM t"),
        (Channel::Recording(Mode::Queries), "query 9ce58848"),
        (Channel::Notification, ""),
    ] {
        assert_eq!(shown(channel, &statement), expected, "{channel:?}");
    }
    let number = recorded(Mode::Queries, statement.unredacted());
    assert_eq!(number, recorded(Mode::Queries, "SELECT  a, 'x' FROM t"));
    assert_eq!(number, recorded(Mode::Queries, &number), "it stays as it is");
    assert!(!format!("{statement:?}").contains("s3cret"), "{statement:?}");
}

/// The cost of a hostile statement is linear in its length.
#[test]
fn the_cost_grows_with_the_length_alone() {
    for part in ["program ", "://a@b ", "'a' --\n", "$a", "/*", "\"x y\" password ", "'' ", "password=x("] {
        let began = crate::clock::monotonic();
        let text = part.repeat(200_000 / part.len());
        drop(without_literals(&text));
        drop(fingerprint::fingerprint(&text));
        // A quadratic cost takes minutes.
        assert!(began.elapsed().as_secs() < 20, "{part}: {:?}", began.elapsed());
    }
}

proptest! {
    #[test]
    fn any_text_is_taken_and_none_twice(text in "[a-zE'\"$*/\\\\0-9 \n-]{0,60}") {
        let once = without_literals(&text);
        prop_assert!(once.len() <= text.len() + 8);
        prop_assert_eq!(without_literals(&once), once);
    }
}
