//! Statements from files.

/// The setting of locktop's sessions that keeps the role's own search path, as a list in JSON.
pub const PATH: &str = "locktop.path";

/// A statement without its comments.
#[must_use]
pub fn without_comments(statement: &str) -> String {
    statement.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n")
}

/// Replaces placeholders by values, in one pass: an inserted value is never scanned again. Of names with a common
/// beginning the longest counts.
#[must_use]
pub fn fill<V: AsRef<str>>(template: &str, values: &[(&str, V)]) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        filled.push_str(before);
        let found =
            values.iter().filter(|(name, _)| after.starts_with(name)).max_by_key(|(name, _)| name.len());
        let (value, length) = found.map_or(("$", 1), |(name, value)| (value.as_ref(), name.len()));
        filled.push_str(value);
        rest = after.get(length..).unwrap_or_default();
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserted_values_are_not_scanned_for_placeholders() {
        let values = [("$table", "\"x$limit\".\"t$1\""), ("$limit", "1001"), ("$tables", "all")];
        assert_eq!(
            fill("SELECT $1 FROM $table LIMIT $limit -- $tables $", &values),
            "SELECT $1 FROM \"x$limit\".\"t$1\" LIMIT 1001 -- all $"
        );
        let values = [("$a", "$b".to_owned()), ("$ab", "two".to_owned()), ("$b", "'$a'".to_owned())];
        for (template, filled) in
            [("$a $b $ab", "$b '$a' two"), ("$abc$", "twoc$"), ("é$a$$b", "é$b$'$a'"), ("$c", "$c"), ("", "")]
        {
            assert_eq!(fill(template, &values), filled, "{template}");
        }
    }
}
