//! What the role of the connection may do and see.

use super::Text;

/// What the role of the connection may do and see. Looked up once for each connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a right of its own")]
pub struct Rights {
    /// `current_user`, whose rights these are.
    pub role: Text,
    /// `server_version_num`, as 170002: what a grant allows differs by version.
    pub version_num: u32,
    /// `rolsuper`: no check of the server stops it.
    pub superuser: bool,
    /// Has what `pg_read_all_stats` gives: sees the activity of every role's sessions.
    pub read_all_stats: bool,
    /// May signal everybody's sessions but those of superusers.
    pub signal_backend: bool,
    /// May signal autovacuum workers (from 18 on; before only a superuser may).
    pub signal_autovacuum: bool,
    /// The roles whose privileges it has, itself included, sorted: it may signal their sessions and see their activity.
    pub member_of: Vec<Text>,
    /// The roles that are superusers, sorted: their sessions only a superuser may signal.
    pub superusers: Vec<Text>,
    /// There are more of either than were read: then it is the server that knows.
    pub partial: bool,
    /// Some role's privileges are not its own by being granted that role alone: it is `NOINHERIT`, or the grant is without.
    pub no_inherit: bool,
}
