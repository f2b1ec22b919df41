use super::cell::{Cell, SortValue, table_name, worker};
use super::{Row, RowId, RowOptions};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::{QueryText, Timestamp};
use crate::text::{self, Align};

/// The rows of a pane as its columns see them, borrowed from the view that is drawn.
pub trait Rows: 'static {
    type Row<'a>: Copy;

    /// `None` if the view has no such row.
    fn get<'a>(context: &Context<'a>, row: Row) -> Option<Self::Row<'a>>;

    /// The identity of the row; `None` if it has none and cannot be selected.
    fn id(context: &Context<'_>, row: Self::Row<'_>) -> Option<RowId>;
}

/// Rows that are a list in the view or the snapshot.
pub trait Listed: 'static {
    type Item: 'static;

    fn list<'a>(context: &Context<'a>) -> &'a [Self::Item];

    fn id_of(item: &Self::Item) -> RowId;

    fn find<'a>(context: &Context<'a>, id: RowId) -> Option<&'a Self::Item> {
        Self::list(context).iter().find(|item| Self::id_of(item) == id)
    }

    /// One row for each item, in order.
    fn rows(context: &Context<'_>, _: RowOptions) -> Vec<Row> {
        Row::all(Self::list(context).len())
    }
}

impl<L: Listed> Rows for L {
    type Row<'a> = &'a L::Item;

    fn get<'a>(context: &Context<'a>, row: Row) -> Option<&'a L::Item> {
        L::list(context).get(row.at()?)
    }

    fn id(_: &Context<'_>, item: &L::Item) -> Option<RowId> {
        Some(L::id_of(item))
    }
}

/// Declares the rows of a pane that are a list: the type of an item, where the list is, and the identity of an item.
macro_rules! listed_rows {
    ($name:ident = $item:ty, |$context:ident| $list:expr, |$seen:ident| $id:expr) => {
        struct $name;

        impl $crate::app::panes::column::Listed for $name {
            type Item = $item;

            fn list<'a>($context: &$crate::app::context::Context<'a>) -> &'a [$item] {
                $list
            }

            fn id_of($seen: &$item) -> $crate::app::panes::RowId {
                $id
            }
        }

        type Column = $crate::app::panes::Column<$name>;
    };
}

/// Declares the rows of a pane: how one is found in the view, and its identity.
macro_rules! pane_rows {
    ($name:ident<$a:lifetime> = $row:ty, |$context:ident, $place:ident| $get:expr, |$seen:pat_param| $id:expr) => {
        struct $name;

        impl $crate::app::panes::Rows for $name {
            type Row<$a> = $row;

            fn get<$a>(
                $context: &$crate::app::context::Context<$a>,
                $place: $crate::app::panes::Row,
            ) -> Option<Self::Row<$a>> {
                $get
            }

            fn id(
                _: &$crate::app::context::Context<'_>,
                $seen: Self::Row<'_>,
            ) -> Option<$crate::app::panes::RowId> {
                Some($id)
            }
        }

        type Column = $crate::app::panes::Column<$name>;
    };
}

pub(super) use {listed_rows, pane_rows};

#[derive(Debug, Clone, Copy)]
pub struct Heading {
    pub title: &'static str,
    /// Its name in a filter: `wait>30`.
    pub name: &'static str,
    pub help: &'static str,
    /// Minimum width in columns of the terminal.
    pub min: u16,
    /// Maximum width; 0 takes the remaining space.
    pub max: u16,
    /// Its cells are right-aligned, as for numbers and ages.
    pub right: bool,
    /// The higher, the sooner it is omitted on a narrow screen; 0 is never omitted.
    pub rank: u8,
    /// Only a filter may name it.
    is_hidden: bool,
    /// Shown only if this is true, because it then distinguishes rows; `None`: always shown.
    only_where: Option<fn(&Context<'_>) -> bool>,
    /// Kept on any narrow screen if this is true; `None`: never.
    kept_where: Option<fn(&Context<'_>) -> bool>,
}

impl Heading {
    pub fn align(&self) -> Align {
        if self.right { Align::Right } else { Align::Left }
    }

    /// Limits the width to that of the widest cell and the title.
    pub fn within(self, width: usize) -> Self {
        let most = u16::try_from(width.max(text::width(self.title))).unwrap_or(u16::MAX);
        // A maximum of 0 stays 0: the remaining space.
        Self { min: self.min.min(most), max: self.max.min(most), ..self }
    }

    /// The heading for the current rows; `None` if the column adds nothing there.
    pub fn over(self, context: Option<&Context<'_>>) -> Option<Self> {
        let Some(context) = context else { return Some(self) };
        if self.only_where.is_some_and(|is_of_use| !is_of_use(context)) {
            return None;
        }
        let stays = self.kept_where.is_some_and(|stays| stays(context));
        Some(if stays { Self { rank: 0, ..self } } else { self })
    }
}

type Get<R, T> = for<'a> fn(<R as Rows>::Row<'a>, &Context<'a>) -> T;
type GetText<R> = for<'a> fn(<R as Rows>::Row<'a>, &Context<'a>) -> Option<&'a str>;
type GetStatement<R> = for<'a> fn(<R as Rows>::Row<'a>, &Context<'a>) -> Option<&'a QueryText>;
type GetValue<R> = for<'a> fn(<R as Rows>::Row<'a>, &Context<'a>) -> SortValue<'a>;
/// The cell in a column of this width.
type Draw<R> = for<'a> fn(<R as Rows>::Row<'a>, &Context<'a>, u16) -> Cell;

enum ColumnContent<R: Rows> {
    Text(GetText<R>),
    Statement(GetStatement<R>),
    /// The name of a worker, shortened in the middle.
    Worker(GetText<R>),
    /// The name of a table, without its schema if the column is narrow.
    Table(GetText<R>),
    /// Seconds, shown as an age.
    Age(Tone, Get<R, Option<f64>>),
    /// A moment, shown as its age.
    Since(Tone, Get<R, Option<Timestamp>>),
    Duration(Tone, Get<R, Option<f64>>),
    Number(Tone, Get<R, Option<i64>>),
    /// A number that has a form of its own.
    Measure(Get<R, Option<f64>>, fn(f64, u16) -> Cell),
    State(Get<R, (&'static str, Tone)>),
    /// A cell of a given width, sorted by its text at full width.
    Cell(Draw<R>),
    Sorted(Draw<R>, GetValue<R>),
}

pub struct Column<R: Rows> {
    pub heading: Heading,
    content: ColumnContent<R>,
}

impl<R: Rows> Column<R> {
    const fn new((title, name, help): ColumnWords, (min, max): Width, content: ColumnContent<R>) -> Self {
        let right = matches!(
            content,
            ColumnContent::Age(..)
                | ColumnContent::Since(..)
                | ColumnContent::Duration(..)
                | ColumnContent::Number(..)
                | ColumnContent::Measure(..)
        );
        let heading = Heading {
            title,
            name,
            help,
            min,
            max,
            right,
            rank: 0,
            is_hidden: false,
            only_where: None,
            kept_where: None,
        };
        Self { heading, content }
    }

    pub const fn text(words: ColumnWords, width: Width, get: GetText<R>) -> Self {
        Self::new(words, width, ColumnContent::Text(get))
    }

    pub const fn statement(words: ColumnWords, width: Width, get: GetStatement<R>) -> Self {
        Self::new(words, width, ColumnContent::Statement(get))
    }

    pub const fn worker(words: ColumnWords, width: Width, get: GetText<R>) -> Self {
        Self::new(words, width, ColumnContent::Worker(get))
    }

    pub const fn table(width: Width, get: GetText<R>) -> Self {
        Self::new(TABLE, width, ColumnContent::Table(get))
    }

    pub const fn duration(words: ColumnWords, width: Width, tone: Tone, get: Get<R, Option<f64>>) -> Self {
        Self::new(words, width, ColumnContent::Duration(tone, get))
    }

    pub const fn age(words: ColumnWords, width: Width, tone: Tone, get: Get<R, Option<f64>>) -> Self {
        Self::new(words, width, ColumnContent::Age(tone, get))
    }

    pub const fn since(words: ColumnWords, width: Width, tone: Tone, get: Get<R, Option<Timestamp>>) -> Self {
        Self::new(words, width, ColumnContent::Since(tone, get))
    }

    pub const fn number(words: ColumnWords, width: Width, tone: Tone, get: Get<R, Option<i64>>) -> Self {
        Self::new(words, width, ColumnContent::Number(tone, get))
    }

    pub const fn measure(
        words: ColumnWords,
        width: Width,
        get: Get<R, Option<f64>>,
        show: fn(f64, u16) -> Cell,
    ) -> Self {
        Self::new(words, width, ColumnContent::Measure(get, show))
    }

    pub const fn state(help: &'static str, width: u16, get: Get<R, (&'static str, Tone)>) -> Self {
        Self::new(("STATE", "state", help), (width, width), ColumnContent::State(get))
    }

    pub const fn cell(words: ColumnWords, width: Width, cell: Draw<R>) -> Self {
        Self::new(words, width, ColumnContent::Cell(cell))
    }

    pub const fn sorted(words: ColumnWords, width: Width, cell: Draw<R>, value: GetValue<R>) -> Self {
        Self::new(words, width, ColumnContent::Sorted(cell, value))
    }

    pub const fn rank(mut self, rank: u8) -> Self {
        self.heading.rank = rank;
        self
    }

    pub const fn right(mut self) -> Self {
        self.heading.right = true;
        self
    }

    pub const fn left(mut self) -> Self {
        self.heading.right = false;
        self
    }

    pub const fn only_in_filters(mut self) -> Self {
        self.heading.is_hidden = true;
        self
    }

    pub const fn only_where(mut self, is_of_use: fn(&Context<'_>) -> bool) -> Self {
        self.heading.only_where = Some(is_of_use);
        self
    }

    pub const fn kept_where(mut self, stays: fn(&Context<'_>) -> bool) -> Self {
        self.heading.kept_where = Some(stays);
        self
    }

    fn cell_of<'a>(&self, row: R::Row<'a>, context: &Context<'a>, room: u16) -> Cell {
        match self.content {
            ColumnContent::Text(get) => Cell::server(get(row, context)),
            ColumnContent::Statement(get) => Cell::statement(get(row, context)),
            ColumnContent::Worker(get) => worker(get(row, context), room),
            ColumnContent::Table(get) => table_name(get(row, context), room),
            ColumnContent::Age(tone, get) => Cell::age(get(row, context), tone),
            ColumnContent::Since(tone, get) => Cell::age(context.age(get(row, context)), tone),
            ColumnContent::Duration(tone, get) => Cell::duration(get(row, context), tone),
            ColumnContent::Number(tone, get) => {
                get(row, context).map_or_else(Cell::none, |number| Cell::toned(number.to_string(), tone))
            }
            ColumnContent::Measure(get, show) => {
                get(row, context).map_or_else(Cell::none, |number| show(number, room))
            }
            ColumnContent::State(get) => {
                let (name, tone) = get(row, context);
                Cell::toned(name, tone)
            }
            ColumnContent::Cell(cell) | ColumnContent::Sorted(cell, _) => cell(row, context, room),
        }
    }

    fn value_of<'a>(&self, row: R::Row<'a>, context: &Context<'a>) -> SortValue<'a> {
        match self.content {
            ColumnContent::Text(get) | ColumnContent::Worker(get) | ColumnContent::Table(get) => {
                SortValue::text(get(row, context))
            }
            ColumnContent::Statement(get) => SortValue::statement(get(row, context)),
            ColumnContent::Age(_, get) | ColumnContent::Duration(_, get) | ColumnContent::Measure(get, _) => {
                SortValue::number(get(row, context))
            }
            ColumnContent::Since(_, get) => SortValue::number(context.age(get(row, context))),
            ColumnContent::Number(_, get) => SortValue::whole(get(row, context)),
            ColumnContent::State(get) => SortValue::state(get(row, context).0),
            ColumnContent::Cell(cell) => cell(row, context, u16::MAX).into_value(),
            ColumnContent::Sorted(_, value) => value(row, context),
        }
    }
}

/// The columns of a pane, for any type of rows. A column is identified by its position: columns that only a filter may
/// name come after those on the screen.
pub trait PaneTable: Sync {
    /// Of all columns, also those that only a filter may name.
    fn all(&self) -> Vec<Heading>;

    fn cell(&self, context: &Context<'_>, row: Row, column: usize, room: u16) -> Cell;

    fn value<'a>(&self, context: &Context<'a>, row: Row, column: usize) -> SortValue<'a>;

    /// The identity of a row; `None` if it has none and cannot be selected.
    fn id(&self, context: &Context<'_>, row: Row) -> Option<RowId>;
}

impl dyn PaneTable {
    /// Of the columns on the screen.
    pub fn headings(&self) -> Vec<Heading> {
        self.all().into_iter().filter(|heading| !heading.is_hidden).collect()
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        self.headings().iter().position(|heading| heading.name == name)
    }
}

impl<R: Rows> PaneTable for &'static [Column<R>] {
    fn all(&self) -> Vec<Heading> {
        self.iter().map(|column| column.heading).collect()
    }

    fn cell(&self, context: &Context<'_>, row: Row, column: usize, room: u16) -> Cell {
        let found = self.get(column).zip(R::get(context, row));
        found.map_or_else(Cell::none, |(column, row)| column.cell_of(row, context, room))
    }

    fn value<'a>(&self, context: &Context<'a>, row: Row, column: usize) -> SortValue<'a> {
        let found = self.get(column).zip(R::get(context, row));
        found.map_or(SortValue::Missing, |(column, row)| column.value_of(row, context))
    }

    fn id(&self, context: &Context<'_>, row: Row) -> Option<RowId> {
        R::id(context, R::get(context, row)?)
    }
}

/// Title, name and help of a column.
pub(super) type ColumnWords = (&'static str, &'static str, &'static str);

/// Minimum and maximum width in columns of the terminal; a maximum of 0 takes the remaining space.
type Width = (u16, u16);

pub(super) const PID: ColumnWords = ("PID", "pid", "process id of the session");
pub(super) const DB: ColumnWords = ("DB", "db", "database");
pub(super) const WHO: ColumnWords =
    ("WHO", "who", "role@application; in a narrow column the application, or else the role, or the address");
pub(super) const TYPE_HELP: &str = "the lock type, as in pg_locks";
pub(super) const QUERY: ColumnWords = ("QUERY", "query", "the query it runs, or ran last");
pub(super) const XACT: ColumnWords = ("XACT", "xact", "age of its transaction; w: it may have written");
pub(super) const BLOCKS: ColumnWords =
    ("BLOCKS", "blocks", "sessions that wait behind it, directly or through others");
pub(super) const TABLE: ColumnWords = ("TABLE", "table", "the table of the row");
pub(super) const WORKER: ColumnWords = ("WORKER", "worker", "the worker, as the table names it");
pub(super) const TRY: ColumnWords = ("TRY", "try", "the attempt, and the limit");
pub(super) const BEAT: ColumnWords = ("BEAT", "beat", "since the worker's last heartbeat");
