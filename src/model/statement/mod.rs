//! What a statement locks, read from its text: which form it is, on which relations it takes which mode, and what it does meanwhile.
//!
//! Nothing is guessed: what is not in the tables of [`forms`] is not known. Functions, triggers and views are not looked into.

mod form;
mod forms;
mod name;
mod pattern;
mod query;
pub mod redacted;
pub mod scan;
pub mod secrets;
#[cfg(test)]
mod tests;
pub mod token;

pub use form::{Form, Work};
pub use name::Relation;
use query::Verb;
use token::{Token, tokens};

use super::lock::LockMode;

/// The longest text that is read, in bytes.
pub const LONGEST: usize = 1 << 18;

/// A statement that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its forms: one, or that of each action of ALTER TABLE.
    pub forms: Vec<&'static Form>,
    /// What it is called: `ALTER TABLE … ADD COLUMN, DROP COLUMN`.
    pub name: String,
    /// What it takes, in the order of the text; each relation once, with the strongest mode.
    pub takes: Vec<Take>,
}

/// What a statement takes on one relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// The relation that is locked, as the statement names it.
    pub relation: Relation,
    /// The strongest mode that the statement takes on it.
    pub mode: LockMode,
    /// Where the relation is an index: what is taken on its table.
    pub on_table_of_index: Option<LockMode>,
    /// Whether it is the one that the statement is about: what it rewrites or reads.
    pub is_subject: bool,
}

impl Statement {
    /// The mode that it takes on a relation of this name, `orders` or `shop.orders`.
    pub fn mode_on(&self, shown: &str) -> Option<LockMode> {
        self.takes.iter().find(|take| take.relation.is_called(shown)).map(|take| take.mode)
    }

    /// The first major version that has all of it.
    pub fn since(&self) -> u32 {
        self.forms.iter().map(|form| form.since).max().unwrap_or_default()
    }

    /// For which transactions it waits beside those that have a mode in its way: those that hold one which conflicts with this.
    pub fn waits_for(&self) -> Option<LockMode> {
        self.forms.iter().find_map(|form| form.waits_for)
    }
}

/// Why a statement is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// No form begins so.
    #[error("locktop does not know the statement {0}")]
    Form(String),
    /// An action of ALTER TABLE.
    #[error("locktop does not know the action {0} of ALTER TABLE")]
    Action(String),
    /// A parenthesis or a quote is open.
    #[error("the statement does not end: a parenthesis is not closed, or one too many is")]
    Open,
}

/// Each statement of a text: what stands between semicolons. What is behind [`LONGEST`] bytes is not read.
pub fn statements(text: &str) -> Vec<Result<Statement, Unknown>> {
    let tokens = tokens(beginning(text, LONGEST));
    name::split(&tokens, ';').into_iter().filter(|tokens| !tokens.is_empty()).map(read).collect()
}

/// The first statement of a text, of which the server may have kept a part alone; no more of it is read than the first of so many bytes.
pub fn first(text: &str, bytes: usize) -> Option<Statement> {
    let tokens = tokens(beginning(text, bytes));
    let first = name::split(&tokens, ';').into_iter().find(|tokens| !tokens.is_empty())?;
    let first = unwrapped(first);
    if query::begins(first.first()?) { Some(of_query(query::query(first), &[])) } else { read(first).ok() }
}

/// Every form, with a statement of it on the tables of the tests; an empty one where it takes more than one statement to get there.
pub fn forms() -> Vec<(&'static Form, String)> {
    let statements = forms::QUERIES.into_iter().chain(forms::STATEMENTS);
    let mut found: Vec<_> = statements.map(|form| (form, form.example.to_owned())).collect();
    for form in forms::ACTIONS {
        let is_whole = form.example.is_empty() || form.example.starts_with("ALTER TABLE");
        let head = if is_whole { "" } else { "ALTER TABLE t " };
        found.push((form, format!("{head}{}", form.example)));
    }
    found
}

fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

fn read(tokens: &[Token<'_>]) -> Result<Statement, Unknown> {
    let tokens = unwrapped(tokens);
    let first = tokens.first().ok_or(Unknown::Open)?;
    let is_in_parentheses = first.sign('(');
    if is_in_parentheses || query::begins(first) {
        return whole_query(tokens).ok_or_else(|| unknown(tokens))?;
    }
    if let [copy, open, ..] = tokens
        && copy.is("COPY")
        && open.sign('(')
    {
        let inside = name::group(tokens.get(1..).unwrap_or_default()).ok_or(Unknown::Open)?;
        return whole_query(tokens.get(2..inside).unwrap_or_default()).ok_or_else(|| unknown(tokens))?;
    }
    if tokens.iter().filter(|token| token.sign('(')).count()
        != tokens.iter().filter(|token| token.sign(')')).count()
    {
        return Err(Unknown::Open);
    }
    let found =
        forms::STATEMENTS.iter().find_map(|form| Some((form, pattern::matched(form.pattern, tokens)?)));
    match found {
        Some((form, relations)) => statement(form, relations, tokens),
        None => altered_table(tokens).unwrap_or_else(|| Err(unknown(tokens))),
    }
}

/// What EXPLAIN, PREPARE and DECLARE are about: planning takes the same locks as running.
fn unwrapped<'t, 'a>(tokens: &'t [Token<'a>]) -> &'t [Token<'a>] {
    let inner = match tokens.first() {
        Some(first) if first.is("EXPLAIN") => {
            let is_inner =
                |token: &Token<'_>| query::begins(token) || token.is_any(&["CREATE", "REFRESH", "DECLARE"]);
            tokens.iter().position(is_inner).and_then(|at| at.checked_sub(1))
        }
        Some(first) if first.is("PREPARE") && !tokens.get(1).is_some_and(|next| next.is("TRANSACTION")) => {
            tokens.iter().position(|token| token.is("AS"))
        }
        Some(first) if first.is("DECLARE") => tokens.iter().position(|token| token.is("FOR")),
        _ => return tokens,
    };
    inner.and_then(|at| tokens.get(at + 1..)).unwrap_or(tokens)
}

fn unknown(tokens: &[Token<'_>]) -> Unknown {
    Unknown::Form(beginning_of(tokens))
}

/// The first three words.
fn beginning_of(tokens: &[Token<'_>]) -> String {
    let words = tokens.iter().take(3).map(|token| match token.kind {
        token::Kind::Text | token::Kind::Number => "?",
        _ => beginning(token.text, 40),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn whole_query(tokens: &[Token<'_>]) -> Option<Result<Statement, Unknown>> {
    let query = query::query(tokens);
    query.verb?;
    Some(if query.is_whole { Ok(of_query(query, &[])) } else { Err(Unknown::Open) })
}

/// A query, or the statement that a query is a part of.
fn of_query(query: query::Query, forms: &[&'static Form]) -> Statement {
    let own = match query.verb {
        Some(Verb::Insert) => &forms::INSERT,
        Some(Verb::Update) => &forms::UPDATE,
        Some(Verb::Delete) => &forms::DELETE,
        Some(Verb::Merge) => &forms::MERGE,
        _ if query.locks_rows => &forms::SELECT_FOR_UPDATE,
        _ => &forms::SELECT,
    };
    let forms = if forms.is_empty() { vec![own] } else { forms.to_vec() };
    let mut found = Statement { name: name_of(&forms), forms, takes: Vec::new() };
    for (relation, mode) in query.takes {
        found.add(relation, mode, false);
    }
    found
}

fn name_of(forms: &[&'static Form]) -> String {
    forms.first().map(|form| form.name.to_owned()).unwrap_or_default()
}

fn statement(
    form: &'static Form,
    relations: Vec<Vec<Relation>>,
    tokens: &[Token<'_>],
) -> Result<Statement, Unknown> {
    let mut found = Statement { forms: vec![form], name: form.name.to_owned(), takes: Vec::new() };
    for (place, relations) in relations.into_iter().enumerate() {
        let Some(mode) = form.modes.get(place).or(form.modes.last()) else { continue };
        for relation in relations {
            found.add(relation, *mode, place == 0);
            if let (Some(take), Some(on_table)) = (found.takes.last_mut(), form.on_table_of_index) {
                take.on_table_of_index = Some(on_table);
            }
        }
    }
    if form.has_query {
        let at = outside(tokens, "AS").ok_or_else(|| unknown(tokens))?;
        let inner = tokens.get(at + 1..).unwrap_or_default();
        let query = query::query(inner);
        if query.verb.is_none() {
            return Err(unknown(tokens));
        }
        for (relation, mode) in query.takes {
            found.add(relation, mode, false);
        }
    }
    if form.names_others {
        found.add_others(tokens);
    }
    Ok(found)
}

/// Where a word stands in no parentheses.
fn outside(tokens: &[Token<'_>], word: &str) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        if token.sign('(') {
            depth += 1;
        } else if token.sign(')') {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && token.is(word)
    })
}

/// `ALTER TABLE` with its actions; none where it is something else.
fn altered_table(tokens: &[Token<'_>]) -> Option<Result<Statement, Unknown>> {
    let is_head = |token: &Token<'_>| {
        token.is_any(&["ALTER", "FOREIGN", "TABLE", "MATERIALIZED", "VIEW", "IF", "EXISTS", "ONLY"])
    };
    let head = tokens.iter().take_while(|token| is_head(token)).count();
    let words = tokens.get(..head)?;
    if !words.first()?.is("ALTER") || !words.iter().any(|word| word.is_any(&["TABLE", "MATERIALIZED"])) {
        return None;
    }
    let (relation, used) = name::relation(tokens.get(head..)?, false)?;
    let actions = match tokens.get(head + used..)? {
        [star, rest @ ..] if star.sign('*') => rest,
        rest => rest,
    };
    let mut found = Statement { forms: Vec::new(), name: String::new(), takes: Vec::new() };
    for action in name::split(actions, ',') {
        let form =
            forms::ACTIONS.iter().find_map(|form| Some((form, pattern::matched(form.pattern, action)?)));
        let Some((form, others)) = form else { return Some(Err(Unknown::Action(beginning_of(action)))) };
        found.add(relation.clone(), form.modes.first().copied().unwrap_or(LockMode::AccessExclusive), true);
        for other in others.into_iter().flatten() {
            found.add(
                other,
                form.modes.get(1).or(form.modes.first()).copied().unwrap_or(LockMode::AccessExclusive),
                false,
            );
        }
        if action.first().is_some_and(|first| first.is("ADD")) {
            found.add_others(action);
        }
        found.forms.push(form);
    }
    let names: Vec<&str> = found.forms.iter().map(|form| form.name).collect();
    found.name = format!("ALTER TABLE … {}", names.join(", "));
    Some(Ok(found))
}

impl Statement {
    fn add(&mut self, relation: Relation, mode: LockMode, is_subject: bool) {
        match self.takes.iter_mut().find(|take| take.relation == relation) {
            Some(take) => {
                take.mode = take.mode.max(mode);
                take.is_subject |= is_subject;
            }
            None => self.takes.push(Take { relation, mode, on_table_of_index: None, is_subject }),
        }
    }

    /// Tables that a new table or column is like, or refers to.
    fn add_others(&mut self, tokens: &[Token<'_>]) {
        for (at, token) in tokens.iter().enumerate() {
            let follows = at.checked_sub(1).and_then(|at| tokens.get(at));
            let mode = if token.is("REFERENCES") {
                LockMode::ShareRowExclusive
            } else if token.is("LIKE") && follows.is_some_and(|before| before.sign('(') || before.sign(',')) {
                LockMode::AccessShare
            } else {
                continue;
            };
            if let Some((relation, _)) = name::relation(tokens.get(at + 1..).unwrap_or_default(), false) {
                self.add(relation, mode, false);
            }
        }
    }
}
