//! Single values in PostgreSQL's binary format (`src/backend/utils/adt/*.c`, the `…send` functions). A value whose length
//! is wrong for its type is None.

use std::borrow::Cow;

use chrono::DateTime;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use crate::model::Timestamp;
use crate::model::lock::VirtualTransaction;

/// 2000-01-01 in microseconds since 1970.
pub(in crate::pg) const EPOCH: i64 = 946_684_800_000_000;

#[derive(Debug)]
struct Raw<'a>(Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// None for NULL and for a missing column.
pub fn raw(row: &Row, column: usize) -> Option<&[u8]> {
    row.try_get::<_, Raw<'_>>(column).ok()?.0
}

/// None for NULL and for a value of another length, as in all of these functions.
#[inline]
pub fn int2(bytes: Option<&[u8]>) -> Option<i16> {
    Some(i16::from_be_bytes(bytes?.try_into().ok()?))
}

#[inline]
pub fn int4(bytes: Option<&[u8]>) -> Option<i32> {
    Some(i32::from_be_bytes(bytes?.try_into().ok()?))
}

#[inline]
pub fn int8(bytes: Option<&[u8]>) -> Option<i64> {
    Some(i64::from_be_bytes(bytes?.try_into().ok()?))
}

/// May be infinite or NaN.
#[inline]
pub fn float8(bytes: Option<&[u8]>) -> Option<f64> {
    Some(f64::from_be_bytes(bytes?.try_into().ok()?))
}

/// An `oid` or `xid`.
#[inline]
pub fn oid(bytes: Option<&[u8]>) -> Option<u32> {
    Some(u32::from_be_bytes(bytes?.try_into().ok()?))
}

#[inline]
pub fn boolean(bytes: Option<&[u8]>) -> Option<bool> {
    bytes.and_then(|bytes| bytes.first()).map(|byte| *byte != 0)
}

/// `timestamptz`: microseconds since 2000. None if infinite or out of range for chrono.
#[inline]
pub fn timestamp(bytes: Option<&[u8]>) -> Option<Timestamp> {
    let micros = int8(bytes)?;
    if micros == i64::MAX || micros == i64::MIN {
        return None;
    }
    DateTime::from_timestamp_micros(micros.checked_add(EPOCH)?)
}

/// Text of any encoding, as UTF-8 with replacement characters.
pub fn text(bytes: Option<&[u8]>) -> Option<Cow<'_, str>> {
    bytes.map(String::from_utf8_lossy)
}

/// A virtual transaction ID, `3/1234`.
#[inline]
pub fn virtual_transaction(bytes: Option<&[u8]>) -> Option<VirtualTransaction> {
    let bytes = bytes?;
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    let slash = digits.iter().position(|byte| *byte == b'/')?;
    let (process, counter) = digits.split_at_checked(slash)?;
    let magnitude = i32::try_from(unsigned(process)?).ok()?;
    Some(VirtualTransaction {
        proc_number: if negative { -magnitude } else { magnitude },
        local_xid: unsigned(counter.get(1..)?)?,
    })
}

/// Only decimal digits are allowed.
#[inline]
pub fn unsigned(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    let mut value = 0u32;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u32::from(digit))?;
    }
    Some(value)
}

/// An array of `int4`, without its NULLs.
pub fn int4_array(bytes: Option<&[u8]>) -> Option<Vec<i32>> {
    let (dimensions, rest) = bytes?.split_first_chunk::<4>()?;
    let dimensions = usize::try_from(i32::from_be_bytes(*dimensions)).ok()?;
    // Flags and element type, then size and lower bound of each dimension.
    let mut rest = rest.get(8 + 8 * dimensions..)?;
    let mut values = Vec::new();
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        match usize::try_from(i32::from_be_bytes(*length)) {
            Err(_) => rest = tail,
            Ok(length) => {
                values.push(int4(tail.get(..length))?);
                rest = tail.get(length..)?;
            }
        }
    }
    Some(values)
}

/// The layout of `inet`: family, bits, is-cidr, length, address. The prefix length is dropped.
pub fn inet(bytes: Option<&[u8]>) -> Option<std::net::IpAddr> {
    let address = bytes?.get(4..)?;
    if let Ok(v4) = <[u8; 4]>::try_from(address) {
        return Some(v4.into());
    }
    <[u8; 16]>::try_from(address).ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_wrong_length_are_none() {
        assert_eq!(int4(Some(&[0, 0, 1, 2])), Some(258));
        assert_eq!(int4(Some(&[0, 1, 2])), None);
        assert_eq!(int4(None), None);
        assert_eq!(int2(Some(&[0xff, 0xff])), Some(-1));
        assert_eq!(oid(Some(&[0xff, 0xff, 0xff, 0xff])), Some(u32::MAX));
        assert_eq!(boolean(Some(&[1])), Some(true));
        assert_eq!(boolean(Some(&[])), None);
    }

    #[test]
    fn timestamps_count_from_2000_and_infinity_is_none() {
        let at = |micros: i64| timestamp(Some(&micros.to_be_bytes())).map(|at| at.to_rfc3339());
        assert_eq!(at(0).as_deref(), Some("2000-01-01T00:00:00+00:00"));
        assert_eq!(at(-1).as_deref(), Some("1999-12-31T23:59:59.999999+00:00"));
        assert_eq!(at(i64::MAX), None);
        assert_eq!(at(i64::MIN), None);
        assert_eq!(at(i64::MAX - 1), None);
        assert_eq!(at(i64::MIN + 1), None);
    }

    #[test]
    fn virtual_transactions_of_all_kinds() {
        for good in ["3/1234", "-1/757", "0/0", "12/4294967295"] {
            assert_eq!(virtual_transaction(Some(good.as_bytes())), VirtualTransaction::parse(good), "{good}");
        }
        for bad in ["", "/", "3/", "/3", "3", "a/3", "3/b", "3/4294967296", "4294967295/1", "--1/2", "3/+4"] {
            assert_eq!(virtual_transaction(Some(bad.as_bytes())), None, "{bad}");
        }
    }

    #[test]
    fn arrays_may_be_empty_or_hold_nulls() {
        assert_eq!(int4_array(Some(&[0; 12])), Some(vec![]));
        let mut bytes = vec![0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 23, 0, 0, 0, 3, 0, 0, 0, 1];
        bytes.extend([0, 0, 0, 4, 0, 0, 0, 7]);
        bytes.extend([0xff, 0xff, 0xff, 0xff]);
        bytes.extend([0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(int4_array(Some(&bytes)), Some(vec![7, -1]));
        assert_eq!(int4_array(Some(&[0, 0])), None);
    }

    #[test]
    fn addresses_of_both_families() {
        assert_eq!(inet(Some(&[2, 32, 0, 4, 10, 0, 0, 1])).unwrap().to_string(), "10.0.0.1");
        let mut six = vec![3, 128, 0, 16];
        six.extend([0; 15]);
        six.push(1);
        assert_eq!(inet(Some(&six)).unwrap().to_string(), "::1");
        assert_eq!(inet(Some(&[2])), None);
    }
}
