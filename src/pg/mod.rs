//! Talking to PostgreSQL.

pub mod connect;
pub mod conninfo;
pub mod error;
pub mod tls;
