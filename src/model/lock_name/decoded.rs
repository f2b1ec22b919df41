use super::{Context, LockName};
use crate::model::lock_key::LockKey;

/// Number of 7-bit characters that fit in a key.
const MAX_LENGTH: u32 = 9;

/// A shorter name would be found in unrelated numbers.
const MIN_LENGTH: usize = 3;

/// .NET's `DistributedLock` packs a name of up to nine ASCII characters, 7 bits each, then a 0 and as many 1s as there is
/// room left (`PostgresAdvisoryLockKey.cs`). It is the pair of the two halves; a bigint is accepted only if it ends in so
/// many 1s that chance is excluded.
pub(super) fn resolve(key: LockKey, context: Context<'_>) -> Option<LockName> {
    let (bits, longest) = match key {
        LockKey::Bigint(key) => (key.cast_unsigned(), 7),
        LockKey::Pair(high, low) => {
            (u64::from(high.cast_unsigned()) << 32 | u64::from(low.cast_unsigned()), 9)
        }
    };
    let mut buffer = [0; MAX_LENGTH as usize];
    let name = decode(bits, &mut buffer)?;
    if !(MIN_LENGTH..=longest).contains(&name.len()) {
        return None;
    }
    let uncertain = !context.is_by(&["distributedlock", ".net"]);
    Some(LockName::new(name, uncertain, "decodes to a name in the encoding of .NET's DistributedLock"))
}

/// The name in `bits`, if it consists of characters that are usual in a name.
fn decode(bits: u64, buffer: &mut [u8; MAX_LENGTH as usize]) -> Option<&str> {
    let missing = bits.trailing_ones() / 7;
    let length = MAX_LENGTH.checked_sub(missing)?;
    let rest = bits >> (7 * missing);
    if rest & 1 == 1 {
        return None;
    }
    let rest = rest >> 1;
    let name = buffer.get_mut(..length as usize)?;
    for (index, byte) in (0_u32..).zip(name.iter_mut().rev()) {
        *byte = (rest >> (7 * index) & 0x7f) as u8;
        if !byte.is_ascii_alphanumeric() && !b"_-.:/ #".contains(byte) {
            return None;
        }
    }
    std::str::from_utf8(name).ok()
}
