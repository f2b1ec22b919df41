//! How to get PostgreSQL on this platform.

use std::path::Path;

/// The command that installs the server with the package manager of this machine.
pub(super) fn command() -> String {
    if cfg!(target_os = "macos") {
        return "brew install postgresql@18".to_owned();
    }
    let managers = [
        ("/usr/bin/apt-get", "apt-get install postgresql"),
        ("/usr/bin/dnf", "dnf install postgresql-server"),
        ("/usr/bin/yum", "yum install postgresql-server"),
        ("/usr/bin/zypper", "zypper install postgresql-server"),
        ("/usr/bin/pacman", "pacman -S postgresql"),
        ("/sbin/apk", "apk add postgresql"),
        ("/usr/sbin/pkg", "pkg install postgresql18-server"),
    ];
    let known = managers.into_iter().find(|(path, _)| Path::new(path).exists());
    let command = known.map_or("apt-get install postgresql", |(_, command)| command);
    if rustix::process::geteuid().is_root() { command.to_owned() } else { format!("sudo {command}") }
}
