//! Text from the server that tries to act on the terminal, and text in odd encodings and widths.

use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;

use super::escapes::{Piece, pieces};
use super::incident::Incident;
use super::screen::{Screen, column_of, find};
use super::support;

/// Possible contents of a query: a title, a clipboard, clearing the screen, a cursor position, colours, a
/// bell, C1 controls, the marks of right-to-left text, a carriage return.
const ATTACK: &str = "\x1b]2;owned\x07\x1b]52;c;b3duZWQ=\x1b\\\x1b[2J\x1b[1;1HOWNED\x1b[31;5m\x07\u{9b}5mA\u{9d}2;owned\u{9c}\u{202e}B\u{200b}\r\n\x1bc\x08\x7f";

/// Sequences that the program itself writes.
fn is_own(piece: &Piece) -> bool {
    match piece {
        Piece::Text(text) => !text.contains(['\u{202e}', '\u{200b}']),
        Piece::Csi(parameters, last) => match last {
            'H' => parameters.split(';').all(|number| number.parse::<u16>().is_ok()),
            'm' => !parameters.split(';').any(|number| number == "5" && parameters.len() < 4),
            'J' => parameters == "2",
            'h' | 'l' => ["?1049", "?2004", "?25", "?2026", "?1000", "?1002", "?1003", "?1015", "?1006"]
                .contains(&parameters.as_str()),
            _ => false,
        },
        Piece::Other(_) => false,
    }
}

/// Opens the screens that show the text, quits, and checks all output.
fn visit_screens(mut screen: Screen, pid: i32, shown: &str) {
    let pid = pid.to_string();
    screen.shows(&pid);
    for (keys, text) in [("2", " Chains "), ("3", " Locks "), ("a", "of all types"), ("7", " Backends ")] {
        screen.keys(keys);
        screen.shows(text);
    }
    // Only one row, so that it is the one that is opened.
    screen.keys(&format!("/pid:{pid}<enter>"));
    screen.shows(&format!("/pid:{pid} shows 1 of"));
    screen.keys("g<enter>");
    screen.shows(&format!("Backend {pid}"));
    screen.wait_for(shown, |screen| screen.contents().replace('\n', "").contains(shown));
    screen.keys("<ctrl-c>");
    assert_eq!(screen.wait_exit(), 0);
    let seen = screen.seen();
    let asked = seen.emulator.callbacks();
    assert!(asked.titles.is_empty() && asked.copied.is_empty() && asked.bells == 0, "{asked:?}");
    for piece in pieces(&seen.raw) {
        assert!(is_own(&piece), "written to the terminal: {piece:?}");
    }
}

/// A session that has run a query and is idle in its transaction, holding a lock that another waits for.
async fn holder(connection: &Connection, text: &str) -> i32 {
    let client = &connection.client;
    client.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(77)").await.unwrap();
    let pid = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    client.batch_execute(&format!("SELECT 1 /* {text} seen */")).await.unwrap();
    pid
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn escape_sequences_in_queries_and_names_stay_text() {
    let incident = Incident::crowd(2).await;
    let info = incident.info().with_application_name(&format!("app{}", ATTACK.replace('\0', "")));
    let connection = support::open(&info).await;
    connection.client.batch_execute("CREATE SCHEMA \"\x1b]2;owned\x07\"").await.unwrap();
    connection.client.batch_execute("CREATE TABLE \"\x1b]2;owned\x07\".\"\x1b[2J\" ()").await.unwrap();
    let pid = holder(&connection, ATTACK).await;
    connection
        .client
        .batch_execute(&format!("LOCK \"\x1b]2;owned\x07\".\"\x1b[2J\"; SELECT 1 /* {ATTACK} seen */"))
        .await
        .unwrap();
    for arguments in [&[][..], &["--ascii"]] {
        let screen = incident.screen((140, 40), &[], arguments);
        visit_screens(screen, pid, "seen */");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bytes_that_are_no_utf_8_are_shown_as_data() {
    let incident = Incident::crowd(2).await;
    let client = support::open(&incident.info()).await.client;
    for (name, encoding) in [("latin", "LATIN1"), ("japanese", "EUC_JP"), ("raw", "SQL_ASCII")] {
        let create = format!("CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        client.batch_execute(&create).await.unwrap();
        let connection = support::open(&incident.info().with_dbname(name)).await;
        let text = if encoding == "EUC_JP" { "報告書" } else { "Größe \u{9b}31m" };
        let pid = holder(&connection, text).await;
        connection.client.batch_execute(&format!("SELECT 1 /* {text} seen */")).await.unwrap();
        visit_screens(incident.screen((140, 40), &[], &[]), pid, "seen */");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn text_after_wide_characters_is_in_its_column() {
    let incident = Incident::crowd(1).await;
    let (root, info) = (incident.root(), incident.info());
    let client = support::open(&info).await.client;
    client.batch_execute("CREATE ROLE \"報表生成者\" LOGIN").await.unwrap();
    let wide = incident.server.conninfo().replace("user=postgres", "user=報表生成者");
    let wide = support::open(&ConnInfo::parse(&wide).unwrap()).await;
    let pid = holder(&wide, "'宽字符 👩‍👩‍👧 é́' 'x'").await;
    let screen = incident.screen((160, 40), &[], &["--screen", "backends"]);
    screen.wait_for("the texts of both in one column", |screen| {
        let Some((head, column)) = find(screen, " QUERY") else { return false };
        let shown = |pid: i32, text: &str| {
            let row = (head + 1..39).find(|row| column_of(screen, *row, &pid.to_string()).is_some())?;
            column_of(screen, row, text)
        };
        find(screen, "報表生成者@").is_some()
            && [pid, root].iter().all(|pid| shown(*pid, "SELECT") == Some(column + 1))
    });
    // No text was pushed over the edge.
    let seen = screen.seen();
    let emulator = seen.emulator.screen();
    assert!((0..40).all(|row| !emulator.row_wrapped(row)), "{}", emulator.contents());
}
