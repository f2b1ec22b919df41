//! Functions without a search path of their own must qualify all names: this finds what they do not qualify.
//!
//! `SET search_path` costs more than a short function does. Without it, an unqualified name is searched on the caller's
//! path, and a function, operator or type that another user has put there would run with the caller's rights. The same
//! applies to constructs that search an operator by its name (`transformAExprIn`, `transformAExprBetween` and their
//! neighbours in `src/backend/parser/parse_expr.c`).

use super::SchemaName;
use super::script::script;

/// Written in lower case but not functions: parts of the grammar, which choose by the types alone.
const SPECIAL: [&str; 3] = ["coalesce", "greatest", "least"];
/// Types with a keyword of their own, which means the type in `pg_catalog`.
const KEYWORD_TYPES: [&str; 7] = ["bigint", "integer", "int", "boolean", "interval", "varchar", "double"];
/// Constructs that search an operator by its unqualified name.
const HIDDEN: [&str; 9] =
    ["IN", "BETWEEN", "LIKE", "ILIKE", "SIMILAR", "DISTINCT", "NULLIF", "nullif", "OVERLAPS"];
const OPERATOR: &str = "+-*/<>=~!@#%^&|?";

/// A body without comments, with `''` for each string, as words and signs. A qualified name is one word: `"a".b`.
fn tokens(body: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = body;
    while let Some(first) = rest.chars().next() {
        // A comment, or a directive to the language before the body.
        let length = if rest.starts_with("--") || rest.starts_with("#variable_conflict ") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '\'' {
            // A doubled quotation mark counts as two adjacent strings.
            rest[1..].find('\'').unwrap() + 2
        } else if first.is_alphanumeric() || matches!(first, '_' | '"') {
            let mut quoted = false;
            let end = rest.char_indices().find(|(_, c)| {
                quoted ^= *c == '"';
                !(quoted || c.is_alphanumeric() || matches!(c, '_' | '"' | '.'))
            });
            end.map_or(rest.len(), |(at, _)| at)
        } else if OPERATOR.contains(first) || first == ':' {
            rest.find(|c| !OPERATOR.contains(c) && c != ':').unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if !token.starts_with("--") && !token.starts_with("#v") && !token.trim().is_empty() {
            tokens.push(if first == '\'' { "''".to_owned() } else { token.to_owned() });
        }
    }
    tokens
}

/// Replaces each qualified operator by a sign.
fn without_operators(body: &str) -> String {
    let mut parts = body.split("OPERATOR(pg_catalog.");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push('§');
        text.push_str(part.split_once(')').unwrap().1);
    }
    text
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_lowercase() || matches!(c, '_' | '"'))
}

/// A qualified type, or a keyword of the grammar.
fn is_type(token: &str) -> bool {
    token.contains('.') || KEYWORD_TYPES.contains(&token) || token == "CONSTANT"
}

/// The unqualified names in the body of a function.
fn bare(body: &str) -> Vec<String> {
    let all = tokens(&without_operators(body));
    let at = |index: usize| all.get(index).map_or("", String::as_str);
    let mut found = Vec::new();
    let declared = all.iter().position(|token| token == "BEGIN").unwrap();
    for (index, token) in all.iter().enumerate() {
        let (before, after) = (if index > 0 { at(index - 1) } else { "" }, at(index + 1));
        let earlier = if index > 1 { at(index - 2) } else { "" };
        let wrong = if token == "OPERATOR" {
            true
        } else if token == "CASE" {
            after != "WHEN"
        } else if HIDDEN.contains(&token.as_str()) {
            !matches!(earlier, "FOR" | "FOREACH")
        } else if matches!(token.as_str(), "FROM" | "JOIN") {
            !(after == "(" || after.contains('.'))
        } else if token == "UPDATE" {
            !(after.contains('.') || matches!(after, "SET" | "SKIP" | ";"))
        } else if token == "::" {
            !is_type(after)
        } else if token == "=" {
            // Part of an assignment, or of an option of RAISE.
            !(matches!(earlier, "SET" | "," | "USING") || before == ")" && after == "(")
        } else if token.contains(|c| OPERATOR.contains(c)) && !matches!(token.as_str(), ":=" | "=>") {
            !(token == "*" && before.ends_with('.'))
        } else if is_name(token) && index < declared && matches!(before, ";" | "DECLARE") {
            !is_type(after)
        } else if is_name(token) && after == "(" {
            !(token.contains('.') || SPECIAL.contains(&token.as_str()) || before == "AS")
        } else {
            false
        };
        if wrong {
            found.push([earlier, before, token, after].join(" "));
        }
    }
    found
}

/// Head and body of each function and procedure of the script; the last definition counts if one was replaced.
fn functions(text: &str) -> Vec<(&str, &str)> {
    let mut functions: Vec<(&str, &str)> = Vec::new();
    let parts = text.split("\nCREATE ").filter_map(|part| {
        let part = part.strip_prefix("OR REPLACE ").unwrap_or(part);
        let part = part.strip_prefix("FUNCTION ").or_else(|| part.strip_prefix("PROCEDURE "))?;
        let (head, body) = part.split_once("AS $body$").unwrap();
        Some((head, body.split_once("$body$").unwrap().0))
    });
    for (head, body) in parts {
        let name = |head: &str| head.split('(').next().unwrap().to_owned();
        functions.retain(|(other, _)| name(other) != name(head));
        functions.push((head, body));
    }
    functions
}

#[test]
fn a_function_has_a_pinned_search_path_or_names_everything_in_full() {
    let text = script(&SchemaName::default());
    let all = functions(&text);
    assert!(all.len() > 40, "{}", all.len());
    let pinned = |head: &str| head.contains("\nSET search_path = pg_catalog, \"locktop\", pg_temp\n");
    let strict: Vec<_> = all.iter().filter(|(head, _)| !pinned(head)).collect();
    assert!(strict.len() > 8, "{}", strict.len());
    for (head, body) in strict {
        assert_eq!(bare(body), Vec::<String>::new(), "{head}");
    }
}

#[test]
fn unqualified_names_are_found() {
    for body in [
        "v := a = b;",
        "v := a + b;",
        "v := a OPERATOR(public.+) b;",
        "v := now();",
        "v := a IN (1, 2);",
        "v := a IS DISTINCT FROM b;",
        "v := CASE a WHEN 1 THEN 2 END;",
        "v := a::text;",
        "v := b BETWEEN 1 AND 2;",
        "SELECT x FROM distlock d;",
        "UPDATE distlock SET a = 1;",
        "UPDATE \"s\".distlock d SET a = 1 WHERE d.id = 1;",
        "UPDATE \"s\".distlock d SET a = 1, b = d.b + 1;",
        "v := nullif(a, b);",
    ] {
        assert_ne!(bare(&format!("BEGIN {body} END")), Vec::<String>::new(), "{body}");
    }
    assert_ne!(bare("DECLARE v text; BEGIN END"), Vec::<String>::new());
    let good = "DECLARE v bigint; w pg_catalog.text := ''; BEGIN -- now()\n v := coalesce(a, 'now() = 1'); \
         UPDATE \"s\".t d SET a = 1, b = pg_catalog.now() WHERE d.id OPERATOR(pg_catalog.=) 1; END";
    assert_eq!(bare(good), Vec::<String>::new());
}
