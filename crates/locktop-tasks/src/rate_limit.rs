//! Rate limits: a maximum number of requests for a key in a window, exact even with concurrent requests.
//!
//! ```no_run
//! use locktop_tasks::rate_limit::RateLimit;
//!
//! # async fn example(client: &tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let limit = RateLimit::new(100, 60);
//! let decision = limit.take(client, "user:123:api").await?;
//! if !decision.allowed {
//!     println!("too many: the window ends at {:?}", decision.window_end);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A window begins with the first request after the previous one has ended, on the server's clock. The decision locks the
//! key's row until the transaction ends, and others that request the key wait for that; a rollback returns the request.
//! So call it outside of long transactions. In `REPEATABLE READ` and above, a key that others requested meanwhile is a
//! serialization failure ([`Error::is_conflict`]).
//!
//! In SQL: `check_rate_limit(key, max_requests, window_seconds)` is true or false, `take_rate_limit` returns more
//! details, `purge_rate_limits()` removes expired windows, and the view `rate_limits` shows them.

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use locktop_base::Timestamp;
use locktop_locks::Error;
use locktop_locks::SchemaName;
use locktop_locks::call::{Parameter, column, row};

/// How many requests are allowed, in which time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests in a window; 0 allows none.
    pub max_requests: i32,
    /// The length of a window, at least 1.
    pub window_seconds: i32,
    /// The schema that the table is in.
    pub schema: SchemaName,
}

/// Whether a request is allowed, and how full its window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Whether it was allowed, and counted.
    pub allowed: bool,
    /// Requests allowed in this window, including this one. `None` if the key was never requested.
    pub count: Option<i32>,
    /// When the window, and with it a refusal, ends.
    pub window_end: Option<Timestamp>,
}

impl RateLimit {
    /// A limit in the schema `locktop`.
    #[must_use]
    pub fn new(max_requests: i32, window_seconds: i32) -> Self {
        Self { max_requests, window_seconds, schema: SchemaName::default() }
    }

    /// Makes one request for a key of at most 100 characters.
    ///
    /// # Errors
    /// If the server refuses, including a key that is too long or an invalid limit, or the connection fails.
    pub async fn take<C: GenericClient + Sync>(&self, client: &C, key: &str) -> Result<Decision, Error> {
        const WHAT: &str = "take_rate_limit";
        let sql = "SELECT allowed, count, window_end FROM @schema@.take_rate_limit($1, $2, $3)";
        let parameters: &[Parameter<'_>] =
            &[(&key, Type::VARCHAR), (&self.max_requests, Type::INT4), (&self.window_seconds, Type::INT4)];
        let row = row(client, &self.schema, WHAT, sql, parameters).await?;
        Ok(Decision {
            allowed: column(WHAT, &row, 0)?,
            count: column(WHAT, &row, 1)?,
            window_end: column(WHAT, &row, 2)?,
        })
    }

    /// Removes at most `at_most` expired windows, of all keys, and returns their number. To be called now and then; expired
    /// windows limit nothing.
    ///
    /// # Errors
    /// If the server refuses, or the connection fails.
    pub async fn purge<C: GenericClient + Sync>(&self, client: &C, at_most: i32) -> Result<i64, Error> {
        const WHAT: &str = "purge_rate_limits";
        let sql = "SELECT @schema@.purge_rate_limits($1)";
        let row = row(client, &self.schema, WHAT, sql, &[(&at_most, Type::INT4)]).await?;
        column(WHAT, &row, 0)
    }
}
