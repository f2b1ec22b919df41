use std::sync::Arc;
use std::time::Duration;

use crate::model::redis_lease::{Expiry, KeyReading, LockValue, ServerReading, merge};
use crate::model::source_tables::SourceTables;
use crate::sample::{self, Builder};

/// The keys, values and terms of a server. None: the server is down.
type Keys = Option<&'static [(&'static str, &'static str, Option<u64>)]>;

fn reported(servers: &[Keys]) -> Vec<String> {
    let key = |(key, value, left): &(&str, &str, Option<u64>)| KeyReading {
        key: key.as_bytes().into(),
        value: LockValue::text(value.as_bytes()),
        expiry: left.map_or(Expiry::Never, |left| Expiry::After(Duration::from_secs(left))),
    };
    let reading = |keys: Keys| ServerReading {
        server: "s".into(),
        keys: keys.map(|keys| keys.iter().map(key).collect()).ok_or_else(|| "s: no answer\u{1b}".into()),
    };
    let readings: Vec<_> = servers.iter().copied().map(reading).collect();
    let mut snapshot = Builder::default().snapshot();
    snapshot.sources =
        Arc::new(SourceTables { redis: Arc::new(merge(&readings)), ..SourceTables::default() });
    let view = sample::view(snapshot, 1);
    let about = view.findings.iter().filter(|finding| finding.check.starts_with("redis"));
    about.map(|finding| finding.summary.to_string()).collect()
}

#[test]
fn a_redis_lock_without_expiry_is_reported_with_its_owner() {
    assert_eq!(reported(&[Some(&[("a", "me", Some(9))])]), [""; 0]);
    assert_eq!(
        reported(&[Some(&[("a\n\u{1b}[2J", "me", None)])]),
        ["redis lock a ␛[2J of me never expires: it remains if its holder dies"]
    );
    let many: Keys = Some(&[("a", "me", None), ("b", "me", None), ("c", "me", None), ("d", "me", None)]);
    assert_eq!(reported(&[many]), ["4 redis locks never expire; the first is a"]);
}

#[test]
fn a_split_redis_lock_and_servers_that_are_down_are_reported() {
    let split: [Keys; 3] = [Some(&[("a", "me", Some(9))]), Some(&[("a", "you", Some(9))]), Some(&[])];
    assert_eq!(reported(&split), ["redis lock a is split: no owner holds it on 2 of 3 servers"]);
    assert_eq!(reported(&[Some(&[]), None, None]), ["2 of 3 Redis servers down: s: no answer␛"]);
}
