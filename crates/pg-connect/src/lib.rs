//! Connecting to PostgreSQL as libpq does: settings from a connection string, flags, the environment and the password
//! file ([`conninfo`]), the connection itself ([`mod@connect`]) with TLS and notifications, and errors of one line that
//! name the place and the remedy ([`error`]).
//!
//! ```no_run
//! use pg_connect::connect::connect;
//! use pg_connect::conninfo::{ConnInfo, Flags, Sources};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let info = ConnInfo::resolve(&Sources::of_process(Some("postgresql://app@db.example.com/app"), Flags::default()))?;
//! let connection = connect(&info).await?;
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod auth_watch;
pub mod connect;
pub mod conninfo;
pub mod error;
mod socket;
mod tls;

pub use connect::attempt::Backoff;
pub use connect::session::{message, refusal};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
