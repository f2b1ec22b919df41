//! Findings about locks in Redis.

use std::sync::Arc;
use std::time::Duration;

use crate::model::redis_lease::{Expiry, KeyReading, LockValue, ServerReading, merge};
use crate::model::systems::Systems;
use crate::sample::{self, Builder};

/// What is said of servers with these keys, values and terms; none is a server that is down.
fn told(servers: &[Option<&[(&str, &str, Option<u64>)]>]) -> Vec<String> {
    let key = |(key, value, left): &(&str, &str, Option<u64>)| KeyReading {
        key: key.as_bytes().into(),
        value: LockValue::text(value.as_bytes()),
        expiry: left.map_or(Expiry::Never, |left| Expiry::After(Duration::from_secs(left))),
    };
    let reading = |keys: &Option<&[(&str, &str, Option<u64>)]>| ServerReading {
        server: "s".into(),
        keys: keys.map(|keys| keys.iter().map(key).collect()).ok_or_else(|| "s: no answer\u{1b}".into()),
    };
    let readings: Vec<_> = servers.iter().map(reading).collect();
    let mut snapshot = Builder::default().snapshot();
    snapshot.systems = Arc::new(Systems { redis: Arc::new(merge(&readings)), ..Systems::default() });
    let view = sample::view(snapshot, 1);
    let about = view.findings.iter().filter(|finding| finding.check.starts_with("redis"));
    about.map(|finding| finding.summary.to_string()).collect()
}

#[test]
fn a_lock_without_a_term_is_told_with_its_owner() {
    assert_eq!(told(&[Some(&[("a", "me", Some(9))])]), [""; 0]);
    assert_eq!(
        told(&[Some(&[("a\n\u{1b}[2J", "me", None)])]),
        ["redis lock a ␛[2J of me never expires: it stays when its holder dies"]
    );
    let many: Vec<_> = ["a", "b", "c", "d"].map(|key| (key, "me", None)).into();
    assert_eq!(told(&[Some(&many)]), ["4 redis locks never expire; the first is a"]);
}

#[test]
fn a_lock_that_is_nobody_s_and_servers_that_are_down_are_told() {
    let split: [Option<&[(&str, &str, Option<u64>)]>; 3] =
        [Some(&[("a", "me", Some(9))]), Some(&[("a", "you", Some(9))]), Some(&[])];
    assert_eq!(told(&split), ["redis lock a is split: no owner has it on 2 of 3 servers"]);
    assert_eq!(told(&[Some(&[]), None, None]), ["2 of 3 Redis servers down: s: no answer␛"]);
}
