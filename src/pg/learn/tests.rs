use tokio_postgres::types::Type;

use super::*;
use super::{answer, from_hex};

fn shape(types: &[(&str, Type)]) -> Result<Shape, String> {
    Shape::of(types).map_err(|error| error.to_string())
}

fn row(columns: &[Option<&str>]) -> TextRow {
    columns.iter().map(|column| column.map(str::to_owned)).collect()
}

fn hex(text: &[u8]) -> String {
    use std::fmt::Write;
    text.iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").unwrap();
        digits
    })
}

#[test]
fn numbers_of_every_kind_and_texts_of_them_are_keys() {
    for key in [Type::INT8, Type::INT4, Type::INT2, Type::NUMERIC, Type::TEXT, Type::VARCHAR] {
        assert_eq!(shape(&[("k", key.clone()), ("n", Type::TEXT)]), Ok(Shape::Bigint), "{key}");
        assert_eq!(
            shape(&[("a", Type::INT4), ("b", key.clone()), ("n", Type::UUID)]),
            Ok(Shape::Pair),
            "{key}"
        );
    }
}

#[test]
fn other_columns_are_named_in_the_error() {
    let wanted = "expected (key bigint, name text) or (classid int, objid int, name text), got";
    for (types, got) in [
        (vec![], "no columns"),
        (vec![("key", Type::INT8)], "(key int8)"),
        (vec![("done", Type::BOOL), ("name", Type::TEXT)], "(done bool, name text)"),
        (vec![("a", Type::INT4), ("b", Type::UUID), ("c", Type::TEXT)], "(a int4, b uuid, c text)"),
        (vec![("a", Type::INT4); 4], "(a int4, a int4, a int4, a int4)"),
    ] {
        assert_eq!(shape(&types), Err(format!("{wanted} {got}")));
    }
}

#[test]
fn rows_become_keys_and_names() {
    let name = hex(b"close");
    let rows = vec![
        row(&[Some("815"), Some(&name)]),
        row(&[Some(" -9223372036854775808 "), Some(&name)]),
        row(&[None, Some(&name)]),
        row(&[Some("7"), None]),
        row(&[Some("8"), Some("")]),
        row(&[Some("9"), Some(&hex(b" "))]),
    ];
    let names = vec![(LockKey::Bigint(815), "close".into()), (LockKey::Bigint(i64::MIN), "close".into())];
    assert_eq!(answer(Shape::Bigint, rows).unwrap(), QueryNames { names, cut: false });

    let rows = vec![
        row(&[Some("1"), Some("-2147483648"), Some(&name)]),
        row(&[Some("1"), None, Some(&name)]),
        row(&[None, Some("1"), Some(&name)]),
    ];
    let names = vec![(LockKey::Pair(1, i32::MIN), "close".into())];
    assert_eq!(answer(Shape::Pair, rows).unwrap(), QueryNames { names, cut: false });
}

#[test]
fn a_key_that_is_none_is_an_error_with_its_row() {
    let name = hex(b"x");
    for (shape, columns, expected) in [
        (Shape::Bigint, vec![Some("1.5")], "row 2: \"1.5\" is no 64-bit number"),
        (
            Shape::Bigint,
            vec![Some("9223372036854775808")],
            "row 2: \"9223372036854775808\" is no 64-bit number",
        ),
        (Shape::Pair, vec![Some("1"), Some("2147483648")], "row 2: \"2147483648\" is no 32-bit number"),
    ] {
        let mut bad = row(&columns);
        bad.push(Some(name.clone()));
        let error = answer(shape, vec![row(&[None, None, None]), bad]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn long_names_are_cut_between_characters_and_any_bytes_are_text() {
    let long = hex("名".repeat(300).as_bytes());
    let found = answer(Shape::Bigint, vec![row(&[Some("1"), Some(&long)])]).unwrap();
    assert_eq!(&*found.names[0].1, "名".repeat(200));
    assert_eq!(from_hex(&hex(b"a\xffb")), "a\u{fffd}b");
    assert_eq!(from_hex("4"), "");
    assert_eq!(from_hex("zz41"), "A");
}

#[test]
fn a_row_beyond_the_limit_is_left_out_and_reported() {
    let name = hex(b"x");
    let rows = |number: usize| (0..number).map(|key| row(&[Some(&key.to_string()), Some(&name)])).collect();
    let all = answer(Shape::Bigint, rows(ROWS)).unwrap();
    assert_eq!((all.names.len(), all.cut), (ROWS, false));
    let cut = answer(Shape::Bigint, rows(ROWS + 1)).unwrap();
    assert_eq!((cut.names.len(), cut.cut), (ROWS, true));
}

#[test]
fn nothing_in_a_query_is_replaced() {
    let text = framed(
        Shape::Pair.columns(),
        "",
        "select $names, '$settings', '$query' ; \n",
        &PollLimits::default(),
    );
    assert!(
        text.contains("\nselect $names, '$settings', '$query'\n) AS query (classid, objid, name);"),
        "{text}"
    );
    assert!(!text.contains("--"), "{text}");
    assert_eq!(text.matches("statement_timeout").count(), 2, "{text}");
}
