use std::fmt;

use super::token::Token;

/// A relation as named in a statement, case-folded and without quotes.
#[derive(Debug, Clone, Default)]
pub struct Relation {
    /// `None` if the search path decides.
    pub schema: Option<String>,
    pub name: String,
    /// Whether ONLY precedes the name, which excludes partitions and children.
    pub only: bool,
}

/// ONLY does not count: it belongs to the statement.
impl PartialEq for Relation {
    fn eq(&self, other: &Self) -> bool {
        (&self.schema, &self.name) == (&other.schema, &other.name)
    }
}

impl Eq for Relation {}

impl Relation {
    /// Whether a name in the model, `orders` or `shop.orders`, means this relation. The model omits the schema if it is on the
    /// search path of locktop; a statement omits it if it is on the unknown search path of its session. So if either has no
    /// schema, only the name counts.
    pub fn is_called(&self, shown: &str) -> bool {
        if shown == self.name {
            return true;
        }
        let schema = shown.strip_suffix(self.name.as_str()).and_then(|rest| rest.strip_suffix('.'));
        schema.is_some_and(|schema| self.schema.as_deref().is_none_or(|own| own == schema))
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A name of up to three parts at the beginning, and its number of tokens. `column`: the last part is a column name.
pub(super) fn relation(tokens: &[Token<'_>], column: bool) -> Option<(Relation, usize)> {
    let mut parts = vec![tokens.first()?.name()?];
    let mut used = 1;
    while let [dot, part, ..] = tokens.get(used..)? {
        if !dot.sign('.') {
            break;
        }
        parts.push(part.name()?);
        used += 2;
    }
    if column && parts.len() > 1 {
        parts.pop();
    }
    let name = parts.pop()?;
    Some((Relation { schema: parts.pop(), name, only: false }, used))
}

/// The number of tokens of the parenthesized group that begins here, including both parentheses; `None` if it does not end.
pub(super) fn group(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        if token.sign('(') {
            depth += 1;
        } else if token.sign(')') {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 {
            return (at > 0).then_some(at + 1);
        }
    }
    None
}

pub(super) fn split<'a, 'b>(tokens: &'b [Token<'a>], sign: char) -> Vec<&'b [Token<'a>]> {
    let (mut depth, mut pieces, mut from) = (0_usize, Vec::new(), 0);
    for (at, token) in tokens.iter().enumerate() {
        if token.sign('(') {
            depth += 1;
        } else if token.sign(')') {
            depth = depth.saturating_sub(1);
        } else if depth == 0 && token.sign(sign) {
            pieces.push(tokens.get(from..at).unwrap_or_default());
            from = at + 1;
        }
    }
    pieces.push(tokens.get(from..).unwrap_or_default());
    pieces
}
