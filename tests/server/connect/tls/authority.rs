//! Certificates, made by openssl.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::server::run;

/// An authority, and a directory for what it signs.
pub(super) struct Authority {
    directory: PathBuf,
    name: &'static str,
}

/// A certificate to make.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    pub(super) subject: &'a str,
    /// Lines of an extensions section; with none it is of version 1.
    pub(super) extensions: &'a str,
    pub(super) days: i32,
}

impl Authority {
    /// An authority with a self-signed certificate.
    pub(super) fn new(directory: &Path, name: &'static str) -> Self {
        Self::with(directory, name, AUTHORITY)
    }

    /// The same with other extensions.
    pub(super) fn with(directory: &Path, name: &'static str, extensions: &str) -> Self {
        let authority = Self { directory: directory.to_owned(), name };
        authority.key(name);
        authority.sign(Wanted { name, subject: &format!("/O=test/CN={name}"), extensions, days: 30 }, None);
        authority
    }

    /// An authority whose certificate is signed by this one.
    pub(super) fn under(&self, name: &'static str) -> Self {
        self.under_with(name, AUTHORITY)
    }

    /// The same with other extensions.
    pub(super) fn under_with(&self, name: &'static str, extensions: &str) -> Self {
        let authority = Self { directory: self.directory.clone(), name };
        authority.key(name);
        let subject = format!("/O=test/CN={name}");
        let wanted = Wanted { name, subject: &subject, extensions, days: 30 };
        self.sign(wanted, Some(self));
        authority
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Its own certificate.
    pub(super) fn certificate(&self) -> PathBuf {
        self.file(&format!("{}.crt", self.name))
    }

    /// A new key, which only its owner may read.
    pub(super) fn key(&self, name: &str) {
        let key = self.file(&format!("{name}.key"));
        run(Command::new("openssl")
            .args(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out"])
            .arg(&key));
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// A certificate for the key `{key}.key`.
    pub(super) fn issue(&self, key: &str, wanted: Wanted<'_>) -> PathBuf {
        let from = self.file(&format!("{key}.key"));
        let to = self.file(&format!("{}.key", wanted.name));
        if from != to {
            std::fs::copy(from, to).unwrap();
        }
        self.sign(wanted, Some(self))
    }

    /// The same, signed by its own key.
    pub(super) fn issue_by_itself(&self, key: &str, wanted: Wanted<'_>) -> PathBuf {
        std::fs::copy(self.file(&format!("{key}.key")), self.file(&format!("{}.key", wanted.name))).unwrap();
        self.sign(wanted, None)
    }

    fn sign(&self, wanted: Wanted<'_>, issuer: Option<&Self>) -> PathBuf {
        let Wanted { name, subject, extensions, days } = wanted;
        let (key, request) = (self.file(&format!("{name}.key")), self.file(&format!("{name}.csr")));
        let certificate = self.file(&format!("{name}.crt"));
        run(Command::new("openssl")
            .args(["req", "-new", "-utf8", "-subj", subject, "-key"])
            .arg(&key)
            .arg("-out")
            .arg(&request));
        let mut command = Command::new("openssl");
        command.args(["x509", "-req", "-days", &days.to_string(), "-in"]).arg(&request);
        match issuer {
            Some(issuer) => {
                command.arg("-CA").arg(issuer.certificate());
                command
                    .arg("-CAkey")
                    .arg(issuer.file(&format!("{}.key", issuer.name)))
                    .arg("-CAcreateserial");
            }
            None => {
                command.arg("-signkey").arg(&key);
            }
        }
        if !extensions.is_empty() {
            let file = self.file(&format!("{name}.ext"));
            std::fs::write(&file, extensions).unwrap();
            command.arg("-extfile").arg(file);
        }
        run(command.arg("-out").arg(&certificate));
        certificate
    }

    /// A list of revoked certificates with these in it.
    pub(super) fn revoke(&self, certificates: &[PathBuf]) -> PathBuf {
        self.list(certificates, VERSION_2, &[])
    }

    /// An empty one that is out of date.
    pub(super) fn revoke_until_yesterday(&self) -> PathBuf {
        let list = self.list(
            &[],
            VERSION_2,
            &["-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200201000000Z"],
        );
        let old = self.file("old.crl");
        std::fs::rename(list, &old).unwrap();
        old
    }

    /// The same, of the first version of such lists.
    pub(super) fn revoke_in_version_1(&self, certificates: &[PathBuf]) -> PathBuf {
        self.list(certificates, "", &[])
    }

    fn list(&self, certificates: &[PathBuf], more: &str, times: &[&str]) -> PathBuf {
        let number = self.file("number");
        std::fs::write(&number, "01\n").unwrap();
        let (index, config) = (self.file("index.txt"), self.file("ca.cnf"));
        std::fs::write(&index, "").unwrap();
        let text = format!(
            "[ca]\ndefault_ca=it\n[it]\ndatabase={}\ndefault_md=sha256\ndefault_crl_days=30\n{}",
            index.display(),
            more.replace("NUMBER", &number.display().to_string())
        );
        std::fs::write(&config, text).unwrap();
        let ca = |more: &mut dyn FnMut(&mut Command)| {
            let mut command = Command::new("openssl");
            command.arg("ca").arg("-config").arg(&config).arg("-cert").arg(self.certificate());
            command.arg("-keyfile").arg(self.file(&format!("{}.key", self.name)));
            more(&mut command);
            run(&mut command);
        };
        for certificate in certificates {
            ca(&mut |command| {
                command.arg("-revoke").arg(certificate);
            });
        }
        let list = self.file(&format!("{}.crl", self.name));
        ca(&mut |command| {
            command.arg("-gencrl").args(times).arg("-out").arg(&list);
        });
        list
    }
}

/// The extensions that make a list of revoked certificates one of version 2.
const VERSION_2: &str =
    "crlnumber=NUMBER\ncrl_extensions=more\n[more]\nauthorityKeyIdentifier=keyid:always\n";

const AUTHORITY: &str = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n";
