use super::DecodeError;
use super::copy::CopyReader;
use super::texts::Encodings;
use super::value::{oid, timestamp};
use crate::model::Text;
use crate::model::lock::Prepared;

/// Number of columns of `assets/sql/prepared.sql`.
const COLUMNS: usize = 5;

/// The rows so far, with the OIDs of their owners and databases.
#[derive(Debug, Default)]
pub struct PreparedRows {
    reader: CopyReader,
    rows: Vec<(Prepared, Option<u32>, Option<u32>)>,
    encodings: Encodings,
}

impl PreparedRows {
    pub fn of(encodings: Encodings) -> Self {
        Self { encodings, ..Self::default() }
    }

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

    /// OIDs of the owners, with duplicates.
    pub fn owners(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().filter_map(|row| row.1)
    }

    /// OIDs of the databases, with duplicates.
    pub fn databases(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().filter_map(|row| row.2)
    }

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
