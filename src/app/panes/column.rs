//! A column is a value: its heading, what stands in its cells, and what its rows are sorted and filtered by.

use super::cell::{Cell, Value};
use super::row::{Row, RowId};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::QueryText;
use crate::text::{self, Align};

/// What the rows of a pane are, as its columns see them: borrowed from the view that is drawn.
pub trait Rows: 'static {
    /// A row, borrowed from the view or worked out of it.
    type Row<'a>: Copy;

    /// The row at a place; none where the view has no such row.
    fn get<'a>(context: &Context<'a>, row: Row) -> Option<Self::Row<'a>>;

    /// What the row is about; none where nothing can hold on to it.
    fn id(context: &Context<'_>, row: Self::Row<'_>) -> Option<RowId>;
}

/// The heading of a column, and how wide it is.
#[derive(Debug, Clone, Copy)]
pub struct Heading {
    /// What stands over the column, in capitals.
    pub title: &'static str,
    /// Its name in a filter: `wait>30`.
    pub name: &'static str,
    /// What it says, for the help.
    pub help: &'static str,
    /// Least width in columns of the terminal.
    pub min: u16,
    /// Width with room to spare; 0 takes what is left.
    pub max: u16,
    /// Its cells stand at the right edge, as numbers and ages do.
    pub right: bool,
    /// The higher, the sooner it is left out when the screen is narrow; 0 stays.
    pub rank: u8,
    /// Where it tells rows apart; none: everywhere.
    only_where: Option<fn(&Context<'_>) -> bool>,
    /// Where it stays however narrow the screen is; none: nowhere.
    kept_where: Option<fn(&Context<'_>) -> bool>,
}

impl Heading {
    /// At which edge its cells stand.
    pub fn align(&self) -> Align {
        if self.right { Align::Right } else { Align::Left }
    }

    /// The heading over cells of which none is wider than that.
    pub fn within(self, width: usize) -> Self {
        let most = u16::try_from(width.max(text::width(self.title))).unwrap_or(u16::MAX);
        // Where it takes what is left, 0 says so.
        Self { min: self.min.min(most), max: self.max.min(most), ..self }
    }

    /// The heading as it is over these rows; none where the column says nothing there.
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

/// What stands in the cells of a column.
enum Content<R: Rows> {
    /// Text of the server, made fit for a screen.
    Text(for<'a> fn(R::Row<'a>, &Context<'a>) -> Option<&'a str>),
    /// A statement of a session.
    Statement(for<'a> fn(R::Row<'a>, &Context<'a>) -> Option<&'a QueryText>),
    /// Seconds, shown as an age.
    Age(Tone, Get<R, Option<f64>>),
    /// Seconds, shown as a duration.
    Duration(Tone, Get<R, Option<f64>>),
    /// A whole number, shown as it is.
    Number(Tone, Get<R, Option<i64>>),
    /// The name of a state, in its tone.
    State(Get<R, (&'static str, Tone)>),
    /// A cell, in so much room; it is sorted by what it says where it has all the room.
    Cell(for<'a> fn(R::Row<'a>, &Context<'a>, u16) -> Cell),
    /// A cell, in so much room, and what it is sorted by.
    Sorted(
        for<'a> fn(R::Row<'a>, &Context<'a>, u16) -> Cell,
        for<'a> fn(R::Row<'a>, &Context<'a>) -> Value<'a>,
    ),
}

/// A column over rows of one kind.
pub struct Column<R: Rows> {
    /// The heading, with its widths and its name in a filter.
    pub heading: Heading,
    content: Content<R>,
}

/// Title, name and help of a column.
type Words = (&'static str, &'static str, &'static str);

impl<R: Rows> Column<R> {
    const fn new((title, name, help): Words, (min, max): (u16, u16), content: Content<R>) -> Self {
        let right = matches!(content, Content::Age(..) | Content::Duration(..) | Content::Number(..));
        let heading =
            Heading { title, name, help, min, max, right, rank: 0, only_where: None, kept_where: None };
        Self { heading, content }
    }

    /// A column of text of the server.
    pub const fn text(
        words: Words,
        width: (u16, u16),
        get: for<'a> fn(R::Row<'a>, &Context<'a>) -> Option<&'a str>,
    ) -> Self {
        Self::new(words, width, Content::Text(get))
    }

    /// A column of statements.
    pub const fn statement(
        words: Words,
        width: (u16, u16),
        get: for<'a> fn(R::Row<'a>, &Context<'a>) -> Option<&'a QueryText>,
    ) -> Self {
        Self::new(words, width, Content::Statement(get))
    }

    /// A column of measured or configured durations, of seconds.
    pub const fn duration(words: Words, width: (u16, u16), tone: Tone, get: Get<R, Option<f64>>) -> Self {
        Self::new(words, width, Content::Duration(tone, get))
    }

    /// A column of ages, of seconds.
    pub const fn age(words: Words, width: (u16, u16), tone: Tone, get: Get<R, Option<f64>>) -> Self {
        Self::new(words, width, Content::Age(tone, get))
    }

    /// A column of whole numbers.
    pub const fn number(words: Words, width: (u16, u16), tone: Tone, get: Get<R, Option<i64>>) -> Self {
        Self::new(words, width, Content::Number(tone, get))
    }

    /// A column of states by their names.
    pub const fn state(words: Words, width: (u16, u16), get: Get<R, (&'static str, Tone)>) -> Self {
        Self::new(words, width, Content::State(get))
    }

    /// Anything, as a cell in so much room.
    pub const fn cell(
        words: Words,
        width: (u16, u16),
        cell: for<'a> fn(R::Row<'a>, &Context<'a>, u16) -> Cell,
    ) -> Self {
        Self::new(words, width, Content::Cell(cell))
    }

    /// Anything, as a cell in so much room and what it is sorted and filtered by.
    pub const fn sorted(
        words: Words,
        width: (u16, u16),
        cell: for<'a> fn(R::Row<'a>, &Context<'a>, u16) -> Cell,
        value: for<'a> fn(R::Row<'a>, &Context<'a>) -> Value<'a>,
    ) -> Self {
        Self::new(words, width, Content::Sorted(cell, value))
    }

    /// Left out when the screen is narrow: the higher, the sooner.
    pub const fn rank(mut self, rank: u8) -> Self {
        self.heading.rank = rank;
        self
    }

    /// The column with its cells at the right edge.
    pub const fn right(mut self) -> Self {
        self.heading.right = true;
        self
    }

    /// The column with its cells at the left edge.
    pub const fn left(mut self) -> Self {
        self.heading.right = false;
        self
    }

    /// The column, only there where it tells rows apart.
    pub const fn only_where(mut self, is_of_use: fn(&Context<'_>) -> bool) -> Self {
        self.heading.only_where = Some(is_of_use);
        self
    }

    /// Stays however narrow the screen is, where that holds.
    pub const fn kept_where(mut self, stays: fn(&Context<'_>) -> bool) -> Self {
        self.heading.kept_where = Some(stays);
        self
    }

    fn cell_of<'a>(&self, row: R::Row<'a>, context: &Context<'a>, room: u16) -> Cell {
        match self.content {
            Content::Text(get) => Cell::server(get(row, context)),
            Content::Statement(get) => Cell::statement(get(row, context)),
            Content::Age(tone, get) => Cell::age(get(row, context), tone),
            Content::Duration(tone, get) => Cell::duration(get(row, context), tone),
            Content::Number(tone, get) => {
                get(row, context).map_or_else(Cell::none, |number| Cell::toned(number.to_string(), tone))
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
            Content::Text(get) => Value::text(get(row, context)),
            Content::Statement(get) => Value::statement(get(row, context)),
            Content::Age(_, get) | Content::Duration(_, get) => Value::number(get(row, context)),
            Content::Number(_, get) => Value::whole(get(row, context)),
            Content::State(get) => Value::state(get(row, context).0),
            Content::Cell(cell) => cell(row, context, u16::MAX).into_value(),
            Content::Sorted(_, value) => value(row, context),
        }
    }
}

/// The columns of a pane over rows of one kind.
pub struct Columns<R: Rows> {
    /// Those on the screen, in their order.
    pub shown: &'static [Column<R>],
    /// What a filter may name beside them.
    pub others: &'static [Column<R>],
}

/// The columns of a pane, whatever its rows are. A column is meant by its position: those that only a filter may name
/// come after those on the screen.
pub trait Table: Sync {
    /// The headings of those on the screen.
    fn headings(&self) -> Vec<Heading>;

    /// The names of those that only a filter may name.
    fn others(&self) -> Vec<&'static str>;

    /// Where the column with this name stands on the screen.
    fn position(&self, name: &str) -> Option<usize>;

    /// What stands in a cell that has so much room.
    fn cell(&self, context: &Context<'_>, row: Row, column: usize, room: u16) -> Cell;

    /// What a row is sorted and filtered by.
    fn value<'a>(&self, context: &Context<'a>, row: Row, column: usize) -> Value<'a>;

    /// What a row is about; none where nothing can hold on to it.
    fn id(&self, context: &Context<'_>, row: Row) -> Option<RowId>;
}

impl<R: Rows> Columns<R> {
    fn column(&self, at: usize) -> Option<&Column<R>> {
        self.shown.iter().chain(self.others).nth(at)
    }
}

impl<R: Rows> Table for Columns<R> {
    fn headings(&self) -> Vec<Heading> {
        self.shown.iter().map(|column| column.heading).collect()
    }

    fn others(&self) -> Vec<&'static str> {
        self.others.iter().map(|column| column.heading.name).collect()
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.shown.iter().position(|column| column.heading.name == name)
    }

    fn cell(&self, context: &Context<'_>, row: Row, column: usize, room: u16) -> Cell {
        let found = self.column(column).zip(R::get(context, row));
        found.map_or_else(Cell::none, |(column, row)| column.cell_of(row, context, room))
    }

    fn value<'a>(&self, context: &Context<'a>, row: Row, column: usize) -> Value<'a> {
        let found = self.column(column).zip(R::get(context, row));
        found.map_or(Value::Missing, |(column, row)| column.value_of(row, context))
    }

    fn id(&self, context: &Context<'_>, row: Row) -> Option<RowId> {
        R::id(context, R::get(context, row)?)
    }
}
