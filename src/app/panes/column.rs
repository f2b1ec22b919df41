use super::cell::{Cell, Value, table_name, worker};
use super::{Row, RowId, Wanted};
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
    fn rows(context: &Context<'_>, _: Wanted) -> Vec<Row> {
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
type GetValue<R> = for<'a> fn(<R as Rows>::Row<'a>, &Context<'a>) -> Value<'a>;
/// The cell in a column of this width.
type Draw<R> = for<'a> fn(<R as Rows>::Row<'a>, &Context<'a>, u16) -> Cell;

enum Content<R: Rows> {
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
    content: Content<R>,
}

impl<R: Rows> Column<R> {
    const fn new((title, name, help): Words, (min, max): Width, content: Content<R>) -> Self {
        let right = matches!(
            content,
            Content::Age(..)
                | Content::Since(..)
                | Content::Duration(..)
                | Content::Number(..)
                | Content::Measure(..)
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

    pub const fn text(words: Words, width: Width, get: GetText<R>) -> Self {
        Self::new(words, width, Content::Text(get))
    }

    pub const fn statement(words: Words, width: Width, get: GetStatement<R>) -> Self {
        Self::new(words, width, Content::Statement(get))
    }

    pub const fn worker(words: Words, width: Width, get: GetText<R>) -> Self {
        Self::new(words, width, Content::Worker(get))
    }

    pub const fn table(width: Width, get: GetText<R>) -> Self {
        Self::new(TABLE, width, Content::Table(get))
    }

    pub const fn duration(words: Words, width: Width, tone: Tone, get: Get<R, Option<f64>>) -> Self {
        Self::new(words, width, Content::Duration(tone, get))
    }

    pub const fn age(words: Words, width: Width, tone: Tone, get: Get<R, Option<f64>>) -> Self {
        Self::new(words, width, Content::Age(tone, get))
    }

    pub const fn since(words: Words, width: Width, tone: Tone, get: Get<R, Option<Timestamp>>) -> Self {
        Self::new(words, width, Content::Since(tone, get))
    }

    pub const fn number(words: Words, width: Width, tone: Tone, get: Get<R, Option<i64>>) -> Self {
        Self::new(words, width, Content::Number(tone, get))
    }

    pub const fn measure(
        words: Words,
        width: Width,
        get: Get<R, Option<f64>>,
        show: fn(f64, u16) -> Cell,
    ) -> Self {
        Self::new(words, width, Content::Measure(get, show))
    }

    pub const fn state(help: &'static str, width: u16, get: Get<R, (&'static str, Tone)>) -> Self {
        Self::new(("STATE", "state", help), (width, width), Content::State(get))
    }

    pub const fn cell(words: Words, width: Width, cell: Draw<R>) -> Self {
        Self::new(words, width, Content::Cell(cell))
    }

    pub const fn sorted(words: Words, width: Width, cell: Draw<R>, value: GetValue<R>) -> Self {
        Self::new(words, width, Content::Sorted(cell, value))
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
            Content::Text(get) => Cell::server(get(row, context)),
            Content::Statement(get) => Cell::statement(get(row, context)),
            Content::Worker(get) => worker(get(row, context), room),
            Content::Table(get) => table_name(get(row, context), room),
            Content::Age(tone, get) => Cell::age(get(row, context), tone),
            Content::Since(tone, get) => Cell::age(context.age(get(row, context)), tone),
            Content::Duration(tone, get) => Cell::duration(get(row, context), tone),
            Content::Number(tone, get) => {
                get(row, context).map_or_else(Cell::none, |number| Cell::toned(number.to_string(), tone))
            }
            Content::Measure(get, show) => {
                get(row, context).map_or_else(Cell::none, |number| show(number, room))
            }
            Content::State(get) => {
                let (name, tone) = get(row, context);
                Cell::toned(name, tone)
            }
            Content::Cell(cell) | Content::Sorted(cell, _) => cell(row, context, room),
        }
    }

    fn value_of<'a>(&self, row: R::Row<'a>, context: &Context<'a>) -> Value<'a> {
        match self.content {
            Content::Text(get) | Content::Worker(get) | Content::Table(get) => Value::text(get(row, context)),
            Content::Statement(get) => Value::statement(get(row, context)),
            Content::Age(_, get) | Content::Duration(_, get) | Content::Measure(get, _) => {
                Value::number(get(row, context))
            }
            Content::Since(_, get) => Value::number(context.age(get(row, context))),
            Content::Number(_, get) => Value::whole(get(row, context)),
            Content::State(get) => Value::state(get(row, context).0),
            Content::Cell(cell) => cell(row, context, u16::MAX).into_value(),
            Content::Sorted(_, value) => value(row, context),
        }
    }
}

/// The columns of a pane, for any type of rows. A column is identified by its position: columns that only a filter may
/// name come after those on the screen.
pub trait Table: Sync {
    /// Of all columns, also those that only a filter may name.
    fn all(&self) -> Vec<Heading>;

    fn cell(&self, context: &Context<'_>, row: Row, column: usize, room: u16) -> Cell;

    fn value<'a>(&self, context: &Context<'a>, row: Row, column: usize) -> Value<'a>;

    /// The identity of a row; `None` if it has none and cannot be selected.
    fn id(&self, context: &Context<'_>, row: Row) -> Option<RowId>;
}

impl dyn Table {
    /// Of the columns on the screen.
    pub fn headings(&self) -> Vec<Heading> {
        self.all().into_iter().filter(|heading| !heading.is_hidden).collect()
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        self.headings().iter().position(|heading| heading.name == name)
    }
}

impl<R: Rows> Table for &'static [Column<R>] {
    fn all(&self) -> Vec<Heading> {
        self.iter().map(|column| column.heading).collect()
    }

    fn cell(&self, context: &Context<'_>, row: Row, column: usize, room: u16) -> Cell {
        let found = self.get(column).zip(R::get(context, row));
        found.map_or_else(Cell::none, |(column, row)| column.cell_of(row, context, room))
    }

    fn value<'a>(&self, context: &Context<'a>, row: Row, column: usize) -> Value<'a> {
        let found = self.get(column).zip(R::get(context, row));
        found.map_or(Value::Missing, |(column, row)| column.value_of(row, context))
    }

    fn id(&self, context: &Context<'_>, row: Row) -> Option<RowId> {
        R::id(context, R::get(context, row)?)
    }
}

/// Title, name and help of a column.
pub(super) type Words = (&'static str, &'static str, &'static str);

/// Minimum and maximum width in columns of the terminal; a maximum of 0 takes the remaining space.
type Width = (u16, u16);

pub(super) const PID: Words = ("PID", "pid", "process id of the session");
pub(super) const DB: Words = ("DB", "db", "database");
pub(super) const WHO: Words =
    ("WHO", "who", "role@application; in a narrow column the application, or else the role, or the address");
pub(super) const TYPE_HELP: &str = "the lock type, as in pg_locks";
pub(super) const QUERY: Words = ("QUERY", "query", "the query it runs, or ran last");
pub(super) const XACT: Words = ("XACT", "xact", "age of its transaction; w: it may have written");
pub(super) const BLOCKS: Words =
    ("BLOCKS", "blocks", "sessions that wait behind it, directly or through others");
pub(super) const TABLE: Words = ("TABLE", "table", "the table of the row");
pub(super) const WORKER: Words = ("WORKER", "worker", "the worker, as the table names it");
pub(super) const TRY: Words = ("TRY", "try", "the attempt, and the limit");
pub(super) const BEAT: Words = ("BEAT", "beat", "since the worker's last heartbeat");
