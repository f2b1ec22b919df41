//! The relations that a query reads, changes or locks rows of: SELECT, INSERT, UPDATE, DELETE and MERGE, with their
//! subqueries.

use super::Nowait;
use super::advisory::{Advisory, call};
use super::token::{Relation, Token, group, relation, tokens};
use crate::model::lock::LockMode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueryVerb {
    Select,
    Insert,
    Update,
    Delete,
    Merge,
}

#[derive(Debug, Default)]
pub(super) struct ParsedQuery {
    /// `None` if the tokens are not a query.
    pub(super) verb: Option<QueryVerb>,
    /// In the order of the text; a relation named several times is repeated.
    pub(super) takes: Vec<(Relation, LockMode)>,
    pub(super) locks_rows: bool,
    /// Whether every parenthesis is closed; otherwise the query was truncated.
    pub(super) is_whole: bool,
    pub(super) calls: Vec<Advisory>,
    pub(super) notifies: bool,
    pub(super) nowait: Nowait,
}

/// The text between two parentheses, or outside of all.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
struct QueryScope {
    begins: bool,
    with: bool,
    verb: Option<QueryVerb>,
    /// In a list of relations, and whether a relation comes next.
    from: bool,
    expects: bool,
    /// In a call such as extract(year FROM x), where FROM names no relation.
    is_call: bool,
    /// A subquery in a list of relations: FOR UPDATE of the outer query applies to it.
    is_item: bool,
    /// Relations read here: their positions in the result, and their aliases.
    items: Vec<(usize, String)>,
}

/// Words that end a list of relations.
const ENDS: &str =
    "WHERE GROUP HAVING WINDOW ORDER LIMIT OFFSET FETCH UNION INTERSECT EXCEPT RETURNING SET WHEN";

/// Functions with a FROM that names no relation.
const CALLS: [&str; 4] = ["EXTRACT", "SUBSTRING", "TRIM", "OVERLAY"];

/// Words that are not an alias of the relation before them.
const NO_ALIAS: [&str; 12] =
    ["ON", "USING", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "TABLESAMPLE", "FOR", "AS"];

pub(super) fn begins(token: &Token<'_>) -> bool {
    token.is_any(&["SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE"])
}

pub(super) fn query(tokens: &[Token<'_>]) -> ParsedQuery {
    let mut reader = QueryReader {
        tokens,
        own: own_names(tokens),
        scopes: vec![QueryScope { begins: true, ..QueryScope::default() }],
        found: ParsedQuery { is_whole: true, ..ParsedQuery::default() },
    };
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at = reader.step(at, token).max(at + 1);
    }
    let QueryReader { mut found, scopes, .. } = reader;
    // `(SELECT …)`
    if found.verb.is_none() && tokens.first().is_some_and(|token| token.sign('(')) {
        found.verb = Some(QueryVerb::Select);
    }
    found.is_whole &= scopes.len() == 1;
    for call in &mut found.calls {
        call.per_row = call.key.is_none() && !found.takes.is_empty();
    }
    found
}

/// Names that a query gives to its own queries: `WITH name (…) AS MATERIALIZED (SELECT …`.
fn own_names(tokens: &[Token<'_>]) -> Vec<String> {
    if !tokens.iter().any(|token| token.is("WITH")) {
        return Vec::new();
    }
    let named = |at: usize| {
        let mut rest = tokens.get(at + 1..)?;
        if rest.first()?.sign('(') {
            // A column list is short. Searching for the end of each parenthesis would take quadratic time.
            rest = rest.get(group(rest.get(..rest.len().min(400))?)?..)?;
        }
        let [named_as, rest @ ..] = rest else { return None };
        if !named_as.is("AS") {
            return None;
        }
        let skipped = rest.iter().take_while(|token| token.is_any(&["NOT", "MATERIALIZED"])).count();
        let is_query = rest.get(skipped)?.sign('(') && rest.get(skipped + 1).is_some_and(begins);
        is_query.then(|| tokens.get(at)?.name()).flatten()
    };
    (0..tokens.len()).filter_map(named).collect()
}

struct QueryReader<'a, 'b> {
    tokens: &'b [Token<'a>],
    own: Vec<String>,
    scopes: Vec<QueryScope>,
    found: ParsedQuery,
}

impl QueryReader<'_, '_> {
    fn rest(&self, at: usize) -> &[Token<'_>] {
        self.tokens.get(at..).unwrap_or_default()
    }

    fn before(&self, at: usize, words: &[&str]) -> bool {
        at.checked_sub(1).and_then(|at| self.tokens.get(at)).is_some_and(|token| token.is_any(words))
    }

    /// Reads the token at a position; returns the next position.
    fn step(&mut self, at: usize, token: &Token<'_>) -> usize {
        if token.sign('(') {
            self.open(at);
        } else if token.sign(')') {
            self.close();
        } else {
            self.called(at, token);
            let Some(mut scope) = self.scopes.pop() else { return at + 1 };
            let next = self.read(at, token, &mut scope);
            self.scopes.push(scope);
            return next;
        }
        at + 1
    }

    /// A call of a function that locks: an advisory lock, or a sequence.
    fn called(&mut self, at: usize, token: &Token<'_>) {
        if !self.tokens.get(at + 1).is_some_and(|next| next.sign('(')) {
            return;
        }
        self.found.calls.extend(call(self.rest(at)));
        self.found.notifies |= token.is("PG_NOTIFY");
        if token.is_any(&["NEXTVAL", "SETVAL"])
            && let Some(named) = self.tokens.get(at + 2).and_then(Token::string)
            && let Some((sequence, _)) = relation(&tokens(&named), false)
        {
            self.found.takes.push((sequence, LockMode::RowExclusive));
        }
    }

    fn open(&mut self, at: usize) {
        let is_call = self.before(at, &CALLS);
        let is_query = self.tokens.get(at + 1).is_some_and(begins);
        let mut scope = QueryScope { begins: true, is_call, ..QueryScope::default() };
        if let Some(parent) = self.scopes.last_mut().filter(|parent| parent.expects) {
            parent.expects = false;
            scope.is_item = true;
            // Parenthesized joins.
            (scope.from, scope.expects) = (!is_query, !is_query);
        }
        self.scopes.push(scope);
    }

    fn close(&mut self) {
        if self.scopes.len() < 2 {
            self.found.is_whole = false;
            return;
        }
        let Some(closed) = self.scopes.pop() else { return };
        if let Some(parent) = self.scopes.last_mut()
            && closed.is_item
        {
            // Under any name: `OF` refers to names of its own level, and a named item there is a subquery.
            parent.items.extend(closed.items);
        }
    }

    fn read(&mut self, at: usize, token: &Token<'_>, scope: &mut QueryScope) -> usize {
        if (scope.begins || scope.with) && begins(token) {
            return self.begin(at, token, scope);
        }
        scope.begins &= token.is_any(&["ALL", "DISTINCT"]);
        if token.sign(',') || token.is("JOIN") {
            scope.expects = scope.from;
        } else if token.is("FROM") {
            let is_distinct = self.before(at, &["DISTINCT"])
                && at.checked_sub(1).is_some_and(|at| self.before(at, &["IS", "NOT"]));
            if !scope.is_call && !is_distinct {
                (scope.from, scope.expects) = (true, true);
            }
        } else if token.is("USING") {
            let is_list = matches!(scope.verb, Some(QueryVerb::Delete | QueryVerb::Merge))
                && !self.tokens.get(at + 1).is_some_and(|next| next.sign('(') && scope.from);
            if is_list {
                (scope.from, scope.expects) = (true, true);
            }
        } else if token.is("FOR") {
            return self.lock_rows(at, scope);
        } else if token.is_among(ENDS) {
            // After UNION another query begins in this scope.
            (scope.from, scope.expects) = (false, false);
            scope.begins = token.is_any(&["UNION", "INTERSECT", "EXCEPT"]);
        } else if scope.expects {
            return self.item(at, token, scope);
        }
        at + 1
    }

    fn begin(&mut self, at: usize, token: &Token<'_>, scope: &mut QueryScope) -> usize {
        scope.begins = false;
        if token.is("WITH") {
            scope.with = true;
            return at + 1;
        }
        scope.with = false;
        let (verb, skip): (QueryVerb, &[&str]) = match () {
            () if token.is("INSERT") => (QueryVerb::Insert, &["INTO"]),
            () if token.is("UPDATE") => (QueryVerb::Update, &["ONLY"]),
            () if token.is("DELETE") => (QueryVerb::Delete, &["FROM", "ONLY"]),
            () if token.is("MERGE") => (QueryVerb::Merge, &["INTO", "ONLY"]),
            () => (QueryVerb::Select, &["ONLY"]),
        };
        scope.verb = Some(verb);
        if self.scopes.is_empty() {
            self.found.verb.get_or_insert(verb);
        }
        // INSERT may be followed by a query.
        scope.begins = verb == QueryVerb::Insert;
        if token.is_any(&["SELECT", "VALUES"]) {
            return at + 1;
        }
        let mut next = at + 1;
        next += self.rest(next).iter().take(skip.len()).take_while(|token| token.is_any(skip)).count();
        let only = self.before(next, &["ONLY"]);
        let Some((mut relation, used)) = relation(self.rest(next), false) else { return next };
        relation.only = only;
        let mode = if token.is("TABLE") { LockMode::AccessShare } else { LockMode::RowExclusive };
        let is_own = relation.schema.is_none() && self.own.contains(&relation.name);
        if !is_own {
            self.found.takes.push((relation, mode));
        }
        next + used
    }

    fn item(&mut self, at: usize, token: &Token<'_>, scope: &mut QueryScope) -> usize {
        if token.is_any(&["ONLY", "LATERAL"]) {
            return at + 1;
        }
        scope.expects = false;
        if token.is("ROWS") && self.tokens.get(at + 1).is_some_and(|next| next.is("FROM")) {
            return at + 2;
        }
        let Some((mut relation, used)) = relation(self.rest(at), false) else { return at + 1 };
        relation.only = self.before(at, &["ONLY"]);
        let next = self.tokens.get(at + used);
        let is_function = next.is_some_and(|next| next.sign('('));
        let is_own = relation.schema.is_none() && self.own.contains(&relation.name);
        if !is_function && !is_own {
            let named = next.filter(|next| next.is("AS")).map_or(next, |_| self.tokens.get(at + used + 1));
            let alias =
                named.filter(|token| !token.is_any(&NO_ALIAS) && !token.is_among(ENDS)).and_then(Token::name);
            scope.items.push((self.found.takes.len(), alias.unwrap_or_else(|| relation.name.clone())));
            self.found.takes.push((relation, LockMode::AccessShare));
        }
        at + used
    }

    /// `FOR [NO KEY] UPDATE`, `FOR [KEY] SHARE`, with `OF` or without.
    fn lock_rows(&mut self, at: usize, scope: &mut QueryScope) -> usize {
        let rest = self.rest(at + 1);
        let skipped = match rest.first() {
            Some(first) if first.is("NO") => 2,
            Some(first) if first.is("KEY") => 1,
            _ => 0,
        };
        if !rest.get(skipped).is_some_and(|token| token.is_any(&["UPDATE", "SHARE"])) {
            return at + 1;
        }
        (scope.from, scope.expects) = (false, false);
        let mut next = at + 2 + skipped;
        let mut only = Vec::new();
        if self.tokens.get(next).is_some_and(|token| token.is("OF")) {
            while let Some((of, used)) = relation(self.rest(next + 1), false) {
                only.push(of.name);
                next += 1 + used;
                if !self.tokens.get(next).is_some_and(|token| token.sign(',')) {
                    break;
                }
            }
        }
        self.found.locks_rows = true;
        match self.tokens.get(next) {
            Some(token) if token.is("NOWAIT") => self.found.nowait = Nowait::Rows,
            Some(token) if token.is("SKIP") => self.found.nowait = Nowait::SkipLocked,
            _ => {}
        }
        for (place, name) in &scope.items {
            if let Some((_, mode)) = self.found.takes.get_mut(*place)
                && (only.is_empty() || only.contains(name))
            {
                *mode = LockMode::RowShare;
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::statement::token::tokens;

    fn locked(text: &str) -> String {
        let query = query(&tokens(text));
        let mode = |mode: LockMode| match mode {
            LockMode::AccessShare => "r",
            LockMode::RowShare => "s",
            _ => "w",
        };
        let takes = query.takes.iter().map(|(relation, taken)| format!("{relation}:{}", mode(*taken)));
        takes.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn relations_are_found_in_every_clause() {
        for (text, expected) in [
            ("SELECT 1", ""),
            (
                "SELECT * FROM a, ONLY s.b x JOIN \"C\" USING (id) LEFT JOIN (d CROSS JOIN e) ON true WHERE x",
                "a:r s.b:r C:r d:r e:r",
            ),
            ("SELECT * FROM f(1), LATERAL g(a) q, ROWS FROM (h(1)) AS z, t", "t:r"),
            ("SELECT extract(year FROM d), a IS DISTINCT FROM b, (SELECT max(x) FROM u) FROM t", "u:r t:r"),
            ("SELECT * FROM (SELECT * FROM a) q, b FOR UPDATE", "a:s b:s"),
            ("SELECT * FROM a, b x WHERE id IN (SELECT id FROM c) FOR NO KEY UPDATE OF x", "a:r b:s c:r"),
            ("SELECT * FROM a FOR KEY SHARE SKIP LOCKED", "a:s"),
            ("SELECT substring(a FROM 1 FOR 2) FROM t", "t:r"),
            (
                "WITH q (a, b) AS NOT MATERIALIZED (SELECT * FROM t), w AS (DELETE FROM d RETURNING *) SELECT * FROM q, w, z",
                "t:r d:w z:r",
            ),
            ("WITH q AS (SELECT 1) INSERT INTO t SELECT * FROM q JOIN u ON true", "t:w u:r"),
            ("INSERT INTO s.t AS x (a, b) VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET b = 3", "s.t:w"),
            ("UPDATE ONLY t AS x SET a = (SELECT 1 FROM u) FROM v, w WHERE 1 = 1", "t:w u:r v:r w:r"),
            ("DELETE FROM t USING u JOIN v USING (id) WHERE true", "t:w u:r v:r"),
            (
                "MERGE INTO t USING (SELECT * FROM u) s ON true WHEN MATCHED THEN UPDATE SET a = 1 WHEN NOT MATCHED THEN INSERT VALUES (1)",
                "t:w u:r",
            ),
            ("SELECT * FROM a UNION ALL TABLE b UNION (SELECT * FROM c)", "a:r b:r c:r"),
            ("(SELECT * FROM a)", "a:r"),
            ("SELECT $$ FROM x $$, ' FROM y' -- FROM z\nFROM t", "t:r"),
            ("SELECT a FROM t ORDER BY b, c LIMIT 1", "t:r"),
            ("SELECT count(*) FILTER (WHERE a) OVER (PARTITION BY b, c) FROM t GROUP BY d, e", "t:r"),
        ] {
            assert_eq!(locked(text), expected, "{text}");
        }
    }

    #[test]
    fn a_query_that_does_not_end_is_known_to_be_cut() {
        for (text, is_whole) in [("SELECT (1", false), ("SELECT 1)", false), ("SELECT (1)", true)] {
            assert_eq!(query(&tokens(text)).is_whole, is_whole, "{text}");
        }
    }
}
