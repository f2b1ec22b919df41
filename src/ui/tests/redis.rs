use std::sync::Arc;
use std::time::Duration;

use super::{SIZES, Stage, check};
use crate::model::redis_lease::{Expiry, KeyReading, LockValue, RedisLeases, ServerReading, merge_sets};
use crate::model::source_tables::SourceTables;
use crate::model::view::View;
use crate::sample;

/// Keys of a server as `name=value:seconds`, `-` for a key that never expires; `down` for a server that does not answer.
fn server(place: usize, keys: &str) -> ServerReading {
    let key = |word: &str| {
        let (key, rest) = word.split_once('=')?;
        let (value, left) = rest.rsplit_once(':')?;
        let expiry = left.parse().map_or(Expiry::Never, |left| Expiry::After(Duration::from_secs(left)));
        Some(KeyReading { key: key.as_bytes().into(), value: LockValue::text(value.as_bytes()), expiry })
    };
    let server = format!("redis-{}:6379", place + 1).into();
    let keys = match keys {
        "down" => Err("redis-6:6379: no answer within 500 ms".into()),
        keys => Ok(keys.split(' ').filter_map(key).collect()),
    };
    ServerReading { server, keys }
}

fn view(servers: &[&str], sets: &[usize]) -> View {
    let mut builder = sample::Builder::default();
    builder.lease("1", "node2", 20.0, 8.0);
    builder.lease("7", "node1", 20.0, 61.0);
    let mut snapshot = builder.snapshot();
    let readings: Vec<_> = servers.iter().enumerate().map(|(at, keys)| server(at, keys)).collect();
    let read_at = Some(sample::at(-0.4));
    let redis = Arc::new(RedisLeases { read_at, ..merge_sets(&readings, sets) });
    snapshot.sources = Arc::new(SourceTables { redis, ..SourceTables::clone(&snapshot.sources) });
    sample::view(snapshot, 1)
}

/// A Redlock lock that is held, one that is split, one that too few servers have, one that never expires, and a server that
/// is down.
const FIVE: [&str; 5] = [
    "lock:report=worker-1:12 lock:printer=anna:7 lock:leak=cron-old:-",
    "lock:report=worker-1:12 lock:printer=anna:7 lock:leak=cron-old:-",
    "lock:report=worker-1:11 lock:printer=bert:6 lock:leak=cron-old:- lock:cart:4711=web\u{1b}[2J-3:3",
    "lock:report=worker-2:9 lock:printer=carl:8 lock:leak=cron-old:-",
    "",
];

#[test]
fn locks_of_redlock_at_three_sizes() {
    for (width, height) in SIZES {
        for (name, keys) in [("redis", "5"), ("redis_split", "5jjjj<enter>"), ("redis_findings", "!")] {
            check(name, &mut Stage::new(width, height).view(view(&FIVE, &[5])).keys(keys));
        }
    }
}

#[test]
fn a_standalone_server_is_a_set_of_its_own() {
    let servers = ["lock:printer=bert:9", FIVE[0], FIVE[1], FIVE[2], FIVE[3], "down"];
    for (width, height) in SIZES {
        for (name, keys) in [("redis_sets", "5"), ("redis_sets_overview", ""), ("redis_set", "5jj<enter>")] {
            check(name, &mut Stage::new(width, height).view(view(&servers, &[1, 5])).keys(keys));
        }
    }
}

#[test]
fn without_a_lease_the_overview_has_no_rows_for_them() {
    for (width, height) in SIZES {
        // The table exists and is empty.
        let mut snapshot = sample::jobs(0.0).snapshot();
        let mut systems = (*sample::systems::leases(0.0).snapshot().sources).clone();
        for table in &mut systems.leases {
            table.section.set(Arc::default());
        }
        snapshot.sources = Arc::new(systems.clone());
        let mut stage = Stage::new(width, height).view(sample::view(snapshot.clone(), 1));
        check("leases_none", &mut stage);
        // A lease appears and gets its rows. When it disappears, nothing moves.
        let with = sample::systems::leases(0.0).view();
        let mut stage = stage.view(View { id: 2, ..with });
        check("leases_come", &mut stage);
        check("leases_gone", &mut stage.view(sample::view(snapshot, 3)));
    }
}
