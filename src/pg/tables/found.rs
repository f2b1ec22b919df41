//! A table that was found: a row of `assets/sql/tables_find.sql`.

use tokio_postgres::Row;

use super::columns::Kind;
use crate::model::Text;
use crate::pg::decode::value::{boolean, oid, text};
use crate::pg::poll::raw;

/// A table that may be one of ours.
#[derive(Debug, Clone, Default)]
pub(in crate::pg) struct Table {
    pub(in crate::pg) oid: u32,
    pub(in crate::pg) schema: String,
    pub(in crate::pg) name: String,
    pub(in crate::pg) is_visible: bool,
    /// Which of the names in the config it is, counted from 1.
    pub(in crate::pg) given: Vec<usize>,
    /// Why it is not read.
    pub(in crate::pg) refused: Option<String>,
    pub(in crate::pg) is_partitioned: bool,
    /// Names and kinds.
    pub(in crate::pg) columns: Vec<(String, Kind)>,
    pub(in crate::pg) indexes: Vec<Index>,
}

/// A valid B-tree index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pg) struct Index {
    pub(in crate::pg) is_unique: bool,
    pub(in crate::pg) rows: Rows,
    /// In order.
    pub(in crate::pg) columns: Vec<String>,
}

/// Which rows an index has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pg) enum Rows {
    All,
    /// Those in which this column is this text.
    Where(String, Vec<u8>),
    /// Some, and it was not understood which.
    Some,
}

impl Index {
    /// A line of the query: `unique|status=112 101|id task`.
    pub(in crate::pg) fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, '|');
        let (unique, rows, columns) = (parts.next()?, parts.next()?.trim(), parts.next()?);
        let rows = match rows.split_once('=') {
            _ if rows.is_empty() => Rows::All,
            Some((column, bytes)) => bytes_of(bytes).map_or(Rows::Some, |it| Rows::Where(column.into(), it)),
            None => Rows::Some,
        };
        let columns = columns.split(' ').map(str::to_owned).collect();
        Some(Self { is_unique: unique.trim() == "unique", rows, columns })
    }

    fn begins_with(&self, columns: &[&str]) -> bool {
        self.columns.len() >= columns.len()
            && self.columns.iter().zip(columns).all(|(one, other)| one == other)
    }
}

/// Signed bytes in decimal, as the server prints a constant.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let byte = |word: &str| word.parse::<i16>().ok().and_then(|number| u8::try_from(number & 0xff).ok());
    text.split_whitespace().map(byte).collect()
}

impl Table {
    pub(in crate::pg) fn of(row: &Row) -> Option<Self> {
        let words = |column| text(raw(row, column)).map(std::borrow::Cow::into_owned);
        let flag = |column| boolean(raw(row, column)).unwrap_or_default();
        let lines = |column| words(column).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
        let column = |line: &String| {
            let (name, kind) = line.rsplit_once(' ')?;
            Some((name.to_owned(), Kind::of(kind)?))
        };
        Some(Self {
            oid: oid(raw(row, 0))?,
            schema: words(1)?,
            name: words(2)?,
            is_visible: flag(3),
            given: lines(4).iter().filter_map(|place| place.parse().ok()).collect(),
            refused: words(5),
            is_partitioned: flag(6),
            columns: lines(7).iter().filter_map(column).collect(),
            indexes: lines(8).iter().filter_map(|line| Index::parse(line)).collect(),
        })
    }

    /// `schema.table` for people.
    pub(in crate::pg) fn label(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    pub(in crate::pg) fn kind(&self, column: &str) -> Option<Kind> {
        self.columns.iter().find(|(name, _)| name == column).map(|(_, kind)| *kind)
    }

    /// Why it is not read, if it is not.
    pub(in crate::pg) fn allowed(&self) -> Result<(), Text> {
        match &self.refused {
            Some(reason) => Err(format!("{} is not read: {reason}", self.label()).into()),
            None => Ok(()),
        }
    }

    /// Whether an index of all rows begins with these columns.
    pub(in crate::pg) fn has_index(&self, columns: &[&str]) -> bool {
        self.indexes.iter().any(|index| index.rows == Rows::All && index.begins_with(columns))
    }

    /// The columns of an index that finds the rows in which a column is this text, those behind the column itself where that
    /// leads it; the one that then begins with `then`, if there is one.
    pub(in crate::pg) fn index_where(&self, column: &str, is: &str, then: &[&str]) -> Option<&[String]> {
        let rest = |index: &'_ Index| -> Option<usize> {
            match &index.rows {
                Rows::Where(name, bytes) if name == column && bytes == is.as_bytes() => Some(0),
                Rows::All if index.begins_with(&[column]) => Some(1),
                _ => None,
            }
        };
        let found = self.indexes.iter().filter_map(|index| index.columns.get(rest(index)?..));
        let begins = |columns: &&[String]| {
            columns.len() >= then.len() && columns.iter().zip(then).all(|(one, other)| one == other)
        };
        found.clone().find(begins).or_else(|| found.clone().next().filter(|_| then.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_read_from_its_line() {
        let index = |line: &str| Index::parse(line).unwrap();
        assert_eq!(
            index("unique||id"),
            Index { is_unique: true, rows: Rows::All, columns: vec!["id".into()] }
        );
        let some = index("|status=112 101 -61 -92 |created_at id");
        assert_eq!(some.rows, Rows::Where("status".into(), "pe\u{e4}".as_bytes().to_vec()));
        assert_eq!(some.columns, ["created_at", "id"]);
        assert_eq!(index("|?|id").rows, Rows::Some);
        assert_eq!(index("|status=x|id").rows, Rows::Some);
        assert_eq!(Index::parse("nonsense"), None);
    }

    #[test]
    fn only_an_index_that_surely_has_the_rows_is_used() {
        let table = |lines: &[&str]| Table {
            indexes: lines.iter().filter_map(|line| Index::parse(line)).collect(),
            ..Table::default()
        };
        let pending = "|status=112 101 110 100 105 110 103 |created_at id";
        for (indexes, then, expected) in [
            (&[pending][..], &["created_at"][..], Some("created_at id")),
            (&[pending], &[], Some("created_at id")),
            (&[pending], &["id"], None),
            (&["||status created_at"], &["created_at"], Some("created_at")),
            (&["||status"], &[], Some("")),
            (&["||status"], &["created_at"], None),
            (&["|?|status"], &[], None),
            (&["|status=97 |status"], &[], None),
            (&["||id status"], &[], None),
        ] {
            let table = table(indexes);
            let found = table.index_where("status", "pending", then).map(|columns| columns.join(" "));
            assert_eq!(found.as_deref(), expected, "{indexes:?} then {then:?}");
        }
        assert!(table(&["||id"]).has_index(&["id"]) && !table(&["|?|id"]).has_index(&["id"]));
    }
}
