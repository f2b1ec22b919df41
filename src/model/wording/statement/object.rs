//! Objects other than relations, as named in statements: schemas, functions, types, roles. The server locks them by the
//! OIDs of their catalog and of the object (`src/backend/catalog/objectaddress.c`).

use std::fmt;

use super::token::{Relation, Token, TokenKind, group, relation};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameKind {
    /// `name` or `schema.name`.
    Name,
    /// The same with an optional list of argument types in parentheses.
    Arguments,
    /// An operator such as `===`, with its operand types.
    Sign,
    /// `name USING method`.
    Method,
    /// All words to the end of the statement: `(a AS b)`, `FOR a SERVER b`.
    Phrase,
    Number,
}

#[derive(Debug, PartialEq, Eq)]
pub struct ObjectKind {
    pub words: &'static str,
    /// OID of the catalog: `pg_locks.classid`.
    pub catalog: u32,
    /// The catalog, its name column, and its schema column; empty if locktop does not look it up by name.
    pub columns: [&'static str; 3],
    named: NameKind,
}

impl ObjectKind {
    pub fn label(&self) -> String {
        self.words.to_ascii_lowercase()
    }
}

const fn kind(words: &'static str, catalog: u32, columns: [&'static str; 3], named: NameKind) -> ObjectKind {
    ObjectKind { words, catalog, columns, named }
}

const PROC: [&str; 3] = ["pg_proc", "proname", "pronamespace"];
const TYPE: [&str; 3] = ["pg_type", "typname", "typnamespace"];
const ROLE: [&str; 3] = ["pg_roles", "rolname", ""];

/// All kinds that a statement can name; of kinds with the same beginning, the longer one first, and of kinds in one catalog,
/// the one whose words also stand for the others.
pub static KINDS: [ObjectKind; 36] = [
    kind("SCHEMA", 2615, ["pg_namespace", "nspname", ""], NameKind::Name),
    kind("DATABASE", 1262, ["pg_database", "datname", ""], NameKind::Name),
    kind("ROLE", 1260, ROLE, NameKind::Name),
    kind("USER MAPPING", 1418, ["", "", ""], NameKind::Phrase),
    kind("USER", 1260, ROLE, NameKind::Name),
    kind("GROUP", 1260, ROLE, NameKind::Name),
    kind("EXTENSION", 3079, ["pg_extension", "extname", ""], NameKind::Name),
    kind("FUNCTION", 1255, PROC, NameKind::Arguments),
    kind("PROCEDURE", 1255, PROC, NameKind::Arguments),
    kind("ROUTINE", 1255, PROC, NameKind::Arguments),
    kind("AGGREGATE", 1255, PROC, NameKind::Arguments),
    kind("TYPE", 1247, TYPE, NameKind::Name),
    kind("DOMAIN", 1247, TYPE, NameKind::Name),
    kind("OPERATOR CLASS", 2616, ["pg_opclass", "opcname", "opcnamespace"], NameKind::Method),
    kind("OPERATOR FAMILY", 2753, ["pg_opfamily", "opfname", "opfnamespace"], NameKind::Method),
    kind("OPERATOR", 2617, ["pg_operator", "oprname", "oprnamespace"], NameKind::Sign),
    kind("COLLATION", 3456, ["pg_collation", "collname", "collnamespace"], NameKind::Name),
    kind("CONVERSION", 2607, ["pg_conversion", "conname", "connamespace"], NameKind::Name),
    kind("CAST", 2605, ["", "", ""], NameKind::Phrase),
    kind("TRANSFORM", 3576, ["", "", ""], NameKind::Phrase),
    kind("TEXT SEARCH DICTIONARY", 3600, ["pg_ts_dict", "dictname", "dictnamespace"], NameKind::Name),
    kind("TEXT SEARCH CONFIGURATION", 3602, ["pg_ts_config", "cfgname", "cfgnamespace"], NameKind::Name),
    kind("TEXT SEARCH PARSER", 3601, ["pg_ts_parser", "prsname", "prsnamespace"], NameKind::Name),
    kind("TEXT SEARCH TEMPLATE", 3764, ["pg_ts_template", "tmplname", "tmplnamespace"], NameKind::Name),
    kind("LANGUAGE", 2612, ["pg_language", "lanname", ""], NameKind::Name),
    kind("PROCEDURAL LANGUAGE", 2612, ["pg_language", "lanname", ""], NameKind::Name),
    kind("ACCESS METHOD", 2601, ["pg_am", "amname", ""], NameKind::Name),
    kind("FOREIGN DATA WRAPPER", 2328, ["pg_foreign_data_wrapper", "fdwname", ""], NameKind::Name),
    kind("FOREIGN SERVER", 1417, ["pg_foreign_server", "srvname", ""], NameKind::Name),
    kind("SERVER", 1417, ["pg_foreign_server", "srvname", ""], NameKind::Name),
    kind("PUBLICATION", 6104, ["pg_publication", "pubname", ""], NameKind::Name),
    kind("SUBSCRIPTION", 6100, ["pg_subscription", "subname", ""], NameKind::Name),
    kind("EVENT TRIGGER", 3466, ["pg_event_trigger", "evtname", ""], NameKind::Name),
    kind("STATISTICS", 3381, ["pg_statistic_ext", "stxname", "stxnamespace"], NameKind::Name),
    kind("TABLESPACE", 1213, ["pg_tablespace", "spcname", ""], NameKind::Name),
    kind("LARGE OBJECT", 2613, ["", "", ""], NameKind::Number),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub kind: &'static ObjectKind,
    /// `None` if the search path decides, or the kind has no schema.
    pub schema: Option<String>,
    /// The folded name; for a kind without names, the words of the statement. Empty for the schema in which an object without a
    /// schema name is created.
    pub name: String,
}

impl Object {
    /// The schema in which an object is created: its own, or the first on the search path.
    pub(super) fn schema_of(created: &Relation) -> Self {
        let [schema, ..] = &KINDS;
        Self { kind: schema, schema: None, name: created.schema.clone().unwrap_or_default() }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            return f.write_str("the schema it is created in");
        }
        let name = Relation { schema: self.schema.clone(), name: self.name.clone(), only: false };
        write!(f, "{} {name}", self.kind.label())
    }
}

pub(super) fn kind_of(words: &str) -> Option<&'static ObjectKind> {
    KINDS.iter().find(|kind| kind.words.eq_ignore_ascii_case(words))
}

/// The kind whose key words are the first tokens, and the number of these tokens.
pub(super) fn leading(tokens: &[Token<'_>]) -> Option<(&'static ObjectKind, usize)> {
    KINDS.iter().find_map(|kind| {
        let words = kind.words.split(' ');
        let is =
            words.clone().enumerate().all(|(at, word)| tokens.get(at).is_some_and(|token| token.is(word)));
        is.then(|| (kind, words.count()))
    })
}

/// One object of a kind, and the number of tokens that name it.
pub(super) fn one(kind: &'static ObjectKind, tokens: &[Token<'_>]) -> Option<(Object, usize)> {
    let first = tokens.first()?;
    if first.is_any(&["IF", "ON"]) {
        return None;
    }
    let named =
        |schema: Option<String>, name: String, used: usize| Some((Object { kind, schema, name }, used));
    let words = |used: usize| {
        let words = tokens.get(..used).unwrap_or_default().iter().map(|token| token.text);
        words.collect::<Vec<_>>().join(" ")
    };
    match kind.named {
        NameKind::Number => {
            (first.kind == TokenKind::Number).then(|| named(None, first.text.to_owned(), 1)).flatten()
        }
        NameKind::Phrase => {
            let stop = |token: &Token<'_>| token.is_any(&["IS", "CASCADE", "RESTRICT", "OPTIONS", "WITH"]);
            let used = tokens.iter().take_while(|token| !stop(token)).count();
            (used > 0).then(|| named(None, words(used), used)).flatten()
        }
        NameKind::Sign => {
            let is_name = |token: &Token<'_>| token.kind != TokenKind::Sign || token.sign('.');
            let schema = tokens.iter().take_while(|token| is_name(token)).count();
            let is_part = |token: &&Token<'_>| token.kind == TokenKind::Sign && !token.sign('(');
            let sign: String =
                tokens.get(schema..)?.iter().take_while(is_part).map(|token| token.text).collect();
            let used = schema + sign.chars().count();
            let arguments = group(tokens.get(used..)?)?;
            let schema = tokens.first().filter(|_| schema > 0).and_then(Token::name);
            (!sign.is_empty()).then(|| named(schema, sign, used + arguments)).flatten()
        }
        NameKind::Name | NameKind::Arguments | NameKind::Method => {
            let (found, mut used) = relation(tokens, false)?;
            let has = |used: usize, is: &dyn Fn(&Token<'_>) -> bool| tokens.get(used).is_some_and(is);
            if kind.named == NameKind::Arguments && has(used, &|token| token.sign('(')) {
                used += group(tokens.get(used..)?)?;
            }
            if kind.named == NameKind::Method && has(used, &|token| token.is("USING")) {
                used += 2;
            }
            named(found.schema, found.name, used)
        }
    }
}
