//! Lock names in a log, as written by `DescribeLockTag()` in `src/backend/storage/lmgr/lmgr.c`.

use crate::model::lock::{LockTag, LockType};

/// Parses `relation 16398 of database 5`; None for an unknown form.
pub fn lock_tag(text: &str) -> Option<LockTag> {
    let numbers: Vec<u32> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    // The text without the numbers identifies the form.
    let form: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
    let new = LockTag::new;
    let short = |number: u32| u16::try_from(number).ok();
    Some(match (form.as_str(), numbers.as_slice()) {
        ("relation  of database ", [relation, database]) => {
            new(LockType::Relation).with_relation(*relation).with_database(*database)
        }
        ("extension of relation  of database ", [relation, database]) => {
            new(LockType::Extend).with_relation(*relation).with_database(*database)
        }
        ("page  of relation  of database ", [page, relation, database]) => {
            new(LockType::Page).with_page(*page).with_relation(*relation).with_database(*database)
        }
        ("tuple (,) of relation  of database ", [page, tuple, relation, database]) => new(LockType::Tuple)
            .with_page(*page)
            .with_tuple(short(*tuple)?)
            .with_relation(*relation)
            .with_database(*database),
        ("transaction ", [transaction]) => new(LockType::TransactionId).with_transactionid(*transaction),
        ("object  of class  of database ", [object, class, database]) => {
            new(LockType::Object).with_objid(*object).with_classid(*class).with_database(*database)
        }
        ("advisory lock [,,,]", [database, class, object, sub]) => new(LockType::Advisory)
            .with_database(*database)
            .with_classid(*class)
            .with_objid(*object)
            .with_objsubid(short(*sub)?),
        _ => return None,
    })
}
