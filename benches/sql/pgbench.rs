//! Runs pgbench.

use std::path::{Path, PathBuf};
use std::process::Command;

use locktop::pg::conninfo::ConnInfo;

use crate::block;

/// A comparison: one script for each system. `@` in a script is replaced by the schema of the functions; a line that
/// begins with `@` is replaced by a block of the article.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) clients: usize,
    pub(crate) wanted: Option<f64>,
    pub(crate) printed: &'static str,
    pub(crate) locktop: &'static str,
}

pub(crate) struct Pgbench {
    program: PathBuf,
    socket: PathBuf,
    user: String,
    token: i64,
    scripts: tempfile::TempDir,
}

impl Pgbench {
    /// `LOCKTOP_PGBENCH`, else the first on the PATH, else the directories of Debian's packages.
    pub(crate) fn find(socket: &Path, info: &ConnInfo, token: i64) -> Self {
        let given = std::env::var_os("LOCKTOP_PGBENCH").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
        places.extend(
            (14..=18).rev().map(|version| PathBuf::from(format!("/usr/lib/postgresql/{version}/bin"))),
        );
        let found =
            given.or_else(|| places.iter().map(|place| place.join("pgbench")).find(|it| it.is_file()));
        let program =
            found.expect("pgbench is needed (on Debian: postgresql-contrib); LOCKTOP_PGBENCH names it");
        let scripts = tempfile::tempdir().unwrap();
        Self { program, socket: socket.to_owned(), user: info.user().to_owned(), token, scripts }
    }

    /// Measures a row, and prints it as a line of the table.
    pub(crate) fn compare(&self, row: &Row, rounds: usize, calls: usize) {
        let printed = self.script("printed.sql", &prepared(row.printed, "public."));
        let locktop = self.script("locktop.sql", &prepared(row.locktop, "locktop."));
        let (mut ratios, mut rates) = (Vec::new(), (Vec::new(), Vec::new()));
        for round in 0..rounds {
            // The order alternates.
            let (first, second) = if round % 2 == 0 { (&printed, &locktop) } else { (&locktop, &printed) };
            let rate = |script| self.rate(script, row.clients, calls);
            let (one, other) = (rate(first), rate(second));
            let (printed, locktop) = if round % 2 == 0 { (one, other) } else { (other, one) };
            ratios.push(locktop / printed);
            rates.0.push(printed);
            rates.1.push(locktop);
        }
        let ratio = median(&mut ratios);
        let wanted = row.wanted.map_or_else(String::new, |least| {
            format!("  {} {least}", if ratio >= least { "at least" } else { "LESS THAN" })
        });
        println!(
            "{:<28}{:>8}{:>12.0}{:>12.0}{ratio:>8.2}{:>16}{wanted}",
            row.name,
            row.clients,
            median(&mut rates.0),
            median(&mut rates.1),
            format!("{:.2} to {:.2}", ratios[0], ratios[rounds - 1])
        );
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.scripts.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Transactions a second, as pgbench reports them.
    fn rate(&self, script: &Path, clients: usize, calls: usize) -> f64 {
        let mut command = Command::new(&self.program);
        command.args(["-n", "-j", "1", "-c", &clients.to_string(), "-t", &(calls / clients).to_string()]);
        command.arg("-D").arg(format!("token={}", self.token));
        command.arg("-h").arg(&self.socket).args(["-U", &self.user, "-f"]).arg(script).arg("postgres");
        let output = command.output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !text.contains("ERROR"), "{text}");
        let line =
            text.lines().find_map(|line| line.strip_prefix("tps = ")).unwrap_or_else(|| panic!("{text}"));
        line.split(' ').next().unwrap().parse().unwrap()
    }
}

fn prepared(script: &str, place: &str) -> String {
    let lines = script.lines().map(|line| match line.strip_prefix('@') {
        Some(name) => block(name).trim_end().to_owned(),
        None => line.replace('@', place),
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
