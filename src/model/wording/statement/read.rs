use super::advisory::Act;
use super::catalog_forms::{self, ACTIONS, NOTIFY};
use super::form::{Form, Role};
use super::object::{Object, kind_of};
use super::pattern::{Matching, NamedObjects};
use super::pieces::{Unknown, called, inside, near, psql, refused};
use super::query::{self, ParsedQuery, QueryVerb};
use super::token::{Token, TokenKind, tokens};
use super::{Nowait, Statement, StatementLock, StatementTarget, forms, script};
use super::{token, token::Relation};
use crate::model::lock::LockMode;

pub(super) fn read(tokens: &[Token<'_>]) -> Result<Statement, Unknown> {
    if let [command] = tokens
        && command.kind == TokenKind::Psql
    {
        return of_psql(command.text);
    }
    if let Some(refused) = refused(tokens) {
        return Err(refused);
    }
    let mut found = read_known(unwrapped(tokens))?;
    found.control = script::control(tokens);
    found.if_exists = tokens.windows(2).any(|pair| matches!(pair, [a, b] if a.is("IF") && b.is("EXISTS")));
    Ok(found)
}

fn of_psql(text: &str) -> Result<Statement, Unknown> {
    if let Some(copy) = text.strip_prefix("\\copy ") {
        return read(&[&tokens("COPY")[..], &tokens(copy)[..]].concat());
    }
    match psql(text) {
        Some(unknown) => Err(unknown),
        None => Ok(Statement {
            name: text.split_ascii_whitespace().next().unwrap_or_default().to_owned(),
            forms: vec![&catalog_forms::PSQL],
            ..Statement::default()
        }),
    }
}

fn read_known(tokens: &[Token<'_>]) -> Result<Statement, Unknown> {
    let first = tokens.first().ok_or_else(|| Unknown::Syntax(near(None)))?;
    if first.sign('(') || query::begins(first) {
        return whole_query(tokens).unwrap_or_else(|| Err(called(tokens, tokens.len().saturating_sub(1))));
    }
    if let [copy, open, ..] = tokens
        && copy.is("COPY")
        && open.sign('(')
    {
        let query = tokens.get(1..).and_then(inside).unwrap_or_default();
        return whole_query(query).unwrap_or_else(|| Err(called(tokens, query.len())));
    }
    let mut matching = Matching::of(tokens);
    let mut all = forms::STATEMENTS.iter().chain(catalog_forms::STATEMENTS);
    let found = all.find_map(|form| Some((form, matching.matched(form.pattern, tokens)?)));
    match found {
        Some((form, named)) => statement(form, named, tokens),
        None => altered_table(tokens).unwrap_or_else(|| Err(called(tokens, matching.left))),
    }
}

/// The statement inside EXPLAIN, PREPARE or DECLARE: planning takes the same locks as execution.
pub(super) fn unwrapped<'t, 'a>(tokens: &'t [Token<'a>]) -> &'t [Token<'a>] {
    let inner = match tokens.first() {
        Some(first) if first.is("EXPLAIN") => {
            let is_inner = |token: &Token<'_>| {
                query::begins(token) || token.is_any(&["CREATE", "REFRESH", "DECLARE", "EXECUTE"])
            };
            tokens.iter().position(is_inner).and_then(|at| at.checked_sub(1))
        }
        Some(first) if first.is("PREPARE") && !tokens.get(1).is_some_and(|next| next.is("TRANSACTION")) => {
            tokens.iter().position(|token| token.is("AS"))
        }
        Some(first) if first.is("DECLARE") => tokens.iter().position(|token| token.is("FOR")),
        _ => return tokens,
    };
    inner.and_then(|at| tokens.get(at + 1..)).filter(|inner| !inner.is_empty()).unwrap_or(tokens)
}

fn whole_query(tokens: &[Token<'_>]) -> Option<Result<Statement, Unknown>> {
    let query = query::query(tokens);
    query.verb?;
    Some(if query.is_whole {
        Ok(of_query(query, None))
    } else {
        Err(Unknown::Open("a parenthesis is not closed"))
    })
}

/// The statement for a query; `form` is that of a statement that contains the query.
pub(super) fn of_query(query: ParsedQuery, form: Option<&'static Form>) -> Statement {
    let own = match query.verb {
        Some(QueryVerb::Insert) => &forms::INSERT,
        Some(QueryVerb::Update) => &forms::UPDATE,
        Some(QueryVerb::Delete) => &forms::DELETE,
        Some(QueryVerb::Merge) => &forms::MERGE,
        _ if query.locks_rows => &forms::SELECT_FOR_UPDATE,
        _ => &forms::SELECT,
    };
    let mut found = Statement::default();
    found.put(form.unwrap_or(own), &[]);
    found.nowait = query.nowait;
    found.with_query(query, true);
    found
}

fn statement(
    form: &'static Form,
    named: Vec<NamedObjects>,
    tokens: &[Token<'_>],
) -> Result<Statement, Unknown> {
    let mut found = Statement::default();
    found.put(form, tokens);
    found.put_named(form, named, tokens);
    if tokens.last().is_some_and(|last| last.is("NOWAIT")) {
        found.nowait = Nowait::Fails;
    }
    if !form.query.is_empty() {
        let at = token::depths(tokens).position(|(depth, token)| depth == 0 && token.is(form.query));
        let at = at.ok_or_else(|| called(tokens, 0))?;
        let inner = tokens.get(at + 1..).unwrap_or_default();
        let skipped = inner.iter().take_while(|token| token.is_any(&["ALSO", "INSTEAD"])).count();
        let inner = inner.get(skipped..).unwrap_or_default();
        // CREATE TABLE … AS EXECUTE.
        let inner = if inner.first().is_some_and(|first| first.is("EXECUTE")) { &[][..] } else { inner };
        let mut query = query::query(inner);
        let has_data =
            !tokens.windows(2).any(|pair| matches!(pair, [no, data] if no.is("NO") && data.is("DATA")));
        if !form.runs || !has_data {
            found.also.clear();
        }
        if form.query == "ON" {
            // For a policy, only the queries in its expressions: its table is already named.
            query
                .takes
                .retain(|(relation, _)| found.takes.iter().all(|take| take.relation() != Some(relation)));
        }
        found.with_query(query, form.runs);
    }
    if form.names_others {
        found.add_others(tokens);
    }
    if form.note == NOTIFY {
        found.add(StatementTarget::Notifications, LockMode::AccessExclusive, false);
    }
    Ok(found)
}

/// `ALTER TABLE` with its actions; `None` for other statements.
fn altered_table(tokens: &[Token<'_>]) -> Option<Result<Statement, Unknown>> {
    let is_head = |token: &Token<'_>| {
        token.is_any(&["ALTER", "FOREIGN", "TABLE", "MATERIALIZED", "VIEW", "IF", "EXISTS", "ONLY"])
    };
    let head = tokens.iter().take_while(|token| is_head(token)).count();
    let words = tokens.get(..head)?;
    if !words.first()?.is("ALTER") || !words.iter().any(|word| word.is_any(&["TABLE", "MATERIALIZED"])) {
        return None;
    }
    let (mut relation, used) = token::relation(tokens.get(head..)?, false)?;
    relation.only = words.last().is_some_and(|word| word.is("ONLY"));
    let actions = match tokens.get(head + used..)? {
        [star, rest @ ..] if star.sign('*') => rest,
        rest => rest,
    };
    let mut found = Statement::default();
    for action in token::split(actions, ',') {
        let mut matching = Matching::of(action);
        let form = ACTIONS.iter().find_map(|form| Some((form, matching.matched(form.pattern, action)?)));
        let Some((form, named)) = form else {
            let from = match action.len().checked_sub(matching.left).and_then(|at| action.get(at)) {
                Some(token) => format!("\"{}\"", token.shown()),
                None => "its end".to_owned(),
            };
            return Some(Err(Unknown::Form("ALTER TABLE".to_owned(), from)));
        };
        let own = form.modes.first().copied().unwrap_or(LockMode::AccessExclusive);
        found.add(StatementTarget::Relation(relation.clone()), own, true);
        found.put(form, action);
        let others = form.modes.get(1).or(form.modes.first()).copied().unwrap_or(own);
        for named in named {
            match named {
                NamedObjects::Relations(relations) => {
                    for other in relations {
                        found.add(StatementTarget::Relation(other), others, false);
                    }
                }
                NamedObjects::Name(name) => found.names.push(name),
                NamedObjects::Objects(_) | NamedObjects::Created(_) => {}
            }
        }
        if action.first().is_some_and(|first| first.is("ADD")) {
            found.add_others(action);
        }
    }
    let names: Vec<&str> = found.forms.iter().map(|form| form.name).collect();
    found.name = format!("ALTER TABLE … {}", names.join(", "));
    Some(Ok(found))
}

impl Statement {
    fn put(&mut self, form: &'static Form, tokens: &[Token<'_>]) {
        let has = |word: &str| word.is_empty() || tokens.iter().any(|token| token.is(word));
        if self.name.is_empty() {
            form.name.clone_into(&mut self.name);
        }
        self.also.extend(form.also.iter().filter(|also| has(also.word)).map(|also| (*also, form.by_name)));
        let (word, unseen) = form.unseen;
        self.unseen.extend((!unseen.is_empty() && has(word)).then_some(unseen));
        if let Some((kind, name, mode)) = form.fixed {
            let target = match kind_of(kind) {
                Some(kind) => StatementTarget::Object(Object { kind, schema: None, name: name.to_owned() }),
                None => StatementTarget::Relation(Relation {
                    schema: Some("pg_catalog".to_owned()),
                    name: name.to_owned(),
                    only: false,
                }),
            };
            self.add(target, mode, false);
        }
        self.forms.push(form);
    }

    fn put_named(&mut self, form: &'static Form, named: Vec<NamedObjects>, tokens: &[Token<'_>]) {
        let is_temporary = tokens.iter().take(5).any(|token| token.is_any(&["TEMP", "TEMPORARY"]));
        let mut place = 0;
        for named in named {
            let mode = form.modes.get(place).or(form.modes.last()).copied();
            let since = form.from.get(place).copied().unwrap_or_default();
            let from = self.takes.len();
            match named {
                NamedObjects::Relations(relations) => {
                    for relation in relations {
                        let target = StatementTarget::Relation(relation);
                        self.put_one(target, mode, place == 0, form);
                    }
                    place += 1;
                }
                NamedObjects::Objects(objects) => {
                    for object in objects {
                        if form.composite {
                            let (schema, name) = (object.schema.clone(), object.name.clone());
                            let relation = Relation { schema, name, only: false };
                            self.add(StatementTarget::Relation(relation), LockMode::AccessExclusive, false);
                            self.make_optional();
                        }
                        // An object that is not locked itself, but leads to tables.
                        let finds_others = self.also.iter().any(|(also, _)| also.role == Role::Columns);
                        if mode.is_some() || finds_others {
                            self.put_one(StatementTarget::Object(object), mode, place == 0, form);
                        }
                    }
                    place += 1;
                }
                NamedObjects::Created(created) => {
                    if !is_temporary {
                        self.add(
                            StatementTarget::Object(Object::schema_of(&created)),
                            LockMode::AccessShare,
                            false,
                        );
                    }
                    if form.replaces {
                        self.add(StatementTarget::Relation(created.clone()), LockMode::AccessExclusive, true);
                        self.make_optional();
                    }
                    self.created.push(created);
                }
                NamedObjects::Name(name)
                    if form.name.starts_with("CREATE INDEX") || form.name.ends_with("RENAME TO") =>
                {
                    self.created.push(Relation { schema: None, name, only: false });
                }
                NamedObjects::Name(name) => self.names.push(name),
            }
            for take in self.takes.iter_mut().skip(from) {
                take.since = take.since.max(since);
            }
        }
    }

    fn put_one(
        &mut self,
        target: StatementTarget,
        mode: Option<LockMode>,
        is_subject: bool,
        form: &'static Form,
    ) {
        let is_relation = matches!(target, StatementTarget::Relation(_));
        let mode = match mode {
            Some(mode) => mode,
            // Only the start of a search for tables.
            None if is_relation => return,
            None => LockMode::SIRead,
        };
        self.add(target, mode, is_subject);
        if let (Some(take), Some(on_table), true) =
            (self.takes.last_mut(), form.on_table_of_index, is_relation)
        {
            take.on_table_of_index = Some(on_table);
        }
    }

    fn make_optional(&mut self) {
        if let Some(take) = self.takes.last_mut() {
            take.is_optional = true;
        }
    }

    fn with_query(&mut self, query: ParsedQuery, runs: bool) {
        // A recursive view reads itself.
        let takes = query.takes.into_iter().filter(|(relation, _)| !self.created.contains(relation));
        for (relation, mode) in takes.collect::<Vec<_>>() {
            let is_subject = runs && mode == LockMode::RowExclusive;
            self.add(StatementTarget::Relation(relation), mode, is_subject);
        }
        if query.notifies {
            self.add(StatementTarget::Notifications, LockMode::AccessExclusive, false);
        }
        if !runs {
            return;
        }
        for call in query.calls {
            if matches!(call.act, Act::Lock | Act::Try) {
                self.takes.push(StatementLock {
                    mode: call.mode,
                    target: StatementTarget::Advisory(call.clone()),
                    ..StatementLock::default()
                });
            }
            self.calls.push(call);
        }
    }

    fn add(&mut self, target: StatementTarget, mode: LockMode, is_subject: bool) {
        match self.takes.iter_mut().find(|take| take.target == target) {
            Some(take) => {
                take.mode = take.mode.max(mode);
                take.is_subject |= is_subject;
            }
            None => self.takes.push(StatementLock { target, mode, is_subject, ..StatementLock::default() }),
        }
    }

    /// Tables that a new table or column references or is created LIKE.
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
            if let Some((relation, _)) = token::relation(tokens.get(at + 1..).unwrap_or_default(), false) {
                // A table may reference itself while it is created.
                if !self.created.contains(&relation) {
                    self.add(StatementTarget::Relation(relation), mode, false);
                }
            }
        }
    }
}

impl Default for StatementLock {
    fn default() -> Self {
        Self {
            target: StatementTarget::Notifications,
            mode: LockMode::AccessShare,
            on_table_of_index: None,
            is_subject: false,
            since: 0,
            is_optional: false,
        }
    }
}
