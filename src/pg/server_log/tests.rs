//! Lines as servers write them, and forged lines.

use chrono::TimeDelta;

use super::*;

fn entries(text: &[u8]) -> (Result<(Format, Passed), String>, Vec<LogEntry<'static>>) {
    let mut all = Vec::new();
    let read = read(text, &mut |entry| {
        let own = |text: &Cow<'_, str>| Cow::Owned(text.clone().into_owned());
        all.push(LogEntry {
            at: entry.at,
            pid: entry.pid,
            session_start: entry.session_start,
            user: own(&entry.user),
            application: own(&entry.application),
            severity: own(&entry.severity),
            code: own(&entry.code),
            message: own(&entry.message),
            detail: own(&entry.detail),
            context: own(&entry.context),
            statement: own(&entry.statement),
            ..LogEntry::default()
        });
    });
    (read.map_err(|error| error.to_string()), all)
}

/// A record as 17 writes it; `…` for values that do not matter.
fn csv(
    time: &str,
    pid: i32,
    (code, message, detail, context, statement): (&str, &str, &str, &str, &str),
) -> String {
    let quoted = |text: &str| {
        if text.is_empty() { String::new() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
    };
    format!(
        "{time},\"app\",\"shop\",{pid},\"[local]\",6922fe60.{pid:x},3,\"SELECT waiting\",2025-11-23 13:30:24 CET,3/17,771,LOG,{code},{},{},,,,{},{},,,\"web\",\"client backend\",,0\n",
        quoted(message),
        quoted(detail),
        quoted(context),
        quoted(statement)
    )
}

/// 0x6922fe60 is 2025-11-23 12:30:24 UTC.
const TIME: &str = "2025-11-23 13:31:00.500 CET";

#[test]
fn the_time_zone_is_derived_from_the_session_start() {
    let (read, all) = entries(csv(TIME, 4410, ("00000", "x", "", "", "")).as_bytes());
    assert_eq!(read, Ok((Format::Csv, Passed::default())));
    assert_eq!(all[0].at.to_rfc3339(), "2025-11-23T12:31:00.500+00:00");
    assert_eq!(all[0].session_start.unwrap().to_rfc3339(), "2025-11-23T12:30:24+00:00");
    // A session that began in winter writes in summer: other sessions show what CEST is.
    let summer = csv("2026-06-01 14:00:00.000 CEST", 1, ("00000", "x", "", "", ""));
    let (read, _) = entries(summer.as_bytes());
    assert_eq!(read, Ok((Format::Csv, Passed { damaged: 0, unzoned: 1 })));
    let other = summer
        .replace("6922fe60.1", "6a1d7440.1")
        .replace("2025-11-23 13:30:24 CET", "2026-06-01 14:00:00 CEST");
    let (_, all) = entries(format!("{other}{summer}").as_bytes());
    assert_eq!(all.len(), 2);
    assert_eq!(all[1].at.to_rfc3339(), "2026-06-01T12:00:00+00:00");
    // Zones with an explicit offset need no other entries.
    for (zone, utc) in [("UTC", "14:00"), ("+02", "12:00"), ("-0330", "17:30")] {
        let line =
            format!("{{\"timestamp\":\"2026-06-01 14:00:00.000 {zone}\",\"pid\":1,\"message\":\"x\"}}\n");
        let (read, all) = entries(line.as_bytes());
        assert_eq!(read.unwrap().0, Format::Json);
        assert_eq!(all[0].at.format("%H:%M").to_string(), utc, "{zone}");
    }
}

#[test]
fn a_record_inside_a_quoted_value_is_not_read() {
    let forged = csv(TIME, 1, ("40P01", "deadlock detected", "", "", ""));
    let statement = format!("SELECT 'x\n{forged}{}'", "\"".repeat(3));
    let text = csv(TIME, 4410, ("57014", "canceling statement due to user request", "", "", &statement));
    let (read, all) = entries(text.as_bytes());
    assert_eq!(read, Ok((Format::Csv, Passed::default())));
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].statement, statement);
    // Even if it is very long.
    let long = statement.repeat(2_000);
    let (_, all) = entries(csv(TIME, 4410, ("57014", "x", "", "", &long)).as_bytes());
    assert_eq!((all.len(), all[0].statement.len()), (1, 64 << 10));
}

#[test]
fn reading_continues_after_a_torn_record() {
    let (one, two) =
        (csv(TIME, 1, ("00000", "x", "", "", "SELECT 1")), csv(TIME, 2, ("00000", "y", "", "", "SELECT 2")));
    // The machine crashed in the middle of a value.
    let torn = &one[..one.len() - 60];
    let (read, all) = entries(format!("{torn}\n{one}{two}{two}").as_bytes());
    assert_eq!(read.unwrap().1.damaged, 1);
    assert_eq!(all.iter().filter(|entry| entry.pid == 2).count(), 2, "{all:?}");
    // The last record is still being written.
    let (read, all) = entries(format!("{one}{torn}").as_bytes());
    assert_eq!((read, all.len()), (Ok((Format::Csv, Passed::default())), 1));
    let json = "{\"timestamp\":\"2026-06-01 14:00:00.000 UTC\",\"pid\":7,\"message\":\"x\"}\n";
    let (read, all) = entries(format!("{json}{{\"timest\n\n{json}{{\"timestamp\":\"2026").as_bytes());
    assert_eq!((read, all.len()), (Ok((Format::Json, Passed { damaged: 1, unzoned: 0 })), 2));
}

#[test]
fn a_file_that_is_not_a_log_is_rejected() {
    for text in [
        "",
        "2025-11-23 13:31:00.500 CET [4410] LOG:  process 4410 still waiting\n",
        "\u{7f}ELF",
        "{}\n",
        "1,2,3\n",
    ] {
        let (read, all) = entries(text.as_bytes());
        assert!(read.is_err() && all.is_empty(), "{text}");
    }
}

fn entry<'a>(code: &'a str, message: &'a str, detail: &'a str, context: &'a str) -> LogEntry<'a> {
    let at = Timestamp::UNIX_EPOCH + TimeDelta::days(20_000);
    LogEntry {
        at,
        pid: 4410,
        code: code.into(),
        message: message.into(),
        detail: detail.into(),
        context: context.into(),
        ..LogEntry::default()
    }
}

#[test]
fn waits_are_understood() {
    let detail = "Processes holding the lock: 4312, 4313. Wait queue: 4410, 4466.";
    let still = "process 4410 still waiting for ShareLock on transaction 771 after 1000.123 ms";
    let found = entry("00000", still, detail, "while updating tuple (0,1) in relation \"accounts\"");
    let Some(LogMessage::Wait(wait)) = parse(&found) else { panic!("{found:?}") };
    assert_eq!((wait.kind, wait.mode, wait.on), (WaitKind::Still, "ShareLock", "transaction 771"));
    assert!((wait.after - 1.000_123).abs() < 1e-9);
    assert_eq!((wait.holders, wait.queue), (vec![4312, 4313], vec![4410, 4466]));
    for (message, kind) in [
        (
            "process 4410 acquired ExclusiveLock on tuple (0,7) of relation 16398 of database 5 after 2000.001 ms",
            WaitKind::Acquired,
        ),
        (
            "process 4410 avoided deadlock for ShareLock on transaction 1 by rearranging queue order after 5.000 ms",
            WaitKind::Still,
        ),
        (
            "process 4410 detected deadlock while waiting for ShareLock on transaction 1 after 5.000 ms",
            WaitKind::Failed,
        ),
    ] {
        let found = entry("00000", message, "", "");
        assert!(
            matches!(parse(&found), Some(LogMessage::Wait(wait)) if wait.kind == kind && lock_tag(wait.on).is_some()),
            "{message}"
        );
    }
    for message in [
        "process 4411 acquired ShareLock on transaction 1 after 5.000 ms",
        "process 4410 acquired ShareLock on transaction 1 after NaN ms",
        "process 4410 acquired ShareLock on transaction 1 after -5 ms",
        "process 4410 acquired ",
        "process -",
    ] {
        assert_eq!(parse(&entry("00000", message, "", "")), None, "{message}");
    }
}

/// Translations of PostgreSQL 17.
#[test]
fn a_lock_timeout_and_nowait_differ_in_every_language() {
    let of = |message: &str| match parse(&entry("55P03", message, "", "")) {
        Some(LogMessage::Ended(ended)) => ended,
        other => panic!("{message}: {other:?}"),
    };
    for message in [
        "canceling statement due to lock timeout",
        "storniere Anfrage wegen Zeitüberschreitung einer Sperre",
        "annulation de la requête à cause du délai écoulé pour l'obtention des verrous",
    ] {
        assert_eq!(of(message), StatementEnd::LockTimeout, "{message}");
    }
    for message in [
        "could not obtain lock on row in relation \"accounts\"",
        "konnte Sperre für Zeile in Relation »accounts« nicht setzen",
        "n'a pas pu obtenir un verrou sur la ligne dans la relation « accounts »",
    ] {
        assert_eq!(of(message), StatementEnd::NoWait, "{message}");
    }
}

/// `jsonlog` leaves out empty values and `00000`.
#[test]
fn a_json_line_is_read_like_a_csv_record() {
    let line = "{\"timestamp\":\"2025-11-23 13:31:00.500 CET\",\"user\":\"app\",\"dbname\":\"shop\",\"pid\":4410,\
        \"session_id\":\"6922fe60.113a\",\"line_num\":3,\"ps\":\"SELECT waiting\",\"session_start\":\"2025-11-23 13:30:24 CET\",\
        \"error_severity\":\"LOG\",\"message\":\"process 4410 still waiting for ShareLock on transaction 771 after 1000.123 ms\",\
        \"detail\":\"Process holding the lock: 4312. Wait queue: 4410.\",\"statement\":\"SELECT 'a\\nb'\",\
        \"application_name\":\"web\",\"backend_type\":\"client backend\",\"query_id\":0}\n";
    let (read, all) = entries(line.as_bytes());
    assert_eq!(read, Ok((Format::Json, Passed::default())));
    let entry = &all[0];
    assert_eq!((&*entry.user, &*entry.application, &*entry.statement), ("app", "web", "SELECT 'a\nb'"));
    assert!(matches!(parse(entry), Some(LogMessage::Wait(wait)) if wait.holders == [4312]), "{entry:?}");
}

/// `RAISE LOG` writes any text with any code.
#[test]
fn messages_raised_by_a_function_are_ignored() {
    let still = "process 4410 still waiting for ShareLock on transaction 771 after 1000.123 ms";
    let raised = "PL/pgSQL function inline_code_block line 1 at RAISE\nSQL statement \"x\"";
    assert_eq!(parse(&entry("00000", still, "", raised)), None);
    assert_eq!(parse(&entry("40P01", "deadlock detected", "Process 1 waits", raised)), None);
    assert_eq!(parse(&entry("57014", "x", "", "PL/Perl function \"f\"")), None);
    let newline = "PL/pgSQL function pg_temp_3.\"a\nb\"() line 1 at RAISE";
    assert_eq!(parse(&entry("00000", still, "", newline)), None, "a name can contain a newline");
    let within = "SQL statement \"UPDATE t SET a = 1\"\nPL/pgSQL function f() line 3 at SQL statement";
    assert!(parse(&entry("00000", still, "", within)).is_some());
}

#[test]
fn a_deadlock_has_its_parties_and_their_statements() {
    let waits = "Process 4410 waits for ShareLock on transaction 772; blocked by process 4312.\n\
                 Process 4312 waits for ShareLock on transaction 771; blocked by process 4410.";
    let detail = format!("{waits}\nProcess 4410: UPDATE t\n SET a = 1\nProcess 4312: UPDATE t SET a = 2");
    let of = |detail: &str| match parse(&entry("40P01", "deadlock detected", detail, "")) {
        Some(LogMessage::Deadlock(deadlock)) => (deadlock.waits.len(), deadlock.statements.join("|")),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(&detail), (2, "UPDATE t\n SET a = 1|UPDATE t SET a = 2".to_owned()));
    // A statement contains a line that imitates another one: then no statement is reported.
    let forged = format!(
        "{waits}\nProcess 4410: SELECT '\nProcess 4312: DROP TABLE t'\nProcess 4312: UPDATE t SET a = 2"
    );
    assert_eq!(of(&forged), (2, String::new()));
    assert_eq!(of(waits), (2, String::new()));
    assert_eq!(of("nothing that is known"), (0, String::new()));
}

#[test]
fn locks_have_their_tags() {
    use crate::model::lock::LockType;
    for (text, locktype) in [
        ("relation 16398 of database 5", LockType::Relation),
        ("tuple (4,2) of relation 16398 of database 5", LockType::Tuple),
        ("transaction 771", LockType::TransactionId),
        ("advisory lock [5,0,42,1]", LockType::Advisory),
        ("extension of relation 1 of database 5", LockType::Extend),
        ("object 1 of class 2 of database 5", LockType::Object),
    ] {
        assert_eq!(lock_tag(text).map(|tag| tag.locktype()), Some(locktype), "{text}");
    }
    for text in [
        "",
        "relation x of database 5",
        "relation 99999999999 of database 5",
        "tuple (4,70000) of relation 1 of database 5",
    ] {
        assert_eq!(lock_tag(text), None, "{text}");
    }
}

#[test]
fn a_forged_deadlock_message_is_bounded() {
    let of = |detail: &str| match parse(&entry("40P01", "deadlock detected", detail, "")) {
        Some(LogMessage::Deadlock(deadlock)) => (deadlock.waits.len(), deadlock.statements.len()),
        other => panic!("{other:?}"),
    };
    let parties = "Process 1 waits for A on B; blocked by process 2.\n".repeat(20_000);
    assert_eq!(of(&(parties + &"Process 1: \n".repeat(100_000))), (100, 0));
    // The statement of one process occurs twice, and that of the other not at all.
    let waits = "Process 1 waits for A on B; blocked by process 2.\nProcess 2 waits for A on B; blocked by process 1.";
    assert_eq!(of(&format!("{waits}\nProcess 1: SELECT\nProcess 1: forged")), (2, 0));
}
