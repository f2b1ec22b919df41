//! Properties that do not change during a connection.

use super::sections::raw;
use crate::model::snapshot::{Keepalives, Pooling, Replay, Server, Tls};
use crate::model::{Text, Timestamp};
use crate::pg::decode::texts::Encoding;
use crate::pg::decode::value::{boolean, float8, int4, oid, text, timestamp};
use crate::text::parse_duration;

pub(super) fn clock_of(row: &tokio_postgres::Row) -> Option<Timestamp> {
    timestamp(raw(row, 10))
}

pub(super) fn encoding_of(row: &tokio_postgres::Row) -> Encoding {
    text(raw(row, 11)).map(|name| Encoding::named(&name)).unwrap_or_default()
}

pub(super) fn identity_of(row: &tokio_postgres::Row) -> Server {
    let encoding = encoding_of(row);
    let words = |column| raw(row, column).map(|bytes| encoding.shared(bytes)).unwrap_or_default();
    let version: Text = words(1).split_whitespace().next().unwrap_or_default().into();
    let positive =
        |column| int4(raw(row, column)).and_then(|value| u32::try_from(value).ok()).unwrap_or_default();
    Server {
        // The connection knows the host.
        host: Text::default(),
        port: 0,
        pooling: Pooling::None,
        tls: Tls::None,
        version_num: positive(0),
        version,
        in_recovery: false,
        database: (&*words(2)).into(),
        datid: oid(raw(row, 3)).unwrap_or_default(),
        user: (&*words(4)).into(),
        own_pid: int4(raw(row, 5)).unwrap_or_default(),
        connections: 0,
        max_connections: positive(6),
        max_locks_per_transaction: positive(16),
        lock_slots: positive(17),
        deadlocks: 0,
        deadlocks_of: std::sync::Arc::default(),
        started_at: timestamp(raw(row, 7)),
        replayed_at: None,
        replay: Replay::default(),
        keepalives: keepalives_of(&words(13)),
        query_size: bytes_of_setting(&words(8)),
        deadlock_timeout: parse_duration(&words(14)).map(|time| time.as_secs_f64()),
        log_lock_waits: boolean(raw(row, 15)),
        sees_all: boolean(raw(row, 9)).unwrap_or_default(),
        orphan_grace: float8(raw(row, 12)).filter(|seconds| seconds.is_finite() && *seconds >= 0.0),
    }
}

/// The settings in the order of their names, separated by commas. An unreadable one counts as the system default.
fn keepalives_of(text: &str) -> Keepalives {
    let mut numbers = text.split(',').map(|number| number.parse().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    let (check, count, idle, interval) = (next(), next(), next(), next());
    Keepalives { idle, interval, count, check }
}

/// A memory setting as `current_setting` prints it, `1kB`, in bytes.
pub(super) fn bytes_of_setting(text: &str) -> u32 {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        _ => 1,
    };
    number.parse::<u32>().unwrap_or_default().saturating_mul(unit)
}
