//! What a log calls a lock, as `DescribeLockTag()` of `src/backend/storage/lmgr/lmgr.c` writes it.

use crate::model::lock::{LockTag, LockType};

/// `relation 16398 of database 5`; none for what is not known here.
#[must_use]
pub fn lock_tag(text: &str) -> Option<LockTag> {
    let numbers: Vec<u32> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    // Whatever else stands there: words and signs without the numbers say which of the forms it is.
    let form: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
    let new = LockTag::new;
    let short = |number: u32| u16::try_from(number).ok();
    Some(match (form.as_str(), numbers.as_slice()) {
        ("relation  of database ", [relation, database]) => {
            LockTag { relation: Some(*relation), database: Some(*database), ..new(LockType::Relation) }
        }
        ("extension of relation  of database ", [relation, database]) => {
            LockTag { relation: Some(*relation), database: Some(*database), ..new(LockType::Extend) }
        }
        ("page  of relation  of database ", [page, relation, database]) => LockTag {
            page: Some(*page),
            relation: Some(*relation),
            database: Some(*database),
            ..new(LockType::Page)
        },
        ("tuple (,) of relation  of database ", [page, tuple, relation, database]) => LockTag {
            page: Some(*page),
            tuple: Some(short(*tuple)?),
            relation: Some(*relation),
            database: Some(*database),
            ..new(LockType::Tuple)
        },
        ("transaction ", [transaction]) => {
            LockTag { transactionid: Some(*transaction), ..new(LockType::TransactionId) }
        }
        ("object  of class  of database ", [object, class, database]) => LockTag {
            objid: Some(*object),
            classid: Some(*class),
            database: Some(*database),
            ..new(LockType::Object)
        },
        ("advisory lock [,,,]", [database, class, object, sub]) => LockTag {
            database: Some(*database),
            classid: Some(*class),
            objid: Some(*object),
            objsubid: Some(short(*sub)?),
            ..new(LockType::Advisory)
        },
        _ => return None,
    })
}
