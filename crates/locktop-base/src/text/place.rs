/// `app@db.example.com:5432`; `app@/run/postgresql:5432` for a socket in that directory.
#[must_use]
pub fn place(database: &str, host: &str, port: u16) -> String {
    let host =
        if host.contains(':') && !host.starts_with('/') { format!("[{host}]") } else { host.to_owned() };
    format!("{database}@{host}:{port}")
}
