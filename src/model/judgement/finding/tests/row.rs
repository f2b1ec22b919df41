use super::super::{Finding, Severity, Subject};

#[test]
fn a_row_gives_up_words_before_numbers() {
    let row = |text: &str, object: &str, room: usize| {
        Finding::new("test", Severity::Info, "", Subject::Server).in_row(None, text, object).row_text(room)
    };
    let convoy = "2091 ALTER TABLE waits for 2053 for AccessExclusive on orders, blocks 45: 45 continue now";
    let object = " for AccessExclusive on orders";
    assert_eq!(row(convoy, object, 105), convoy);
    assert_eq!(row(convoy, object, 66), "2091 ALTER TABLE waits for 2053, blocks 45: 45 continue now");
    let held = "3042 idle, holds advisory lock \"nightly-export\", blocks 3: 1 continues now, 2 in turn";
    let object = ", holds advisory lock \"nightly-export\"";
    assert_eq!(row(held, object, 66), "3042 idle, holds \"nightly-export\", blocks 3: 1 now, 2 in turn");
    assert_eq!(row(held, object, 40), "3042 idle, blocks 3: 1 now, 2 in turn");
    let idle = "4312 idle in transaction, blocks 17: 1 continues now, 16 in turn";
    assert_eq!(row(idle, "", 66), idle);
    assert_eq!(row(idle, "", 62), "4312 idle in xact, blocks 17: 1 continues now, 16 in turn");
    let long = "prepared transaction xa-4711-a-name-that-does-not-end of xa, blocks 2: 2 continue now";
    assert_eq!(row(long, "", 50), "prepared transaction xa-4711-a-n…, blocks 2: 2 now");
}
