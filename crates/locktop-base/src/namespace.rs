//! Advisory keys that carry an id: the namespace in the top 16 bits, the id in the low 48.

/// Scheduled tasks ("LT"); the id is `scheduled_tasks.id`.
pub const TASKS: u16 = 0x4C54;
/// Sessions that run statements of tasks ("LW").
const STATEMENTS: u16 = 0x4C57;
/// Sessions that run statements of work queue items ("LX").
const ITEM_STATEMENTS: u16 = 0x4C58;
/// Work queue items ("LQ"); the id is `task_queue.id`.
pub const QUEUE: u16 = 0x4C51;
/// Names of workers ("LN"): not an id, but a hash of the schema and the name.
pub const WORKERS: u16 = 0x4C4E;
/// Id generators ("LI"); the id is `id_generator.worker_id`.
pub const GENERATORS: u16 = 0x4C49;

/// The largest id that fits in a key.
pub const LARGEST_ID: i64 = (1 << 48) - 1;

/// The key of the advisory lock held by the session that runs the statement of this task: `statement_lock_key` of the
/// schema.
#[must_use]
pub const fn statement_number(id: i64) -> i64 {
    (STATEMENTS as i64) << 48 | (id & LARGEST_ID)
}

/// The key of the advisory lock held by the session that runs the statement of this work queue item.
#[must_use]
pub const fn item_statement_number(id: i64) -> i64 {
    (ITEM_STATEMENTS as i64) << 48 | (id & LARGEST_ID)
}

/// The id in a key; `None` if the key is not in this namespace.
#[must_use]
pub const fn id_in(namespace: u16, number: i64) -> Option<i64> {
    if number >> 48 == namespace as i64 { Some(number & LARGEST_ID) } else { None }
}

/// The key of an id; `None` if the id does not fit.
#[must_use]
pub const fn number_of(namespace: u16, id: i64) -> Option<i64> {
    if id >= 0 && id <= LARGEST_ID { Some((namespace as i64) << 48 | id) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_out_of_its_key_as_it_went_in() {
        for id in [0, 7, LARGEST_ID] {
            let number = number_of(QUEUE, id).unwrap();
            assert_eq!((id_in(QUEUE, number), id_in(GENERATORS, number)), (Some(id), None));
        }
        for id in [-1, LARGEST_ID + 1, i64::MIN] {
            assert_eq!(number_of(QUEUE, id), None);
        }
        assert_eq!(number_of(QUEUE, 7), Some(5_499_176_619_996_086_279), "lock_key(19537, 7) on the server");
        assert_eq!(id_in(QUEUE, 7), None);
    }
}
