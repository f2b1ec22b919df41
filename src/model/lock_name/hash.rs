//! The hash functions that software makes lock keys with.

/// FNV-1 with 32 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>).
pub(super) const fn fnv1_32(text: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        hash = hash.wrapping_mul(0x0100_0193) ^ *first as u32;
        rest = tail;
    }
    hash
}

/// FNV-1a with 64 bits, as the bigint of the same bits.
pub(super) const fn fnv1a_64(text: &[u8]) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        hash = (hash ^ *first as u64).wrapping_mul(0x0100_0000_01b3);
        rest = tail;
    }
    hash.cast_signed()
}

/// Java's `String.hashCode` of ASCII text.
pub(super) const fn java_hash_code(text: &[u8]) -> i32 {
    let mut hash = 0_i32;
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        hash = hash.wrapping_mul(31).wrapping_add(*first as i32);
        rest = tail;
    }
    hash
}
