//! The name of a relation in a statement.

use std::fmt;

use super::token::Token;

/// A relation as a statement names it: folded, without quotes.
#[derive(Debug, Clone, Default)]
pub struct Relation {
    /// None where the search path decides.
    pub schema: Option<String>,
    /// The relation alone, without its schema.
    pub name: String,
    /// Whether ONLY stands before it: partitions and children are left alone.
    pub only: bool,
}

/// By its name: ONLY is of the statement.
impl PartialEq for Relation {
    fn eq(&self, other: &Self) -> bool {
        (&self.schema, &self.name) == (&other.schema, &other.name)
    }
}

impl Eq for Relation {}

impl Relation {
    /// Whether a name of the model, `orders` or `shop.orders`, is this one. The model leaves the schema out where our own path leads to it,
    /// and a statement where that of its session does, which is not known: without one on either side the name alone counts.
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

/// A name of up to three parts at the beginning, and how many tokens it has. `column`: its last part is that of a column.
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

/// How many tokens the group in parentheses has that begins here, both of them counted; none where it does not end.
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

/// Tokens in pieces, at signs that stand in no parentheses.
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
