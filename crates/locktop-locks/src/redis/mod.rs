//! A connection to one Redis server: its URL, TLS, and commands with a time limit. Errors are one line each, without a
//! password.

mod stream;
mod tls;
mod url;

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisError, Value};
use tokio::task::JoinSet;

pub(crate) use stream::listen;
use stream::{DialError, Stream};
pub use url::RedisUrl;

/// A TLS port disconnects a client that does not use TLS.
const MAY_BE_TLS: &str = "; a port for TLS does that: if this is one, write rediss://";

/// A command with its arguments, which are bytes.
#[derive(Debug, Clone)]
pub struct Command {
    name: &'static str,
    cmd: Cmd,
}

impl Command {
    /// A command without arguments; its name also appears in errors.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self { name, cmd: redis::cmd(name) }
    }

    /// The command with one more argument, of any bytes.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<[u8]>) -> Self {
        self.cmd.arg(argument.as_ref());
        self
    }

    /// The command with one more argument, a number.
    #[must_use]
    pub fn number(self, number: u64) -> Self {
        self.arg(number.to_string())
    }
}

/// A server's answer to one command.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Null: there is no such key, or nothing was done.
    Nil,
    /// An integer, such as a count or a time in milliseconds.
    Number(i64),
    /// A string, or a status such as `OK`.
    Bytes(Vec<u8>),
    /// An array or a set; for a map, its keys and values in turn.
    Several(Vec<Reply>),
    /// This command was refused, in a pipeline in which others may have been answered.
    Refused(String),
    /// An answer that the commands used here never give.
    Unexpected,
}

impl Reply {
    /// The number, if it is one.
    #[must_use]
    pub fn as_number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The bytes, if it is a string.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn of(value: Value) -> Self {
        match value {
            Value::Nil => Self::Nil,
            Value::Int(number) => Self::Number(number),
            Value::BulkString(bytes) => Self::Bytes(bytes),
            Value::SimpleString(text) => Self::Bytes(text.into_bytes()),
            Value::Okay => Self::Bytes(b"OK".to_vec()),
            Value::Array(values) | Value::Set(values) => {
                Self::Several(values.into_iter().map(Self::of).collect())
            }
            Value::Map(pairs) => Self::Several(
                pairs.into_iter().flat_map(|(key, value)| [Self::of(key), Self::of(value)]).collect(),
            ),
            Value::ServerError(error) => Self::Refused(RedisError::from(error).to_string()),
            _ => Self::Unexpected,
        }
    }
}

/// A server that did not answer, or not as expected.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RedisFault {
    /// No connection could be made: TCP, the password, or the database was refused.
    #[error("{server}: cannot connect: {reason}")]
    Refused {
        /// The server that was connected to.
        server: RedisUrl,
        /// The message of the system or the server.
        reason: String,
    },
    /// The server was reached, but no encrypted connection was established.
    #[error("{server}: {trouble}")]
    Tls {
        /// The server that was connected to.
        server: RedisUrl,
        /// The TLS problem, with the remedy.
        trouble: TlsProblem,
    },
    /// No answer came in time, to connecting or to a command.
    #[error("{server}: no answer within {} ms", .timeout.as_millis())]
    Silent {
        /// The server that did not answer.
        server: RedisUrl,
        /// How long the client waited for an answer.
        timeout: Duration,
    },
    /// The connection was lost while waiting for an answer.
    #[error("{server}: the connection is lost: {reason}")]
    Lost {
        /// The server of the connection.
        server: RedisUrl,
        /// The system's message, in one line.
        reason: String,
    },
    /// The server answered with an error.
    #[error("{server}: {command} was refused: {reason}")]
    Answer {
        /// The server that refused.
        server: RedisUrl,
        /// The name of the command that was sent.
        command: &'static str,
        /// The server's error, in one line.
        reason: String,
    },
    /// The server's answer is not one that Redis gives.
    #[error("{server}: {command} got an unexpected answer; is this a Redis server?")]
    UnexpectedReply {
        /// The server that answered.
        server: RedisUrl,
        /// The name of the command that was sent.
        command: &'static str,
    },
}

impl RedisFault {
    /// Whether the connection can still be used.
    #[must_use]
    pub const fn leaves_the_connection(&self) -> bool {
        matches!(self, Self::Answer { .. } | Self::UnexpectedReply { .. })
    }
}

/// An invalid URL. It is not repeated, since it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedisUrlError {
    /// The text is not a URL; with the parser's reason, which contains nothing of the text.
    #[error(
        "not a Redis URL ({0}): write redis://[user[:password]@]host[:port][/database], rediss:// for TLS, or \
         redis+unix:///path/to/socket (in a password write %3A for \":\", %2F for \"/\", %40 for \"@\")"
    )]
    Syntax(String),
    /// An unknown TLS parameter (`ssl…` or `tls…`), by its name.
    #[error(
        "{0} in a Redis URL is not known: for TLS use ssl_ca_certs=FILE, \
         ssl_certfile=FILE and ssl_keyfile=FILE, and #insecure at the end"
    )]
    Parameter(String),
    /// Files for TLS in a URL without TLS.
    #[error("a Redis URL with files for TLS is not encrypted: write rediss:// in place of redis://")]
    Plain,
    /// A certificate without its key, or a key without its certificate.
    #[error("ssl_certfile and ssl_keyfile in a Redis URL belong together, but only one is given")]
    HalfAnIdentity,
}

/// Why there is no TLS. The text follows the server's name, in one line, and includes the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsProblem {
    /// Its certificate is not issued by a trusted authority, or is not valid; with the reason.
    #[error(
        "its certificate is not trusted ({0}): name the file of its authority by ?ssl_ca_certs=FILE in the URL or by \
         SSL_CERT_FILE; #insecure at the end of the URL accepts any certificate, even an attacker's"
    )]
    Untrusted(String),
    /// Its certificate is for another host; with the names in it.
    #[error("its certificate is for {0}: write that name in the URL, or issue a certificate for this name")]
    OtherName(String),
    /// It did not answer the TLS handshake within this time.
    #[error(
        "no answer within {} ms; a port without TLS does not answer either: if this is one, write redis://", .0.as_millis()
    )]
    Silent(Duration),
    /// Its answer was not TLS.
    #[error("this port does not use TLS: write redis://, or name the right port")]
    NoTls,
    /// It refused the client, with or without a client certificate.
    #[error(
        "it requires a client certificate that it trusts: name one by ?ssl_certfile=FILE&ssl_keyfile=FILE in the URL, or \
         configure the server not to require one (tls-auth-clients no)"
    )]
    WhoAreYou,
    /// A file that the URL names cannot be read or used; with the file and the reason.
    #[error("{0}: correct the files that its URL names")]
    Files(String),
    /// Any other error of the TLS library, with its message.
    #[error("no TLS: {0}")]
    Other(String),
}

/// A connection to one server. Clones share it; it closes with the last of them.
#[derive(Debug, Clone)]
pub struct Connection {
    server: RedisUrl,
    timeout: Duration,
    inner: MultiplexedConnection,
    /// A set, because dropping that aborts the task: a server that does not answer would keep it alive forever.
    _driver: Arc<JoinSet<()>>,
}

impl Connection {
    /// Connects, within `timeout`; every later command has the same time limit.
    ///
    /// # Errors
    /// If the server cannot be reached, does not answer in time, cannot prove its identity, or refuses the password or the
    /// database.
    pub async fn open(server: &RedisUrl, timeout: Duration) -> Result<Self, RedisFault> {
        // The only time limit that holds is the one around everything: a name lookup has none of its own.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(Some(timeout));
        let connecting = async {
            let stream = Stream::dial(&server.info, &server.tls).await.map_err(|error| match error {
                DialError::Tls(trouble) => RedisFault::Tls { server: server.clone(), trouble },
                DialError::Io(error) => refused(server, &error.into()),
            })?;
            let made =
                MultiplexedConnection::new_with_config(server.info.redis_settings(), stream, config).await;
            made.map_err(|error| {
                if error.is_timeout() { unanswered(server, timeout) } else { refused(server, &error) }
            })
        };
        let made = tokio::time::timeout(timeout, connecting).await;
        let (inner, driver) = made.map_err(|_| unanswered(server, timeout))??;
        let mut tasks = JoinSet::new();
        tasks.spawn(driver);
        Ok(Self { server: server.clone(), timeout, inner, _driver: Arc::new(tasks) })
    }

    /// The server of this connection.
    #[must_use]
    pub fn server(&self) -> &RedisUrl {
        &self.server
    }

    /// Sends a command and returns its answer.
    ///
    /// # Errors
    /// If none comes in time, or the server refuses.
    pub async fn run(&self, command: &Command) -> Result<Reply, RedisFault> {
        let mut connection = self.inner.clone();
        let answer = connection.send_packed_command(&command.cmd).await;
        match answer.map(Reply::of).map_err(|error| self.fault(&error, command.name))? {
            Reply::Refused(reason) => {
                Err(RedisFault::Answer { server: self.server.clone(), command: command.name, reason })
            }
            reply => Ok(reply),
        }
    }

    /// Sends several commands at once, and returns an answer for each; one that is refused does not affect the others.
    ///
    /// # Errors
    /// If the answers do not come in time.
    pub async fn run_all(&self, commands: &[Command]) -> Result<Vec<Reply>, RedisFault> {
        let Some(first) = commands.first() else { return Ok(Vec::new()) };
        let mut pipeline = Pipeline::with_capacity(commands.len());
        for command in commands {
            pipeline.add_command(command.cmd.clone());
        }
        let mut connection = self.inner.clone();
        let answers = connection.send_packed_commands(&pipeline, 0, commands.len()).await;
        let answers = answers.map_err(|error| self.fault(&error, first.name))?;
        if answers.len() != commands.len() {
            return Err(self.unexpected(first.name));
        }
        Ok(answers.into_iter().map(Reply::of).collect())
    }

    /// The error for an answer that Redis does not give.
    #[must_use]
    pub fn unexpected(&self, command: &'static str) -> RedisFault {
        RedisFault::UnexpectedReply { server: self.server.clone(), command }
    }

    fn fault(&self, error: &RedisError, command: &'static str) -> RedisFault {
        let server = self.server.clone();
        if error.is_timeout() {
            RedisFault::Silent { server, timeout: self.timeout }
        } else if error.is_io_error() || error.is_unrecoverable_error() {
            RedisFault::Lost { server, reason: reason(error) }
        } else {
            RedisFault::Answer { server, command, reason: reason(error) }
        }
    }
}

fn refused(server: &RedisUrl, error: &RedisError) -> RedisFault {
    let server = server.clone();
    if let Some(trouble) = tls::problem(error) {
        return RedisFault::Tls { server, trouble };
    }
    let hung_up = error.is_connection_dropped() && !error.is_connection_refusal();
    let hint = if hung_up && !server.is_encrypted() { MAY_BE_TLS } else { "" };
    RedisFault::Refused { server, reason: reason(error) + hint }
}

/// No answer while connecting. Redis takes the beginning of TLS for one of its own commands, and waits for the rest of
/// it.
fn unanswered(server: &RedisUrl, timeout: Duration) -> RedisFault {
    let server = server.clone();
    if server.is_encrypted() {
        RedisFault::Tls { server, trouble: TlsProblem::Silent(timeout) }
    } else {
        RedisFault::Silent { server, timeout }
    }
}

/// The message of the system or the server, in one line.
fn reason(error: &RedisError) -> String {
    locktop_base::text::one_line(&error.to_string()).into_owned()
}
