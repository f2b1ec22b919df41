use super::token::{Token, TokenKind, group};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error("syntax error at {0}")]
    Syntax(String),
    /// It begins like a known form: the name of the form, and where the statement differs.
    #[error(
        "locktop does not know this form of {0}, from {1} on: a syntax error, or syntax that locktop does not have"
    )]
    Form(String, String),
    #[error("syntax error: {0}")]
    Open(&'static str),
    /// A psql command that may run statements.
    #[error("locktop does not run the psql command {0}: what it does is not known")]
    Psql(String),
    #[error("the value of the psql variable {0} is not known")]
    Variable(String),
}

pub(super) fn near(token: Option<&Token<'_>>) -> String {
    match token {
        Some(token) => format!("or near \"{}\"", token.shown()),
        None => "end of input".to_owned(),
    }
}

/// Line numbers by byte position. Positions must be increasing.
pub(super) struct LineNumbers<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> LineNumbers<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    pub(super) fn line(&mut self, at: usize) -> usize {
        let between = self.text.as_bytes().get(self.at..at).unwrap_or_default();
        self.line += between.split(|byte| *byte == b'\n').count().saturating_sub(1);
        self.at = at;
        self.line
    }
}

/// Splits tokens into statements: at semicolons outside of parentheses and of BEGIN ATOMIC … END, and at psql commands.
pub(super) fn pieces<'a, 'b>(tokens: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let (mut found, mut from, mut depth, mut body) = (Vec::new(), 0, 0_usize, 0_usize);
    let mut put = |from: usize, to: usize| {
        let piece = tokens.get(from..to).unwrap_or_default();
        found.extend((!piece.is_empty()).then_some(piece));
    };
    for (at, token) in tokens.iter().enumerate() {
        if token.kind == TokenKind::Psql {
            put(from, at);
            put(at, at + 1);
            (from, depth, body) = (at + 1, 0, 0);
        } else if token.sign('(') {
            depth += 1;
        } else if token.sign(')') {
            depth = depth.saturating_sub(1);
        } else if token.is("BEGIN") && tokens.get(at + 1).is_some_and(|next| next.is("ATOMIC")) {
            body = 1;
        } else if body > 0 && token.is("CASE") {
            body += 1;
        } else if body > 0 && token.is("END") {
            body -= 1;
        } else if depth == 0 && body == 0 && token.sign(';') {
            put(from, at);
            from = at + 1;
        }
    }
    put(from, tokens.len());
    found
}

/// First words of all commands, up to PostgreSQL 19.
const COMMANDS: &str = "ABORT ALTER ANALYSE ANALYZE BEGIN CALL CHECKPOINT CLOSE CLUSTER COMMENT COMMIT COPY CREATE DEALLOCATE DECLARE DELETE DISCARD DO DROP END EXECUTE EXPLAIN FETCH GRANT IMPORT INSERT LISTEN LOAD LOCK MERGE MOVE NOTIFY PREPARE REASSIGN REFRESH REINDEX RELEASE REPACK RESET REVOKE ROLLBACK SAVEPOINT SECURITY SELECT SET SHOW START TABLE TRUNCATE UNLISTEN UPDATE VACUUM VALUES WAIT WITH";

/// What must follow the first word of a command.
const SECOND: [(&str, &str); 11] = [
    (
        "CREATE",
        "ACCESS AGGREGATE CAST COLLATION CONSTRAINT CONVERSION DATABASE DEFAULT DOMAIN EVENT EXTENSION FOREIGN FUNCTION GLOBAL GROUP INDEX LANGUAGE LOCAL MATERIALIZED OPERATOR OR POLICY PROCEDURAL PROCEDURE PROPERTY PUBLICATION RECURSIVE ROLE RULE SCHEMA SEQUENCE SERVER STATISTICS SUBSCRIPTION TABLE TABLESPACE TEMP TEMPORARY TEXT TRANSFORM TRIGGER TRUSTED TYPE UNIQUE UNLOGGED USER VIEW",
    ),
    (
        "ALTER",
        "AGGREGATE COLLATION CONVERSION DATABASE DEFAULT DOMAIN EVENT EXTENSION FOREIGN FUNCTION GROUP INDEX LANGUAGE LARGE MATERIALIZED OPERATOR POLICY PROCEDURAL PROCEDURE PROPERTY PUBLICATION ROLE ROUTINE RULE SCHEMA SEQUENCE SERVER STATISTICS SUBSCRIPTION SYSTEM TABLE TABLESPACE TEXT TRIGGER TYPE USER VIEW",
    ),
    (
        "DROP",
        "ACCESS AGGREGATE CAST COLLATION CONVERSION DATABASE DOMAIN EVENT EXTENSION FOREIGN FUNCTION GROUP INDEX LANGUAGE MATERIALIZED OPERATOR OWNED POLICY PROCEDURAL PROCEDURE PROPERTY PUBLICATION ROLE ROUTINE RULE SCHEMA SEQUENCE SERVER STATISTICS SUBSCRIPTION TABLE TABLESPACE TEXT TRANSFORM TRIGGER TYPE USER VIEW",
    ),
    ("COMMENT", "ON"),
    ("INSERT", "INTO"),
    ("DELETE", "FROM"),
    ("MERGE", "INTO"),
    ("REFRESH", "MATERIALIZED"),
    ("START", "TRANSACTION"),
    ("SECURITY", "LABEL"),
    ("REASSIGN", "OWNED"),
];

/// Errors that the server would certainly report; `None` if in doubt.
pub(super) fn refused(tokens: &[Token<'_>]) -> Option<Unknown> {
    if let Some(open) = tokens.iter().find(|token| !token.is_closed()) {
        let is_name = open.kind == TokenKind::Quoted;
        return Some(Unknown::Open(if is_name {
            "a quoted name does not end"
        } else {
            "a quoted string does not end"
        }));
    }
    let (first, rest) = tokens.split_first()?;
    if !first.sign('(') && !first.is_among(COMMANDS) {
        return Some(Unknown::Syntax(near(Some(first))));
    }
    let second = SECOND.iter().find(|(command, _)| first.is(command));
    if let Some((_, words)) = second
        && !rest.first().is_some_and(|token| token.is_among(words))
    {
        return Some(Unknown::Syntax(near(rest.first())));
    }
    let mut depth = 0_usize;
    for token in tokens {
        if token.sign('(') {
            depth += 1;
        } else if token.sign(')') {
            match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return Some(Unknown::Syntax(near(Some(token)))),
            }
        }
    }
    if depth > 0 {
        return Some(Unknown::Open("a parenthesis is not closed"));
    }
    let lacks_set = first.is("UPDATE") && !tokens.iter().any(|token| token.is("SET"));
    lacks_set.then(|| Unknown::Syntax(near(tokens.get(2))))
}

/// The name for a statement that begins like a form but does not match: its first key words.
pub(super) fn called(tokens: &[Token<'_>], left: usize) -> Unknown {
    let at = tokens.len().saturating_sub(left);
    if let Some([colon, variable, ..]) = tokens.get(at..)
        && colon.sign(':')
    {
        return Unknown::Variable(format!(":{}", variable.text));
    }
    let is_key_word = |token: &Token<'_>| {
        SECOND.iter().take(3).any(|(_, words)| token.is_among(words)) || token.is("SEARCH")
    };
    let words = tokens.iter().take(at.clamp(1, 3)).enumerate();
    let words = words.take_while(|(place, token)| *place == 0 || is_key_word(token)).map(|(_, token)| token);
    let name = words.map(|token| token.text.to_ascii_uppercase()).collect::<Vec<_>>().join(" ");
    let from = tokens.get(at).map_or_else(|| "its end".to_owned(), |token| format!("\"{}\"", token.shown()));
    Unknown::Form(name, from)
}

/// `None` for a psql command that takes no locks.
pub(super) fn psql(text: &str) -> Option<Unknown> {
    const HARMLESS: &str = r"\set \unset \echo \qecho \warn \pset \timing \x \t \a \o \q \encoding \prompt \g \gx \gset \gdesc \conninfo \cd \setenv \getenv \if \elif \else \endif \p \r \h \? \errverbose \restrict \unrestrict \crosstabview";
    let command = text.split_ascii_whitespace().next().unwrap_or_default();
    let is_listing = command.starts_with("\\d") || command.starts_with("\\l");
    let harmless = is_listing || HARMLESS.split(' ').any(|known| known == command);
    // A file name is shown; a connection string may contain a password.
    let is_file = command.starts_with("\\i");
    let shown = if is_file { text.trim_end() } else { command };
    (!harmless).then(|| Unknown::Psql(shown.chars().take(80).collect()))
}

pub(super) fn inside<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<&'t [Token<'a>]> {
    tokens.get(1..group(tokens)? - 1)
}
