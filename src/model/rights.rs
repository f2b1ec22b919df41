use super::Text;

/// What the role of the connection may do and see. Read once per connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a right of its own")]
pub struct Rights {
    pub role: Text,
    /// `server_version_num`, such as 170002: the effect of a grant depends on the version.
    pub version_num: u32,
    /// `rolsuper`: bypasses all permission checks of the server.
    pub superuser: bool,
    /// Has the privileges of `pg_read_all_stats`: sees the activity of all sessions.
    pub read_all_stats: bool,
    /// May signal all sessions except those of superusers.
    pub signal_backend: bool,
    /// May signal autovacuum workers (from 18 on; before, only a superuser may).
    pub signal_autovacuum: bool,
    /// Roles whose privileges it has, including itself, sorted: it may signal their sessions and see their activity.
    pub member_of: Vec<Text>,
    /// Superuser roles, sorted: only a superuser may signal their sessions.
    pub superusers: Vec<Text>,
    /// There are more roles in either list than were read; only the server knows the rest.
    pub partial: bool,
    /// A grant of some role alone does not give its privileges: the role is `NOINHERIT`, or the grant is without INHERIT.
    pub no_inherit: bool,
}
