//! Redaction of statements, compared with PostgreSQL's own scanner (`libpg_query`, from npm) and, if `libpg_query` reads comments in
//! another way, with a server.

#[path = "../../support/suite.rs"]
mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use locktop::model::QueryText;
use locktop::model::disclosure::{Channel, Mode, shown};
use serde::Deserialize;

use crate::shapes::shapes;
use support::{conninfo, open, server};

/// The package, at a version whose token numbers these are.
const PACKAGE: &str = "libpg-query@18.1.5";

/// FCONST, SCONST, USCONST, BCONST, XCONST and ICONST of `src/include/parser/kwlist.h` and `gram.y`.
const LITERALS: [u32; 6] = [260, 261, 262, 263, 264, 266];
const PARAMETER: u32 = 267;
const LINE_COMMENT: u32 = 275;
const COMMENT: u32 = 276;

/// Where a token begins and ends, in bytes, its number, and its text.
type Token = (usize, usize, u32, String);

/// The answer of the scanner for a statement.
#[derive(Deserialize)]
struct Answer {
    tokens: Result<Vec<Token>, String>,
    normalized: Result<String, String>,
}

/// The directory of the package; it is fetched the first time, by the first test that needs it.
fn directory() -> &'static Path {
    static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("scanner");
        std::fs::create_dir_all(&directory).unwrap();
        if !directory.join("node_modules/libpg-query/wasm").is_dir() {
            std::fs::write(directory.join("package.json"), r#"{"private": true}"#).unwrap();
            let mut npm = Command::new("npm");
            npm.args([
                "install",
                "--loglevel",
                "error",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                PACKAGE,
            ]);
            let left = npm.current_dir(&directory).stdin(Stdio::null()).output();
            let left = left.expect("npm is needed for PostgreSQL's scanner");
            assert!(left.status.success(), "{left:?}");
        }
        directory
    });
    &DIRECTORY
}

/// The answers of the scanner for these statements.
fn scanned(statements: &[String]) -> Vec<Answer> {
    let mut node = Command::new("node");
    node.args(["-e", include_str!("scan.cjs")]).current_dir(directory());
    let mut node = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node comes with npm");
    let mut input = node.stdin.take().unwrap();
    let text = serde_json::to_string(statements).unwrap();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A statement without the tokens that are literals, and without the text of its comments.
fn without(statement: &str, tokens: &[Token]) -> String {
    let (mut left, mut end) = (String::new(), 0);
    for (at, (from, to, kind, _)) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        // N'…' is two tokens, and one literal.
        let is_national = next.is_some_and(|next| next.0 == *to && LITERALS.contains(&next.2))
            && statement[*from..*to].eq_ignore_ascii_case("n");
        let shown = match *kind {
            kind if LITERALS.contains(&kind) => "?",
            LINE_COMMENT => "--",
            COMMENT => "/**/",
            _ => &statement[*from..*to],
        };
        left.push_str(&statement[end..*from]);
        left.push_str(if is_national { "" } else { shown });
        end = *to;
    }
    left + &statement[end..]
}

fn redacted(mode: Mode, statement: &str) -> String {
    shown(Channel::Recording(mode), &QueryText::from(statement)).into_owned()
}

/// The words and signs of a statement, with `?` for each value: `-1` is one to `pg_stat_statements`.
fn outline(tokens: &[Token]) -> Vec<&str> {
    let mut outline = Vec::new();
    for (_, _, kind, text) in tokens {
        if LITERALS.contains(kind) || *kind == PARAMETER {
            if outline.last().is_some_and(|last: &&str| *last == "-" || last.eq_ignore_ascii_case("n")) {
                outline.pop();
            }
            outline.push("?");
        } else if ![LINE_COMMENT, COMMENT].contains(kind) {
            outline.push(text);
        }
    }
    outline
}

#[test]
fn exactly_the_literals_of_the_servers_scanner_are_left_out() {
    let literals = shapes().literals;
    assert!(literals.len() >= 200, "{}", literals.len());
    let answers = scanned(&literals);
    let kept: Vec<String> =
        answers.iter().map(|answer| answer.normalized.clone().unwrap_or_default() + ";").collect();
    let (mut wrong, mut alike) = (Vec::new(), 0);
    for ((statement, answer), kept) in literals.iter().zip(&answers).zip(scanned(&kept)) {
        let tokens = answer.tokens.as_ref().unwrap_or_else(|error| panic!("{statement}: {error}"));
        let (expected, found) = (without(statement, tokens), redacted(Mode::Literals, statement));
        if expected != found {
            wrong.push(format!("{statement:?}\n  the server's: {expected:?}\n  locktop's:    {found:?}"));
        }
        assert_eq!(found, redacted(Mode::Names, statement));
        // `pg_stat_statements` has `$1` where a literal was, which clings to the word before it if there was no space.
        let kept = kept.tokens.unwrap_or_default();
        alike += usize::from(kept.split_last().is_some_and(|(_, kept)| outline(kept) == outline(tokens)));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), literals.len(), wrong.join("\n"));
    assert!(alike >= 180, "pg_stat_statements keeps the same of only {alike}");
}

/// The redacted text has no literal, whatever the statement: also for the scanner of the server.
#[test]
fn the_servers_scanner_finds_no_literal_in_redacted_statements() {
    let shapes = shapes();
    let channels = [Channel::Recording(Mode::Literals), Channel::Recording(Mode::Names), Channel::Check];
    let left: Vec<String> = (shapes.all().into_iter())
        .flat_map(|statement| channels.map(|channel| shown(channel, &statement.into()).into_owned()))
        .filter(|left| !left.is_empty())
        .collect();
    let mut wrong = Vec::new();
    for (left, answer) in left.iter().zip(scanned(&left)) {
        match answer.tokens {
            // A name in quotes that a fingerprint cuts.
            Err(error) if error.contains("unterminated quoted identifier") => {}
            Err(error) => wrong.push(format!("{left:?}: {error}")),
            Ok(tokens) => {
                let literals = tokens.iter().filter(|token| LITERALS.contains(&token.2));
                let found = literals.map(|token| format!("{left:?}: {:?}", token.3));
                let comments = tokens.iter().filter(|token| [LINE_COMMENT, COMMENT].contains(&token.2));
                let comments = comments.filter(|token| !matches!(&*token.3, "--" | "/**/"));
                wrong.extend(found.chain(comments.map(|token| format!("{left:?}: {:?}", token.3))));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[tokio::test]
async fn strings_continued_over_a_comment_are_one_string() {
    let client = open(&conninfo(server().await)).await.client;
    for (statement, value) in shapes().continued {
        let row = client.query_one(&statement, &[]).await.unwrap();
        assert_eq!((row.len(), row.get::<_, &str>(0)), (1, value.as_str()), "{statement}");
        assert_eq!(redacted(Mode::Literals, &statement), "SELECT ?", "{statement}");
    }
}

/// Text after a backslash and a quote is a string or not, depending on a setting of the session that no other session sees.
#[tokio::test]
async fn the_rest_is_left_out_if_a_setting_decides_what_is_a_string() {
    let client = open(&conninfo(server().await)).await.client;
    let statement = r"SELECT 'it\'s s3cret'::text";
    client
        .batch_execute("SET standard_conforming_strings = off; SET escape_string_warning = off")
        .await
        .unwrap();
    assert_eq!(client.query_one(statement, &[]).await.unwrap().get::<_, &str>(0), "it's s3cret");
    assert_eq!(redacted(Mode::Literals, statement), "SELECT ?");
    for statement in shapes().backslashes {
        for mode in [Mode::Literals, Mode::Queries, Mode::Names] {
            assert!(!redacted(mode, &statement).contains("s3c"), "{statement}");
        }
    }
}
