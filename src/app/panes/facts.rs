use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::Timestamp;
use crate::model::snapshot::Section;
use crate::model::systems::TableRows;

pub type Fact = (String, Tone);

/// A number with its noun in the singular or plural: `2 roots`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

pub fn stale(context: &Context<'_>, taken: Option<Timestamp>, error: &str) -> Fact {
    let age = context
        .age(taken)
        .map_or_else(|| "cannot be read".to_owned(), |age| format!("{} old", crate::text::duration(age)));
    (format!("{age}: {}", crate::text::one_line_prefix(error, 500)), Tone::Past)
}

/// Set if the catalog could not be searched for tables: there may be more.
pub(super) fn unsearched(context: &Context<'_>, search: &Section<()>) -> Option<Fact> {
    let (text, tone) = stale(context, search.taken_at, search.error.as_deref()?);
    Some((format!("cannot search for tables, {text}"), tone))
}

pub(super) fn stale_tables<T>(context: &Context<'_>, tables: &[TableRows<T>]) -> Vec<Fact> {
    let error = |table: &TableRows<T>| {
        let error = table.section.error.clone()?;
        Some(stale(context, table.section.taken_at, &error))
    };
    tables.iter().filter_map(error).collect()
}

/// When one of the tables was read; `None` before the first time.
pub(super) fn taken<T>(tables: &[TableRows<T>]) -> Option<Timestamp> {
    tables.iter().find_map(|table| table.section.taken_at)
}

pub(super) fn cut<T>(tables: &[TableRows<T>]) -> Option<Fact> {
    tables.iter().any(|table| table.is_cut).then(|| ("more are not read".to_owned(), Tone::Warning))
}

/// `3 keys`: the rows of all tables.
pub(super) fn rows<T>(tables: &[TableRows<T>], one: &str, many: &str) -> String {
    let number: usize = tables.iter().map(|table| table.section.last_rows().len()).sum();
    format!("{} {}", crate::text::count(number as u64), if number == 1 { one } else { many })
}
