//! Rows of `pg_prepared_xacts`.

use super::DecodeError;
use super::copy::CopyReader;
use super::encoding::Encodings;
use super::value::{oid, timestamp};
use crate::model::Text;
use crate::model::lock::Prepared;

/// The number of columns of `assets/sql/prepared.sql`.
const COLUMNS: usize = 5;

/// The rows so far, with the OIDs of their owners and databases beside them.
#[derive(Debug, Default)]
pub struct PreparedRows {
    reader: CopyReader,
    rows: Vec<(Prepared, Option<u32>, Option<u32>)>,
    encodings: Encodings,
}

impl PreparedRows {
    /// None so far. A name is in the encoding of the database of its transaction.
    pub fn of(encodings: Encodings) -> Self {
        Self { encodings, ..Self::default() }
    }

    /// Decodes one message.
    pub fn read(&mut self, message: &[u8]) -> Result<(), DecodeError> {
        let Self { reader, rows, encodings } = self;
        reader.read(message, COLUMNS, |fields| {
            let transaction = oid(fields.value()?);
            let gid = fields.value()?;
            let prepared = timestamp(fields.value()?);
            let (owner, database) = (oid(fields.value()?), oid(fields.value()?));
            let gid = encodings.of(database).text(gid);
            if let (Some(transaction), Some(gid)) = (transaction, gid) {
                let row =
                    Prepared { transaction, gid: (&*gid).into(), prepared, owner: None, database: None };
                rows.push((row, owner, database));
            }
            Ok(())
        })
    }

    /// The OIDs of the roles that own them, as often as each occurs.
    pub fn owners(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().filter_map(|row| row.1)
    }

    /// The OIDs of the databases that they are of, as often as each occurs.
    pub fn databases(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().filter_map(|row| row.2)
    }

    /// The rows, with the names that `owner` and `database` give.
    pub fn finish(
        self,
        owner: impl Fn(u32) -> Option<Text>,
        database: impl Fn(u32) -> Option<Text>,
    ) -> Vec<Prepared> {
        self.rows
            .into_iter()
            .map(|(row, ownerid, dbid)| Prepared {
                owner: ownerid.and_then(&owner),
                database: dbid.and_then(&database),
                ..row
            })
            .collect()
    }
}
