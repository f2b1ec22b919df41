//! The cost of decoding rows of `pg_locks` and `pg_stat_activity` as the server sends them, at two sizes each, to show
//! how it grows. Needs no server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unnecessary_wraps,
    missing_docs,
    reason = "a bench may"
)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use locktop::model::backend::Backend;
use locktop::pg::decode::backends::{BackendsDecoder, KnownBackends};
use locktop::pg::decode::locks::{KnownLocks, LocksDecoder, ReadingSession};
use locktop::pg::decode::{Encodings, Texts};

/// The number of the poll.
const POLL: &str = "1";
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// One message of a binary COPY.
fn message(values: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = i16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
    for value in values {
        let length = value.as_ref().map_or(-1, |value| i32::try_from(value.len()).unwrap());
        bytes.extend(length.to_be_bytes());
        bytes.extend(value.iter().flatten());
    }
    bytes
}

fn number(value: u32) -> Option<Vec<u8>> {
    Some(value.to_be_bytes().to_vec())
}

fn text(value: &str) -> Option<Vec<u8>> {
    Some(value.as_bytes().to_vec())
}

fn moment(micros: u64) -> Option<Vec<u8>> {
    Some(micros.to_be_bytes().to_vec())
}

/// `count` advisory locks; every 22nd is waited for.
fn locks(count: u32) -> Vec<Vec<u8>> {
    let row = |index: u32| {
        let waits =
            index.is_multiple_of(22).then(|| moment(800_000_000_000_000 + u64::from(index))).flatten();
        message(&[
            None,
            None,
            None,
            None,
            None,
            number(index),
            None,
            text(&format!("{}/{}", index % 1000, index)),
            number(1000 + index % 1000),
            None,
            waits,
        ])
    };
    let end = message(&[text(POLL), None, None, None, None, None, None, None, None, text("1"), None]);
    with_header((0..count).map(row).chain([end]).collect())
}

fn backends(count: u32) -> Vec<Vec<u8>> {
    let row = |index: u32| {
        let at = || moment(800_000_000_000_000 + u64::from(index));
        message(&[
            number(1000 + index),
            at(),
            None,
            number(5),
            number(10),
            text(&format!("web-{}", index % 50)),
            Some(vec![2, 32, 0, 4, 10, 0, 0, 1]),
            number(40_000 + index),
            text("client backend"),
            text("active"),
            text("Lock"),
            text("advisory"),
            at(),
            at(),
            at(),
            number(700 + index),
            number(700),
            None,
            text(&format!("UPDATE accounts SET balance = balance - 1 WHERE id = {index}")),
        ])
    };
    let mut end = vec![None; 19];
    (end[5], end[18]) = (text(POLL), text("{}"));
    with_header((0..count).map(row).chain([message(&end)]).collect())
}

fn with_header(mut messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    messages[0].splice(0..0, HEADER.iter().copied());
    messages
}

fn read_backends(messages: &[Vec<u8>], texts: &mut Texts, before: &KnownBackends) -> Vec<Backend> {
    let mut backends = BackendsDecoder::new(texts, before, POLL, Encodings::default());
    for message in messages {
        backends.read(message).unwrap();
    }
    backends.finish().unwrap().0
}

fn read_locks(messages: &[Vec<u8>], before: &KnownLocks) -> KnownLocks {
    let mut locks = LocksDecoder::new(ReadingSession { datid: 5, pid: 1 }, before, POLL);
    for message in messages {
        locks.read(message).unwrap();
    }
    let known = locks.finish().unwrap();
    assert_eq!((known.rows.len() + 1, known.omitted), (messages.len(), 0));
    known
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode");
    for count in [22_000, 44_000] {
        let messages = locks(count);
        group.throughput(Throughput::Elements(u64::from(count)));
        // All rows are new at the first poll; at most other polls none is.
        let first = KnownLocks::default();
        let same = read_locks(&messages, &first);
        for (name, before) in [("locks", &first), ("the same locks", &same)] {
            group.bench_with_input(BenchmarkId::new(name, count), &messages, |bencher, messages| {
                bencher.iter(|| black_box(read_locks(messages, before)));
            });
        }
    }
    for count in [1_000, 2_000] {
        let messages = backends(count);
        let mut texts = Texts::default();
        let rows = read_backends(&messages, &mut texts, &KnownBackends::default());
        let before = KnownBackends { rows: Arc::new(rows), digests: String::new() };
        group.throughput(Throughput::Elements(u64::from(count)));
        group.bench_with_input(BenchmarkId::new("backends", count), &messages, |bencher, messages| {
            bencher.iter(|| black_box(read_backends(messages, &mut texts, &before)));
        });
    }
    group.finish();
}

criterion_group!(benches, decode);
criterion_main!(benches);
