//! What taking the server's answers apart costs: rows as binary COPY brings them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark may"
)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use locktop::pg::decode::backends::Backends;
use locktop::pg::decode::locks::Locks;
use locktop::pg::decode::texts::Texts;

/// One row of binary COPY; the first has the header before it.
fn message(first: bool, values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut bytes = if first { b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec() } else { Vec::new() };
    bytes.extend(i16::try_from(values.len()).unwrap().to_be_bytes());
    for value in values {
        match value {
            Some(value) => {
                bytes.extend(i32::try_from(value.len()).unwrap().to_be_bytes());
                bytes.extend_from_slice(value);
            }
            None => bytes.extend((-1_i32).to_be_bytes()),
        }
    }
    bytes
}

/// Advisory locks, as `assets/sql/locks.sql` selects them.
fn locks(count: i32) -> Vec<Vec<u8>> {
    (0..count)
        .map(|key| {
            let (key, pid) = (key.to_be_bytes(), (1_000 + key % 4).to_be_bytes());
            message(
                key == [0; 4],
                &[
                    Some(b"advisory"),
                    Some(&5_i32.to_be_bytes()),
                    None,
                    None,
                    None,
                    None,
                    None,
                    Some(&2_i32.to_be_bytes()),
                    Some(&key),
                    Some(&2_i16.to_be_bytes()),
                    Some(b"1003/24"),
                    Some(&pid),
                    Some(b"ExclusiveLock"),
                    Some(&[1]),
                    None,
                ],
            )
        })
        .collect()
}

/// Sessions that wait, as `assets/sql/backends.sql` selects them.
fn backends(count: i32) -> Vec<Vec<u8>> {
    let since = 800_000_000_000_000_i64.to_be_bytes();
    (0..count)
        .map(|number| {
            let name = format!("worker-{number}");
            message(
                number == 0,
                &[
                    Some(&(1_000 + number).to_be_bytes()),
                    Some(&since),
                    None,
                    Some(&5_i32.to_be_bytes()),
                    Some(&10_i32.to_be_bytes()),
                    Some(name.as_bytes()),
                    None,
                    Some(&(-1_i32).to_be_bytes()),
                    Some(b"client backend"),
                    Some(b"active"),
                    Some(b"Lock"),
                    Some(b"advisory"),
                    Some(&since),
                    Some(&since),
                    Some(&since),
                    None,
                    Some(&760_i32.to_be_bytes()),
                    None,
                    Some(b"SELECT pg_advisory_lock(1)"),
                ],
            )
        })
        .collect()
}

fn decode(c: &mut Criterion) {
    for count in [22_000, 44_000] {
        let messages = locks(count);
        c.bench_function(&format!("{count} locks"), |b| {
            b.iter(|| {
                let mut rows = Locks::with_capacity(messages.len());
                for message in &messages {
                    rows.read(black_box(message)).unwrap();
                }
                rows.finish()
            });
        });
    }
    for count in [1_000, 2_000] {
        let messages = backends(count);
        let mut texts = Texts::default();
        let mut before = Vec::new();
        c.bench_function(&format!("{count} backends"), |b| {
            b.iter(|| {
                let mut rows = Backends::new(&mut texts, &before);
                for message in &messages {
                    rows.read(black_box(message)).unwrap();
                }
                let read = rows.finish().0;
                // The next poll finds the queries of this one.
                before = read;
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50);
    targets = decode
}
criterion_main!(benches);
