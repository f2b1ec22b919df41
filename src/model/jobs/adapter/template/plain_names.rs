//! The names that a query may contain: the adapter's tables and built-in names.

/// Prefixes of built-in functions that change something even in a read-only transaction, wait, read files, or execute a
/// text. A guard against mistakes only: the author of an adapter is trusted as much as the author of the config.
const REFUSED: [&str; 28] = [
    "set_config",
    "pg_sleep",
    "pg_advisory_",
    "pg_try_advisory_",
    "pg_terminate_backend",
    "pg_cancel_backend",
    "pg_log_backend",
    "pg_reload_conf",
    "pg_rotate_logfile",
    "pg_promote",
    "pg_switch_wal",
    "pg_create_",
    "pg_drop_",
    "pg_backup_",
    "pg_start_backup",
    "pg_stop_backup",
    "pg_replication_",
    "pg_wal_replay_",
    "pg_logical_",
    "pg_stat_reset",
    "pg_read_",
    "pg_ls_",
    "pg_notify",
    "lo_",
    "query_to_xml",
    "table_to_xml",
    "cursor_to_xml",
    "ts_stat",
];

/// Whether a query, without quoted text, starts as one and calls only built-in functions.
pub(super) fn names_are_plain(text: &str, acts: bool) -> Result<(), String> {
    let tokens = tokens(&text.to_ascii_lowercase());
    let word = |index: usize| tokens.get(index).map_or("", String::as_str);
    let first = (0..tokens.len()).map(word).find(|token| *token != "(").unwrap_or_default();
    let begins: &[&str] = if acts { &["update", "with"] } else { &["select", "with"] };
    if !begins.contains(&first) {
        let words: Vec<String> = begins.iter().map(|word| word.to_uppercase()).collect();
        return Err(format!("it does not begin with {}", words.join(" or ")));
    }
    if acts {
        only_aliases(&tokens)?;
    }
    for (index, token) in tokens.iter().enumerate() {
        if let Some(name) = REFUSED.iter().find(|name| token.starts_with(**name)) {
            return Err(format!("it names {name}…: a query only reads"));
        }
        if acts && ["merge", "returning", "truncate"].contains(&token.as_str()) {
            return Err(format!(
                "it has the word {}: an action is one UPDATE, or a WITH around some",
                token.to_uppercase()
            ));
        }
        if !acts && ["insert", "update", "delete", "merge", "into"].contains(&token.as_str()) {
            return Err(format!("it has the word {}: a query only reads", token.to_uppercase()));
        }
        if token == "operator" && word(index + 1) == "(" {
            return Err("it names an operator by its schema: only built-in operators are permitted".into());
        }
        // `schema.function(`, `::schema.type`, `AS schema.type`, `FROM schema.table`: a column is `alias.column`.
        if token == "." && index > 0 && word(index - 1) != "pg_catalog" {
            let back = |steps: usize| index.checked_sub(steps).map_or("", &word);
            let is_of_expression = back(3) == "distinct" || (back(4) == "(" && back(5) == "extract");
            let before = if back(2) == "from" && is_of_expression { "" } else { back(2) };
            let names_other = word(index + 2) == "("
                || matches!(before, "::" | "as" | "from" | "join" | "lateral" | "only")
                || word(index + 2) == ".";
            if names_other {
                let name = format!("{}.{}", word(index - 1), word(index + 1)).replace("?name", "\"…\"");
                return Err(format!(
                    "it names {name}: only the adapter's tables, as {{TABLE}}, and objects of pg_catalog are permitted"
                ));
            }
        }
    }
    Ok(())
}

/// Whether each name before a dot is an alias of an adapter table, or a WITH query. For an action the server is not asked
/// what it names before it runs, so a schema must not appear anywhere.
fn only_aliases(tokens: &[String]) -> Result<(), String> {
    let word = |index: usize| tokens.get(index).map_or("", String::as_str);
    let skip_as = |index: usize| if word(index) == "as" { word(index + 1) } else { word(index) };
    let is_alias = |name: &str| {
        (0..tokens.len()).any(|index| match word(index) {
            "?table" | ")" => skip_as(index + 1) == name,
            of_with if of_with == name => {
                word(index + 1) == "as" && matches!(word(index + 2), "(" | "materialized" | "not")
            }
            _ => false,
        })
    };
    for index in (1..tokens.len()).filter(|index| word(*index) == ".") {
        let (before, name) = (word(index - 1), word(index + 1));
        // `1.5`
        let is_number = before.starts_with(|letter: char| letter.is_ascii_digit());
        if !is_number && before != "pg_catalog" && !is_alias(before) {
            return Err(format!(
                "it names {before}.{name}: only columns of the adapter's tables, by an alias after {{TABLE}}, are permitted"
            ));
        }
    }
    Ok(())
}

/// Words, `::`, and other characters individually.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut follows = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let in_word = letter.is_alphanumeric() || matches!(letter, '_' | '?');
        match tokens.last_mut() {
            Some(last) if in_word && follows => last.push(letter),
            _ if letter.is_whitespace() => {}
            _ if letter == ':' && letters.next_if_eq(&':').is_some() => tokens.push("::".to_owned()),
            _ => tokens.push(letter.to_string()),
        }
        follows = in_word;
    }
    tokens
}
