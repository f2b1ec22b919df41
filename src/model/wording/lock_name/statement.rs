//! Keys that are hashes of a name, and those computed in the requesting statement: `pg_advisory_lock(hashtext('invoice:7'))`.

use locktop_locks::advisory::{Key, NAMED};
use md5::{Digest, Md5};

use super::LockName;
use crate::model::lock_key::LockKey;
use crate::model::statement::beginning;
use crate::model::statement::tags::calls;

/// Bytes of a statement that are read.
const LONGEST: usize = 8 * 1024;

/// The literal from which a statement computes this key. A literal whose hash is the key is certain; an md5 is accepted if
/// the statement has no other.
pub(super) fn resolve(key: LockKey, statement: &str) -> Option<LockName> {
    let statement = beginning(statement, LONGEST);
    if let Some(name) = tagged(key, statement) {
        return Some(named(name, false, "name in the statement, of locktop's library"));
    }
    for (literal, rest) in literals(statement, "hashtextextended") {
        let seed: i64 = rest.strip_prefix(',')?.split([')', ':']).next()?.trim().parse().unwrap_or_default();
        if is_hash(key, hashtextextended(literal.as_bytes(), seed)) {
            if let Some(queue) = queue_of_lease(&literal) {
                return Some(named(queue, false, "the queue for a lease, of locktop's library"));
            }
            return Some(named(literal, false, "hashtextextended of a literal in the statement"));
        }
    }
    for (literal, _) in literals(statement, "hashtext") {
        if is_hash(key, hashtext(literal.as_bytes()).into()) {
            return Some(named(literal, false, "hashtext of a literal in the statement"));
        }
    }
    let mut md5 = literals(statement, "md5");
    match (md5.next(), md5.next()) {
        (Some((literal, _)), None) if statement.contains("advisory") => {
            Some(named(literal, true, "md5 of a literal in the statement"))
        }
        _ => None,
    }
}

/// The names in the tags of a statement, as they are written.
fn names(statement: &str) -> impl Iterator<Item = &str> {
    calls(statement).filter_map(|(call, _)| {
        call.split_once(' ').filter(|(word, _)| ["lock", "lead"].contains(word)).map(|(_, name)| name)
    })
}

/// The name whose hash the key is. The first that stands for several permits, `exports #1-3`, is one of them: `exports #2 of 3`.
fn tagged(key: LockKey, statement: &str) -> Option<String> {
    let permit = || {
        let (name, count) = names(statement).find_map(|name| name.rsplit_once(" #1-"))?;
        let count = count.parse().ok().filter(|count| (1..=NAMED).contains(count))?;
        let one = (1..=count).find(|at| Key::named(&format!("{name} #{at}")).number() == key)?;
        Some(format!("{name} #{one} of {count}"))
    };
    let exact = || names(statement).find(|name| Key::named(name).number() == key).map(str::to_owned);
    permit().or_else(exact)
}

/// `locktop lease "locktop" 'report'` ([`locktop_locks::lease`]) as `queue of lease report`.
fn queue_of_lease(literal: &str) -> Option<String> {
    let (schema, lease) = literal.strip_prefix("locktop lease \"")?.split_once("\" ")?;
    let name = lease.strip_prefix('\'').and_then(|name| name.strip_suffix('\''));
    let name = name.map_or_else(|| lease.to_owned(), |name| name.replace("''", "'"));
    let place = if schema == "locktop" { String::new() } else { format!(" in {schema}") };
    Some(format!("queue of lease {name}{place}"))
}

fn named(literal: String, uncertain: bool, origin: &str) -> LockName {
    LockName::new(literal, uncertain, origin)
}

/// Whether a key, or one half of it, is the hash, possibly without its sign.
fn is_hash(key: LockKey, hash: i64) -> bool {
    let is = |number: i64| {
        number == hash || number.checked_abs() == hash.checked_abs() || number == hash & 0xffff_ffff
    };
    match key {
        LockKey::Bigint(number) => is(number),
        LockKey::Pair(high, low) => is(high.into()) || is(low.into()),
    }
}

fn literals<'a>(statement: &'a str, function: &'a str) -> impl Iterator<Item = (String, &'a str)> {
    let calls = statement.match_indices(function);
    calls.filter_map(move |(at, _)| {
        let before = statement.get(..at)?.chars().next_back();
        if before.is_some_and(|before| before.is_alphanumeric() || before == '_') {
            return None;
        }
        let rest = statement.get(at + function.len()..)?.trim_start().strip_prefix('(')?.trim_start();
        literal(rest.strip_prefix('\'')?)
    })
}

/// A literal after its opening quote, and the text that follows. None if it is not terminated, or is concatenated.
fn literal(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('\'')?;
        value.push_str(part);
        let Some(quoted) = after.strip_prefix('\'') else {
            let after = after.strip_prefix("::text").unwrap_or(after).trim_start();
            return (!after.starts_with("||")).then_some((value, after));
        };
        value.push('\'');
        rest = quoted;
    }
}

/// The key of Flyway for a table, `"public"."flyway_schema_history"`: the letters of "Flyway" and Java's hash code of the name.
pub(crate) fn flyway(table: &str) -> i64 {
    let hash = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(unit.into());
    0x466C_7977_6179 + i64::from(table.encode_utf16().fold(0, hash))
}

/// The key of golang-migrate for schema, table and database separated by NUL, and of programs with the same code: a 32-bit
/// product of a CRC and a salt.
pub(crate) fn golang_migrate(names: &str) -> i64 {
    i64::from(crc32fast::hash(names.as_bytes()).wrapping_mul(1_486_364_155))
}

/// The first digits of the md5 of a text, as in published recipes for keys: sixteen as a bigint, and eight as a number.
pub(super) fn md5_keys(text: &str) -> [i64; 2] {
    let digest = Md5::digest(text.as_bytes());
    let long = digest.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes));
    [long, (long.cast_unsigned() >> 32).cast_signed()]
}

/// `hashtext`, and the low half of `hashtextextended`, of the bytes of a text: Bob Jenkins' lookup3 with PostgreSQL's seed
/// (`hash_bytes_extended` in `src/common/hashfn.c`, read a byte at a time, which gives the same result on every
/// little-endian machine).
pub(crate) fn hashtext(text: &[u8]) -> i32 {
    let (_, c) = lookup3(text, 0);
    c.cast_signed()
}

pub(crate) fn hashtextextended(text: &[u8], seed: i64) -> i64 {
    let (b, c) = lookup3(text, seed.cast_unsigned());
    (u64::from(b) << 32 | u64::from(c)).cast_signed()
}

fn lookup3(text: &[u8], seed: u64) -> (u32, u32) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let start = 0x9e37_79b9_u32.wrapping_add(length).wrapping_add(3_923_095);
    let mut state = [start; 3];
    if seed != 0 {
        let [high, low] =
            [seed >> 32, seed & 0xffff_ffff].map(|half| u32::try_from(half).unwrap_or_default());
        let [a, b, c] = state;
        state = mix([a.wrapping_add(high), b.wrapping_add(low), c]);
    }
    let mut chunks = text.chunks_exact(12);
    for chunk in &mut chunks {
        state = mix(added(state, chunk, 0));
    }
    // The lowest byte of the third word is reserved for the length, which the start value already contains.
    let [_, b, c] = last(added(state, chunks.remainder(), 1));
    (b, c)
}

/// Adds up to twelve bytes to the three words; in the third word the bytes are `higher` places higher.
fn added(state: [u32; 3], bytes: &[u8], higher: usize) -> [u32; 3] {
    let mut words = state;
    for (word, (place, chunk)) in words.iter_mut().zip(bytes.chunks(4).enumerate()) {
        let from = if place == 2 { higher } else { 0 };
        for (at, byte) in chunk.iter().enumerate() {
            *word = word.wrapping_add(u32::from(*byte) << (8 * (at + from)));
        }
    }
    words
}

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for (first, second, third) in [(4, 6, 8), (16, 19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(first);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(second);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(third);
        b = b.wrapping_add(a);
    }
    [a, b, c]
}

fn last([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for (first, second, third) in [(14, 11, 25), (16, 4, 14)] {
        c = (c ^ b).wrapping_sub(b.rotate_left(first));
        a = (a ^ c).wrapping_sub(c.rotate_left(second));
        b = (b ^ a).wrapping_sub(a.rotate_left(third));
    }
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_literal_of_a_key_is_its_name() {
        let hash = i64::from(hashtext(b"invoice:7"));
        let extended = hashtextextended(b"invoice:7", 0);
        for (key, statement, name) in [
            (LockKey::Bigint(hash), "SELECT pg_advisory_lock(hashtext('invoice:7'))", Some("invoice:7")),
            (
                LockKey::Bigint(hash),
                "select pg_advisory_xact_lock(hashtext ( 'invoice:7'::text ))",
                Some("invoice:7"),
            ),
            (
                LockKey::Bigint(-hash),
                "SELECT pg_advisory_lock(abs(hashtext('invoice:7')))",
                Some("invoice:7"),
            ),
            (
                LockKey::Pair(12, -1_888_902_025),
                "SELECT pg_advisory_lock(12, hashtext('invoice:7'))",
                Some("invoice:7"),
            ),
            (
                LockKey::Bigint(extended),
                "SELECT pg_advisory_lock(hashtextextended('invoice:7', 0))",
                Some("invoice:7"),
            ),
            (
                LockKey::Bigint(hashtextextended(b"locktop lease \"my\" 'it''s'", 0)),
                "SELECT key FROM hashtextextended('locktop lease \"my\" ''it''''s''', 0) k (key)",
                Some("queue of lease it's in my"),
            ),
            (
                LockKey::Bigint(hashtextextended(b"locktop lease \"locktop\" 7", 0)),
                "SELECT key FROM hashtextextended('locktop lease \"locktop\" 7', 0) k (key)",
                Some("queue of lease 7"),
            ),
            (LockKey::Bigint(5), "SELECT pg_advisory_lock(hashtext('invoice:7'))", None),
            (Key::named("b").number(), "/* lock a */ /* lock b */ SELECT 1", Some("b")),
            (Key::named("b").number(), "/* lock bb */ SELECT 'lock b'", None),
            (Key::named("b").number(), "/* lock b", None),
            (Key::named("a/b #2").number(), "/* lock a/b #1-3 */ SELECT 1", Some("a/b #2 of 3")),
            (Key::named("a/b #4").number(), "/* lock a/b #1-3 */ SELECT 1", None),
            (Key::named("a").number(), "/* lead a */ SELECT 1", Some("a")),
            (Key::named("a #1").number(), "/* lock a #1-4000000000 */ SELECT 1", None),
            (Key::named("a #1-b #3").number(), "/* lock a #1-b #1-3 */ SELECT 1", Some("a #1-b #3 of 3")),
            (Key::named("a #3").number(), "/* lock a #1-3 */ /* lock a #3 */ SELECT 1", Some("a #3 of 3")),
            (Key::named("a #300").number(), "/* lock a #300 */ SELECT 1", Some("a #300")),
            (LockKey::Bigint(hash), "SELECT pg_advisory_lock(hashtext('invoice:' || 7))", None),
            (LockKey::Bigint(hash), "SELECT my_hashtext('invoice:7')", None),
            (LockKey::Bigint(hash), "SELECT pg_advisory_lock(hashtext($1))", None),
            (LockKey::Bigint(hash), "SELECT hashtext('unfinished", None),
            (
                LockKey::Bigint(hashtext(b"it's").into()),
                "SELECT pg_advisory_lock(hashtext('it''s'))",
                Some("it's"),
            ),
            (
                LockKey::Bigint(7),
                "SELECT pg_advisory_lock(('x' || substr(md5('nightly'), 1, 16))::bit(64)::bigint)",
                Some("nightly?"),
            ),
        ] {
            let found = resolve(key, statement).map(|name| name.to_string());
            assert_eq!(found.as_deref(), name, "{statement}");
        }
    }

    /// Values from PostgreSQL 15.
    #[test]
    fn hashes_of_text_are_those_of_the_server() {
        for (text, hash) in [
            ("", -1_477_818_771),
            ("a", 1_075_015_857),
            ("invoice:7", -1_888_902_025),
            ("task:cleanup", -950_024_089),
            ("报表生成任务", 627_489_622),
            ("twelve bytes", 652_846_557),
            ("thirteen byte", -1_367_827_268),
            ("pg_partman run_maintenance", -988_976_779),
        ] {
            assert_eq!(hashtext(text.as_bytes()), hash, "{text}");
        }
        // SELECT ('x' || substr(md5('daily_report'), 1, 16))::bit(64)::bigint, and of 8 digits.
        assert_eq!(md5_keys(""), [-3_162_216_497_309_240_828, 3_558_706_393]);
        assert_eq!(hashtextextended(b"invoice:7", 0), -7_311_487_997_132_037_001);
        assert_eq!(hashtextextended(b"task:cleanup", 42), -4_994_495_813_903_007_041);
    }
}
