use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// A server's answer in short: `a=me:30 b=you:-` are two keys with seconds left, `-` for no term; `down` is no answer.
fn server(text: &str) -> ServerReading {
    let key = |word: &str| {
        let (key, rest) = word.split_once('=').unwrap();
        let (value, left) = rest.rsplit_once(':').unwrap();
        let expiry = match left {
            "-" => Expiry::Never,
            left => Expiry::After(Duration::from_secs(left.parse().unwrap())),
        };
        KeyReading { key: key.as_bytes().into(), value: LockValue::text(value.as_bytes()), expiry }
    };
    let keys = match text {
        "down" => Err("did not answer".into()),
        text => Ok(text.split_whitespace().map(key).collect()),
    };
    ServerReading { server: "redis://s".into(), keys }
}

fn merged(servers: &[&str]) -> Vec<String> {
    let readings: Vec<_> = servers.iter().map(|text| server(text)).collect();
    let leases = merge(&readings);
    let row = |row: &RedisLease| {
        let left = row.expiry.left().map_or("never".to_owned(), |left| format!("{}s", left.as_secs()));
        let others: Vec<_> =
            row.others.iter().map(|(value, votes)| format!(" {}*{votes}", value.shown())).collect();
        let others = others.concat();
        let leak = if row.leaks() { format!(" leaks on {}", row.without_expiry) } else { String::new() };
        format!(
            "{} {} {} {} {left}{others}{leak}",
            row.name(),
            row.holder.shown(),
            format_args!("{}/{}", row.votes, row.servers),
            row.standing.as_str()
        )
    };
    leases.rows.iter().map(row).collect()
}

#[test]
fn a_lock_is_judged_by_the_servers_of_its_set() {
    let readings = ["a=me:9 b=me:9", "a=you:9", "a=you:8", "down", "c=me:9"].map(server);
    let merged = |sets: &[usize]| {
        let leases = merge_sets(&readings, sets);
        let row = |row: &RedisLease| {
            let places: Vec<_> = row.places.iter().map(|place| place.server).collect();
            let members = row.members();
            format!(
                "{} {} {} {} of {members:?} at {places:?}",
                row.name(),
                row.holder.shown(),
                format_args!("{}/{}", row.votes, row.servers),
                row.standing.as_str()
            )
        };
        (leases.rows.iter().map(row).collect::<Vec<_>>(), leases.sets)
    };
    let (rows, sets) = merged(&[1, 3, 1]);
    assert_eq!(
        rows,
        [
            "a me 1/1 held of 0..1 at [0]",
            "a you 2/3 held of 1..4 at [0, 1]",
            "b me 1/1 held of 0..1 at [0]",
            "c me 1/1 held of 4..5 at [0]"
        ]
    );
    assert_eq!(sets, [1, 3, 1]);
    // As one set they conflict, and one vote is not a majority.
    let (rows, _) = merged(&[5]);
    let one_set = [
        "a you 2/5 unknown of 0..5 at [0, 1, 2]",
        "b me 1/5 minority of 0..5 at [0]",
        "c me 1/5 minority of 0..5 at [4]",
    ];
    assert_eq!(rows, one_set);
}

#[test]
fn answers_of_several_servers_are_merged_by_majority() {
    let table: [(&[&str], &[&str]); 14] = [
        (&[""], &[]),
        (&["a=me:9"], &["a me 1/1 held 9s"]),
        (&["a=me:-"], &["a me 1/1 held never leaks on 1"]),
        (&["down"], &[]),
        (&["a=me:9", "a=me:8", "a=me:7"], &["a me 3/3 held 8s"]),
        // The majority ends with the second key, not with the last.
        (&["a=me:9", "a=me:2", ""], &["a me 2/3 held 2s"]),
        (&["a=me:9", "a=me:9", "a=me:9", "a=you:3", "a=you:4"], &["a me 3/5 held 9s you*2"]),
        (&["a=me:9", "a=me:9", "a=you:9", "a=you:9", ""], &["a me 2/5 split 9s you*2"]),
        (&["a=me:9", "a=she:9", "a=you:1"], &["a me 1/3 split 9s she*1 you*1"]),
        (&["a=me:9", "a=me:5", "", "", ""], &["a me 2/5 minority 9s"]),
        // With the two servers that do not answer it may be four.
        (&["a=me:9", "a=me:5", "", "down", "down"], &["a me 2/5 unknown 9s"]),
        (&["a=me:9", "a=me:5", "a=me:3", "down", "down"], &["a me 3/5 held 3s"]),
        // One key without a term does not keep a majority.
        (&["a=me:-", "a=me:5", "a=me:3"], &["a me 3/3 held 5s leaks on 1"]),
        (&["b=x:1 a=me:2", "a=me:2", "b=y:1"], &["a me 2/3 held 2s", "b x 1/3 split 1s y*1"]),
    ];
    for (servers, rows) in table {
        assert_eq!(merged(servers), rows, "{servers:?}");
    }
}

#[test]
fn servers_that_are_down_are_counted() {
    let leases = merge(&["a=me:1", "down", "", "down", ""].map(server));
    assert_eq!(leases.down(), 2);
    assert_eq!(leases.down_text().unwrap(), "2 of 5 down");
    assert_eq!(leases.servers[1].error.as_deref(), Some("did not answer"));
    assert_eq!(merge(&[server("")]).down_text(), None);
}

#[test]
fn only_a_lock_without_expiry_leaks() {
    let leases = merge(&[server("a=me:2 b=me:- c=me:9")]);
    let soon: Vec<_> = leases
        .rows
        .iter()
        .map(|row| row.expiry.left().is_some_and(|left| left <= Duration::from_secs(2)))
        .collect();
    assert_eq!(soon, [true, false, false]);
    let leaks: Vec<_> = leases.rows.iter().map(RedisLease::leaks).collect();
    assert_eq!(leaks, [false, true, false]);
}

fn redisson(fields: &[(&str, i64)], mode: Option<&str>) -> ServerReading {
    let value = LockValue::Redisson {
        holders: fields.iter().map(|(field, count)| (field.as_bytes().into(), *count)).collect(),
        mode: mode.map(|mode| mode.as_bytes().into()),
    };
    let key = KeyReading { key: (*b"a").into(), value, expiry: Expiry::After(Duration::from_secs(9)) };
    ServerReading { server: "redis://s".into(), keys: Ok(vec![key]) }
}

#[test]
fn redisson_clients_are_matched_by_thread_across_servers() {
    let one = merge(&[redisson(&[("u1:7", 2)], None)]);
    assert_eq!(&*one.rows[0].holder.shown(), "u1:7");
    assert!(!one.rows[0].uncertain);
    let three = merge(&[
        redisson(&[("u1:7", 1)], None),
        redisson(&[("u2:7", 1)], None),
        redisson(&[("u3:8", 1)], None),
    ]);
    let row = &three.rows[0];
    assert_eq!((row.votes, row.standing, row.uncertain), (2, Standing::Held, true));
    assert_eq!(row.others.len(), 1);
    let readers = merge(&[redisson(&[("u1:7", 1), ("u2:9", 1)], Some("read"))]);
    assert_eq!(&*readers.rows[0].holder.shown(), "u1:7, u2:9");
}

#[test]
fn a_key_that_is_not_a_lock_does_not_leak() {
    let list =
        KeyReading { key: (*b"a").into(), value: LockValue::Other("list".into()), expiry: Expiry::Never };
    let leases = merge(&[ServerReading { server: "s".into(), keys: Ok(vec![list]) }]);
    assert!(!leases.rows[0].leaks());
    assert_eq!(&*leases.rows[0].holder.shown(), "(list)");
}

#[test]
fn bytes_that_are_no_text_are_kept_as_they_are() {
    let key = KeyReading {
        key: (*b"\xff\x1b[2J").into(),
        value: LockValue::text(b"\xc3\x28\0"),
        expiry: Expiry::After(Duration::from_secs(1)),
    };
    let leases = merge(&[ServerReading { server: "s".into(), keys: Ok(vec![key]) }]);
    assert_eq!(&*leases.rows[0].key, b"\xff\x1b[2J");
    assert_eq!(leases.rows[0].holder, LockValue::text(b"\xc3\x28\0"));
    assert_eq!(&*leases.rows[0].name(), "\u{fffd}\u{1b}[2J");
}

fn any_server() -> impl Strategy<Value = ServerReading> {
    let expiry = prop_oneof![
        Just(Expiry::Never),
        (0..20u64).prop_map(|seconds| Expiry::After(Duration::from_secs(seconds)))
    ];
    let key = (0..3u8, 0..3u8, expiry).prop_map(|(key, value, expiry)| KeyReading {
        key: [key].as_slice().into(),
        value: LockValue::text(&[value]),
        expiry,
    });
    let keys = proptest::collection::vec(key, 0..4).prop_map(|mut keys| {
        keys.sort_by(|a, b| a.key.cmp(&b.key));
        keys.dedup_by(|a, b| a.key == b.key);
        keys
    });
    proptest::option::weighted(0.8, keys)
        .prop_map(|keys| ServerReading { server: "s".into(), keys: keys.ok_or_else(|| "down".into()) })
}

proptest! {
    #[test]
    fn no_two_values_are_held_and_nothing_is_lost(
        readings in proptest::collection::vec(any_server(), 1..8),
        turn in 0..8usize,
    ) {
        let leases = merge(&readings);
        let up = readings.iter().filter(|reading| reading.keys.is_ok()).count();
        let total: usize = readings.iter().flat_map(|reading| &reading.keys).map(Vec::len).sum();
        prop_assert_eq!(leases.rows.iter().map(|row| row.places.len()).sum::<usize>(), total);
        for row in &leases.rows {
            let votes = |value: &LockValue| {
                let has = |key: &&KeyReading| key.key == row.key && key.value == *value;
                readings.iter().flat_map(|reading| reading.keys.iter().flatten()).filter(has).count()
            };
            let quorum = readings.len() / 2 + 1;
            prop_assert_eq!(row.votes as usize, votes(&row.holder));
            prop_assert_eq!(row.standing == Standing::Held, votes(&row.holder) >= quorum);
            for (other, count) in &row.others {
                prop_assert_eq!(*count as usize, votes(other));
                prop_assert!(*count <= row.votes);
            }
            let all = row.votes + row.others.iter().map(|(_, votes)| votes).sum::<u32>();
            prop_assert_eq!(all as usize, row.places.len());
            prop_assert!(all as usize <= up);
            // Just before it expires there is a majority, and just after it there is none.
            if let (Standing::Held, Some(left)) = (row.standing, row.expiry.left()) {
                let at = |time: Duration| {
                    let own = row.places.iter().filter(|place| place.value == row.holder);
                    own.filter(|place| place.expiry.left().is_none_or(|left| left > time)).count()
                };
                prop_assert!(at(left) < quorum);
                let before = left.checked_sub(Duration::from_millis(1));
                prop_assert!(before.is_none_or(|before| at(before) >= quorum));
            }
        }
        // The order of the servers changes only the positions.
        let mut turned = readings.clone();
        turned.rotate_left(turn % readings.len());
        let strip = |leases: RedisLeases| -> Vec<_> {
            leases.rows.into_iter().map(|row| (row.key, row.holder, row.votes, row.standing, row.expiry)).collect()
        };
        prop_assert_eq!(strip(merge(&turned)), strip(leases));
    }
}
