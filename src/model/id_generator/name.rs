use super::IdGenerator;
use crate::model::lock_name::LockName;
use crate::model::namespace;
use crate::model::systems::TableRows;

/// The name of the generator behind a bigint key: `id generator 3`. A key of the namespace is certain if its id is that of
/// one generator; a raw number may belong to other software.
pub fn name_of(tables: &[TableRows<IdGenerator>], number: i64) -> Option<LockName> {
    let own = namespace::id_in(namespace::GENERATORS, number);
    let id = own.unwrap_or(number);
    let mut owners =
        tables.iter().filter(|table| table.section.last_rows().iter().any(|row| row.worker == id));
    let table = owners.next()?;
    let origin = match own {
        Some(id) => format!("the key of id generator {id} in {}", table.source.name),
        None => format!("the same number as a worker in {}", table.source.name),
    };
    // With two tables, it is not known which one has keys of its own: their columns are the same.
    let uncertain = own.is_none() || owners.next().is_some();
    Some(LockName { name: format!("id generator {id}").into(), uncertain, origin: origin.into() })
}
