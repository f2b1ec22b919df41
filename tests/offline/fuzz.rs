//! User input and server responses, damaged at random: nothing panics and nothing hangs.
//!
//! Each target gets valid inputs that were changed in a few places: bytes flipped, omitted, repeated, moved
//! from another input, or replaced by bytes that parsers often handle wrongly. The numbers depend on a seed,
//! which is printed if a target fails: `LOCKTOP_FUZZ_SEED` repeats the run. Five seconds for each target, 30
//! with `LOCKTOP_LONG`; `LOCKTOP_FUZZ_SECONDS` sets another time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use locktop::app::filter::Filter;
use locktop::app::panes::SortValue;
use locktop::clock;
use locktop::config::adapter::parse_adapter;
use locktop::config::{Config, DEFAULT_TEXT};
use locktop::keys::Key;
use locktop::model::{disclosure, fingerprint, statement};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::decode::backends::{BackendsDecoder, KnownBackends, PreparedRows};
use locktop::pg::decode::locks::{KnownLocks, LocksDecoder, ReadingSession};
use locktop::pg::decode::{Encodings, Texts};
use locktop::pg::server_log;
use locktop::redis::parse_list;

/// Longer inputs are cut: an input that grows without limit would use up the time.
const LONGEST: usize = 64 * 1024;

/// Bytes that parsers often handle wrongly.
const AWKWARD: &[&[u8]] = &[
    b"",
    b"\0",
    b"'",
    b"''",
    b"\"",
    b"\\",
    b"$$",
    b"$a$",
    b"/*",
    b"*/",
    b"--",
    b"\n",
    b"\r\n",
    b"\t",
    b"=",
    b"://",
    b"@",
    b"[",
    b"]",
    b"{",
    b"%",
    b"%00",
    b"%zz",
    b"?",
    b"&",
    b":",
    b"|",
    b"!",
    b"<",
    b">",
    b"-1",
    b"9223372036854775808",
    b"1e999",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xef\xbb\xbf",
    b"\xe6\x8a\xa5",
    b"\xf0\x9f\x94\x92",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\x1b]2;",
    b"E'\\x",
    b"U&'",
    b"\"\"\"",
    b"'''",
];

/// A number below a limit; 0 if the limit is 0.
fn below(random: &mut Rng, limit: usize) -> usize {
    random.usize(..limit.max(1))
}

fn one<'a, T>(random: &mut Rng, all: &'a [T]) -> &'a T {
    &all[below(random, all.len())]
}

/// A range of the input; short ranges are more frequent than long ones.
fn part(random: &mut Rng, length: usize) -> std::ops::Range<usize> {
    let begin = below(random, length + 1);
    let most = (length - begin).min(1 << below(random, 8));
    begin..begin + below(random, most + 1)
}

/// An input with a few changes.
fn damaged(random: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = one(random, corpus).clone();
    for _ in 0..=below(random, 4) {
        let place = part(random, input.len());
        match below(random, 6) {
            0 if !input.is_empty() => {
                let at = below(random, input.len());
                input[at] ^= 1 << below(random, 8);
            }
            1 => {
                input.drain(place);
            }
            2 => {
                let copy = input[place.clone()].to_vec();
                let copies = 1 + below(random, 40);
                input.splice(place.end..place.end, copy.repeat(copies));
            }
            3 => {
                let other = one(random, corpus);
                let taken = part(random, other.len());
                input.splice(place, other[taken].to_vec());
            }
            4 => input.truncate(place.start),
            _ => {
                let awkward = one(random, AWKWARD).to_vec();
                input.splice(place, awkward);
            }
        }
        input.truncate(LONGEST);
    }
    input
}

fn seconds() -> Duration {
    let given = std::env::var("LOCKTOP_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let is_long = std::env::var_os("LOCKTOP_LONG").is_some_and(|value| !value.is_empty() && value != "0");
    Duration::from_secs(given.unwrap_or(if is_long { 30 } else { 5 }))
}

fn seed() -> u64 {
    let given = std::env::var("LOCKTOP_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| {
        let now = clock::wall().timestamp_nanos_opt().unwrap();
        now.cast_unsigned()
    })
}

/// Runs a target on damaged inputs. At least one undamaged input must be valid, or nothing would be tested.
fn feed<T>(corpus: &[Vec<u8>], target: impl Fn(&[u8]) -> Option<T>) {
    assert!(corpus.iter().any(|input| target(input).is_some()), "no undamaged input is valid");
    let (begun, seed) = (clock::monotonic(), seed());
    let mut random = Rng::with_seed(seed);
    let (mut inputs, mut slowest) = (0_u64, (Duration::ZERO, 0));
    while begun.elapsed() < seconds() {
        let input = damaged(&mut random, corpus);
        inputs += 1;
        let before = clock::monotonic();
        let is_well = catch_unwind(AssertUnwindSafe(|| drop(target(&input)))).is_ok();
        assert!(is_well, "LOCKTOP_FUZZ_SEED={seed}, input {inputs}: {}", input.escape_ascii());
        slowest = slowest.max((before.elapsed(), input.len()));
    }
    let (time, length) = slowest;
    eprintln!("{inputs} inputs from seed {seed}; the slowest took {} ms, {length} bytes", time.as_millis());
}

/// Text as it is read from a file, a key or a server: invalid UTF-8 is replaced.
fn feed_text<T>(corpus: &[&str], target: impl Fn(&str) -> Option<T>) {
    let corpus: Vec<Vec<u8>> = corpus.iter().map(|text| text.as_bytes().to_vec()).collect();
    feed(&corpus, |input| target(&String::from_utf8_lossy(input)));
}

/// The contents of the files of a folder that have this extension.
fn files(folder: &str, ending: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let wanted = paths.into_iter().filter(|path| path.extension().is_some_and(|found| found == ending));
    wanted.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn connection_strings() {
    feed_text(
        &[
            "host=db.example.com port=5433 dbname='my app' user=ops password='it\\'s' sslmode=verify-full connect_timeout=5",
            "postgresql://ops:hush%20x@[::1]:5432,db2:5433/app?sslmode=require&application_name=x&options=-c%20geqo%3Doff",
            "postgres:///app?host=/var/run/postgresql&target_session_attrs=read-write",
            "service=prod hostaddr=10.0.0.1,10.0.0.2 load_balance_hosts=random keepalives_idle=3",
            "app",
        ],
        |text| ConnInfo::parse(text).ok(),
    );
}

#[test]
fn filters() {
    const ALL: [&str; 5] = ["pid", "who", "wait", "state", "held"];
    feed_text(
        &[
            "who:web|batch !idle wait>30 \"quoted text\"",
            "pid=4312 held<2m",
            "!state:\"idle in transaction\"",
            "10:30 a->b ärger",
        ],
        |text| {
            let filter = Filter::parse(text, &ALL).ok()?;
            Some(filter.passes(ALL.len() - 1, |at| match at {
                0 => SortValue::Number(4312.0),
                1 => SortValue::Text("app@Wäb".into()),
                2 => SortValue::State("idle in transaction".into(), "idle in xact 3m".into()),
                _ => SortValue::Missing,
            }))
        },
    );
}

#[test]
fn configs() {
    let mut corpus = vec![DEFAULT_TEXT.to_owned()];
    corpus.extend(files("tests/valid_configs", "toml"));
    corpus.extend(files("tests/invalid_configs", "toml"));
    let corpus: Vec<&str> = corpus.iter().map(String::as_str).collect();
    feed_text(&corpus, |text| Config::parse(text, Path::new("config.toml")).ok());
}

#[test]
fn adapters() {
    let corpus = files("assets/adapters", "toml");
    let corpus: Vec<&str> = corpus.iter().map(String::as_str).collect();
    feed_text(&corpus, |text| parse_adapter(text, Path::new("adapter.toml")).ok());
}

#[test]
fn statements() {
    let mut corpus: Vec<String> = statement::forms().into_iter().map(|(_, example)| example).collect();
    corpus.push(
        "SELECT $a$x'y$a$, E'\\'', U&'\\0041', 1e10, /* a /* b */ c */ -- d\n $1 FROM \"T\"".to_owned(),
    );
    corpus.push("/*controller='pay',action='book'*/ UPDATE t SET a = -1.5 WHERE b IN (1, 2, 3)".to_owned());
    let corpus: Vec<&str> = corpus.iter().map(String::as_str).collect();
    feed_text(&corpus, |text| {
        let short = fingerprint::fingerprint(text);
        drop((fingerprint::tag(text), disclosure::without_literals(text)));
        drop(statement::statements(text));
        statement::first(text, 200).map(|_| short)
    });
}

#[test]
fn keys_and_addresses() {
    feed_text(
        &[
            "7sj<enter>/who:web<esc><ctrl-c>",
            "ctrl-x",
            "<f10><shift-tab>",
            "redis://:hush@two:7000/3, rediss://one",
        ],
        |text| {
            drop(Key::parse(text));
            let keys = Key::parse_all(text).is_ok();
            (parse_list(text).is_ok() || keys).then_some(())
        },
    );
}

/// A COPY of these rows.
fn copy(rows: &[Vec<Option<&[u8]>>]) -> Vec<u8> {
    let mut bytes = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for row in rows {
        bytes.extend(i16::try_from(row.len()).unwrap().to_be_bytes());
        for value in row {
            match value {
                None => bytes.extend((-1_i32).to_be_bytes()),
                Some(value) => {
                    bytes.extend(i32::try_from(value.len()).unwrap().to_be_bytes());
                    bytes.extend_from_slice(value);
                }
            }
        }
    }
    bytes.extend((-1_i16).to_be_bytes());
    bytes
}

#[test]
fn rows_of_pg_locks() {
    let number = |number: u32| number.to_be_bytes();
    let (datid, relation, pid, cost) = (number(5), number(16_398), number(4312), number(900));
    let held = vec![
        Some(&b"relation"[..]),
        Some(&datid),
        Some(&relation),
        None,
        None,
        None,
        None,
        Some(b"3/17"),
        Some(&pid),
        Some(b"RowExclusiveLock"),
        None,
    ];
    let advisory = vec![
        None,
        None,
        None,
        None,
        Some(&relation[..]),
        Some(&pid),
        None,
        Some(b"4/2"),
        Some(&pid),
        None,
        Some(&[0; 8]),
    ];
    let tuple = vec![
        Some(&b"tuple"[..]),
        Some(&datid),
        Some(&relation),
        Some(b"4,2"),
        None,
        None,
        None,
        Some(b"3/17"),
        Some(&pid),
        None,
        None,
    ];
    let last = vec![
        Some(&b"7"[..]),
        None,
        None,
        Some(b"4711,-4712"),
        Some(&cost[..]),
        None,
        None,
        None,
        None,
        Some(b"1795361880.5"),
        None,
    ];
    let corpus = [copy(&[held, advisory, tuple, last.clone()]), copy(&[last])];
    let before = KnownLocks::default();
    feed(&corpus, |input| {
        let mut locks = LocksDecoder::new(ReadingSession { datid: 5, pid: 1 }, &before, "7");
        // Also split into two messages, as an incorrect server may send it.
        let (first, second) = input.split_at(input.len() / 2);
        let mut halves = LocksDecoder::new(ReadingSession { datid: 5, pid: 1 }, &before, "7");
        if halves.read(first).and_then(|()| halves.read(second)).is_ok() {
            drop(halves.finish());
        }
        locks.read(input).ok()?;
        locks.finish().ok()
    });
}

#[test]
fn rows_of_sessions() {
    let number = 4312_u32.to_be_bytes();
    let values: [Option<&[u8]>; 4] = [Some(&number), None, Some(b"idle in transaction"), Some(&[7; 8])];
    let session: Vec<Option<&[u8]>> = (0..19).map(|at| values[at % 4]).collect();
    let mut last: Vec<Option<&[u8]>> = vec![None; 19];
    (last[5], last[18]) = (Some(&b"7"[..]), Some(&b"{12,-7,0}"[..]));
    let corpus = [copy(&[session.clone(), session, last.clone()]), copy(&[last])];
    let before = KnownBackends::default();
    feed(&corpus, |input| {
        let mut texts = Texts::default();
        let mut backends = BackendsDecoder::new(&mut texts, &before, "7", Encodings::default());
        backends.read(input).ok()?;
        backends.finish().ok()
    });
}

#[test]
fn rows_of_prepared_transactions() {
    let number = 4312_u32.to_be_bytes();
    let row: Vec<Option<&[u8]>> =
        vec![Some(&number), Some(b"batch-17"), Some(&[7; 8]), Some(&number), Some(&number)];
    let corpus = [copy(std::slice::from_ref(&row)), copy(&[row.clone(), row.clone()])];
    feed(&corpus, |input| {
        let mut prepared = PreparedRows::default();
        prepared.read(input).ok()?;
        Some(prepared.finish(|_| None, |_| None)).filter(|rows| !rows.is_empty())
    });
}

#[test]
fn server_logs() {
    let still = "process 4410 still waiting for ShareLock on transaction 771 after 1000.123 ms";
    let held = "Process holding the lock: 4312. Wait queue: 4410, 4466.";
    let deadlock = "Process 4410 waits for ShareLock on transaction 772; blocked by process 4312.\n\
                    Process 4312 waits for ShareLock on tuple (0,1) of relation 5 of database 6; blocked by process 4410.\n\
                    Process 4410: UPDATE t\nProcess 4312: SELECT 1";
    let csv = |code: &str, message: &str, detail: &str| {
        format!(
            "2026-11-04 14:02:31.123 CET,\"app\",\"shop\",4410,\"[local]\",6922fe60.113a,3,\"SELECT\",2025-11-23 13:30:24 CET,3/17,771,LOG,{code},\
             \"{message}\",\"{detail}\",,,,\"SQL statement \"\"x\"\"\",\"SELECT 'a\nb'\",,,\"web\",\"client backend\",,0\n"
        )
    };
    let json = |code: &str, message: &str, detail: &str| {
        let line = serde_json::json!({
            "timestamp": "2026-11-04 14:02:31.123 CET", "user": "app", "pid": 4410, "session_id": "6922fe60.113a",
            "session_start": "2025-11-23 13:30:24 CET", "error_severity": "LOG", "state_code": code, "message": message,
            "detail": detail, "statement": "SELECT 'a\nb'", "application_name": "web"
        });
        // The time is first, as in the server's log.
        format!("{line}\n")
    };
    let all = |one: &dyn Fn(&str, &str, &str) -> String| {
        let lines =
            [one("00000", still, held), one("40P01", "deadlock detected", deadlock), one("57014", "x", "")];
        lines.concat().into_bytes()
    };
    let corpus =
        [all(&csv), all(&json), csv("00000", still, held).into_bytes(), json("55P03", "x", "").into_bytes()];
    feed(&corpus, |input| {
        let mut understood = 0;
        let read = server_log::read(input, &mut |entry| {
            if let Some(server_log::LogMessage::Wait(wait)) = server_log::parse(entry) {
                understood += 1 + usize::from(server_log::lock_tag(wait.on).is_some());
            }
        });
        read.ok().map(|_| understood)
    });
}
