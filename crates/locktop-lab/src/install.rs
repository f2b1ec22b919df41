use std::path::Path;

const MANAGERS: [(&str, &str); 7] = [
    ("/usr/bin/apt-get", "apt-get install"),
    ("/usr/bin/dnf", "dnf install"),
    ("/usr/bin/yum", "yum install"),
    ("/usr/bin/zypper", "zypper install"),
    ("/usr/bin/pacman", "pacman -S"),
    ("/sbin/apk", "apk add"),
    ("/usr/sbin/pkg", "pkg install"),
];

pub(crate) fn postgresql() -> String {
    let server = "postgresql-server";
    let packages = ["postgresql", server, server, server, "postgresql", "postgresql", "postgresql18-server"];
    command("postgresql@18", packages)
}

#[cfg(feature = "redis")]
pub(crate) fn redis() -> String {
    command("redis", ["redis-server", "valkey", "redis", "redis", "valkey", "redis", "redis"])
}

/// `packages` are the names by which the [`MANAGERS`] know it, in their order.
fn command(homebrew: &str, packages: [&str; 7]) -> String {
    if cfg!(target_os = "macos") {
        return format!("brew install {homebrew}");
    }
    let known = MANAGERS.into_iter().zip(packages);
    let mut found = known.clone().filter(|((path, _), _)| Path::new(path).exists());
    let command = found.next().or_else(|| known.clone().next());
    let command = command.map(|((_, command), package)| format!("{command} {package}")).unwrap_or_default();
    if rustix::process::geteuid().is_root() { command } else { format!("sudo {command}") }
}
