use md5::{Digest, Md5};

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
