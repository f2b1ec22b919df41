//! The kinds of certificates that a server may show.

use std::path::{Path, PathBuf};

use super::HOST;
use super::authority::{Authority, Wanted};

/// A certificate of the server, and the reported error if it is refused.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) certificate: PathBuf,
    /// The file of authorities that it is tried with; each is tried without one too.
    pub(super) root: PathBuf,
    /// The host.
    pub(super) host: &'static str,
    /// A part of the error in `verify-ca` and in `verify-full`; `None` if it works.
    pub(super) errors: [Option<&'static str>; 2],
}

const WORKS: [Option<&str>; 2] = [None, None];

const fn always(error: &'static str) -> [Option<&'static str>; 2] {
    [Some(error), Some(error)]
}

/// Only in `verify-full`.
const fn name(error: &'static str) -> [Option<&'static str>; 2] {
    [None, Some(error)]
}

/// All of them. `ca` has the server's key as `server.key`.
pub(super) fn all(ca: &Authority, other: &Authority) -> Vec<Case> {
    let maker = Maker { ca, other, good: format!("subjectAltName=DNS:{HOST}\n") };
    let mut cases = maker.names();
    cases.extend(maker.addresses());
    cases.extend(maker.authorities());
    cases.extend(maker.limits());
    cases.extend(maker.by_themselves());
    cases.extend(maker.of_version_1());
    cases
}

struct Maker<'a> {
    ca: &'a Authority,
    other: &'a Authority,
    good: String,
}

impl Maker<'_> {
    fn issue(&self, name: &str, subject: &str, extensions: &str) -> PathBuf {
        self.ca.issue("server", Wanted { name, subject, extensions, days: 30 })
    }

    fn expired(&self, name: &str, extensions: &str) -> PathBuf {
        self.ca.issue("server", Wanted { name, subject: "/CN=x", extensions, days: -1 })
    }

    fn foreign(&self, name: &str, extensions: &str) -> PathBuf {
        self.other.issue("server", Wanted { name, subject: "/CN=x", extensions, days: 30 })
    }

    fn case(
        &self,
        name: &'static str,
        certificate: impl AsRef<Path>,
        errors: [Option<&'static str>; 2],
    ) -> Case {
        let certificate = self.ca.file("").join(certificate);
        Case { name, certificate, root: self.ca.certificate(), host: HOST, errors }
    }

    /// A file with the texts of others.
    fn joined(&self, name: &str, files: [&Path; 2]) -> PathBuf {
        let file = self.ca.file(name);
        let text = files.map(|file| std::fs::read_to_string(file).unwrap()).concat();
        std::fs::write(&file, text).unwrap();
        file
    }

    fn names(&self) -> Vec<Case> {
        let common = format!("/CN={HOST}");
        let other = "subjectAltName=DNS:other.example.test\n";
        let no_other = name("is for \"other.example.test\", and not for host \"db.example.test\"");
        let plain = "basicConstraints=CA:FALSE\n";
        let wildcard =
            |label, pattern: &str| self.issue(label, "/CN=x", &format!("subjectAltName=DNS:{pattern}\n"));
        vec![
            self.case("good", self.issue("good", "/CN=x", &self.good), WORKS),
            self.case("wrong name", self.issue("other", "/CN=x", other), no_other),
            self.case("name in the subject", self.issue("common", &common, plain), WORKS),
            self.case(
                "name in the subject, another beside it",
                self.issue("beside", &common, other),
                no_other,
            ),
            self.case(
                "name in the subject, an address beside it",
                self.issue("with-address", &common, "subjectAltName=IP:127.0.0.1\n"),
                WORKS,
            ),
            self.case("wildcard", wildcard("wildcard", "*.example.test"), WORKS),
            self.case("wildcard too high", wildcard("high", "*.test"), name("is for \"*.test\", and not")),
            self.case("capitals", wildcard("capitals", "DB.Example.TEST"), WORKS),
        ]
    }

    fn addresses(&self) -> Vec<Case> {
        let address =
            |label, subject: &str, extension: &str| self.issue(label, subject, &format!("{extension}\n"));
        let cases = [
            ("address", address("ip", "/CN=x", "subjectAltName=IP:127.0.0.1"), WORKS),
            (
                "wrong address",
                address("ip2", "/CN=x", "subjectAltName=IP:127.0.0.2"),
                name("is for \"127.0.0.2\", and not"),
            ),
            ("address as a name", address("ip-name", "/CN=x", "subjectAltName=DNS:127.0.0.1"), WORKS),
            ("address in the subject", address("ip-cn", "/CN=127.0.0.1", "basicConstraints=CA:FALSE"), WORKS),
        ];
        let to_address = |(name, file, errors)| Case { host: "127.0.0.1", ..self.case(name, file, errors) };
        cases.into_iter().map(to_address).collect()
    }

    fn authorities(&self) -> Vec<Case> {
        let between = self.ca.under("between");
        let beneath = between
            .issue("server", Wanted { name: "beneath", subject: "/CN=x", extensions: &self.good, days: 30 });
        let chain = self.joined("chain.crt", [&beneath, &between.certificate()]);
        let both = self.joined("both.crt", [&self.other.certificate(), &self.ca.certificate()]);
        let old_root = Wanted {
            name: "old-root",
            subject: "/O=test/CN=root",
            extensions: "basicConstraints=critical,CA:TRUE\n",
            days: -1,
        };
        let old_root = self.ca.issue_by_itself("root", old_root);
        let good = "good.crt";
        let with = |root, case| Case { root, ..case };
        let clients = format!("{}extendedKeyUsage=clientAuth\n", self.good);
        vec![
            with(both, self.case("good, two authorities", good, WORKS)),
            self.case(
                "wrong authority",
                self.foreign("foreign", &self.good),
                always("signed by \"CN=stranger,O=test\", which is not among those in"),
            ),
            self.case(
                "expired",
                self.expired("expired", &self.good),
                always("the server's certificate expired at 20"),
            ),
            self.case("over an intermediate", chain, WORKS),
            self.case(
                "over an intermediate that is not sent",
                beneath,
                always("signed by \"CN=between,O=test\", which is not among"),
            ),
            self.case(
                "for clients",
                self.issue("clients", "/CN=x", &clients),
                always("issued for a purpose other than servers"),
            ),
            with(
                old_root,
                self.case(
                    "authority expired",
                    good,
                    always("the certificate of the authority \"CN=root,O=test\" in"),
                ),
            ),
            with(
                self.ca.file(good),
                self.case("known, not signed by itself", good, always("which is not among")),
            ),
            with(self.ca.file("none"), self.case("no file", good, always("the file of authorities"))),
            with(
                self.ca.file("server.key"),
                self.case("no certificate in the file", good, always("has no certificate in PEM")),
            ),
        ]
    }

    /// The limits on what an authority can sign, and on the usage of a key.
    fn limits(&self) -> Vec<Case> {
        let authority = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n";
        let constrained = self.ca.under_with(
            "constrained",
            &format!("{authority}nameConstraints=critical,permitted;DNS:good.test\n"),
        );
        let unsigning = self.ca.under_with(
            "unsigning",
            "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,digitalSignature\n",
        );
        let between = self.ca.under("sub");
        let for_clients = Authority::with(
            self.ca.directory(),
            "clients-root",
            &format!("{authority}extendedKeyUsage=clientAuth\n"),
        );
        let alone = Authority::with(
            self.ca.directory(),
            "alone",
            "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign,cRLSign\n",
        );
        let beneath_alone = alone.under("beneath-alone");
        let under = |by: &Authority, name: &str, subject: &str, extensions: &str| {
            let leaf = by.issue("server", Wanted { name, subject, extensions, days: 30 });
            self.joined(&format!("{name}-chain.crt"), [&leaf, &by.certificate()])
        };
        let (common, plain) = (format!("/CN={HOST}"), "basicConstraints=CA:FALSE\n");
        let whole = self.joined("whole.crt", [&self.ca.certificate(), &between.certificate()]);
        let sub_leaf = between
            .issue("server", Wanted { name: "sub-leaf", subject: "/CN=x", extensions: &self.good, days: 30 });
        let with = |root, case| Case { root, ..case };
        let usage = |name, words: &str, errors| {
            let extensions = format!("{}keyUsage=critical,{words}\n", self.good);
            self.case(name, self.issue(name, "/CN=x", &extensions), errors)
        };
        let purpose = always("issued for a purpose other than servers (key usage)");
        vec![
            self.case(
                "constrained, by alternative name",
                under(&constrained, "limited", "/CN=x", &self.good),
                always("its authority is not permitted to sign its names"),
            ),
            self.case(
                "constrained, by the subject alone",
                under(&constrained, "limited-cn", &common, plain),
                always("its authority is not permitted to sign its names"),
            ),
            self.case(
                "in between one that may not sign",
                under(&unsigning, "unsigned", "/CN=x", &self.good),
                always("signed by"),
            ),
            with(whole, self.case("the file has the one in between", &sub_leaf, WORKS)),
            with(
                between.certificate(),
                self.case("the file has that one alone", &sub_leaf, always("signed by")),
            ),
            with(
                for_clients.certificate(),
                self.case(
                    "authority for clients",
                    for_clients.issue(
                        "server",
                        Wanted { name: "cl", subject: "/CN=x", extensions: &self.good, days: 30 },
                    ),
                    always("signed by"),
                ),
            ),
            with(
                alone.certificate(),
                self.case(
                    "more in between than allowed",
                    under(&beneath_alone, "deep", "/CN=x", &self.good),
                    always("its chain has more authorities"),
                ),
            ),
            with(
                alone.certificate(),
                self.case(
                    "no intermediate where none is permitted",
                    alone.issue(
                        "server",
                        Wanted { name: "shallow", subject: "/CN=x", extensions: &self.good, days: 30 },
                    ),
                    WORKS,
                ),
            ),
            usage("for-data", "dataEncipherment", purpose),
            usage("for-signing", "digitalSignature", WORKS),
            usage("for-keys", "keyEncipherment", WORKS),
            self.case(
                "an authority that may sign certificates alone",
                self.issue("sign-only", "/CN=x", &format!("{}{authority}", self.good)),
                purpose,
            ),
        ]
    }

    fn by_themselves(&self) -> Vec<Case> {
        let own = |name, extensions: &str| {
            let subject = format!("/CN={HOST}");
            self.ca.issue_by_itself("server", Wanted { name, subject: &subject, extensions, days: 30 })
        };
        let authority = format!("{}basicConstraints=critical,CA:TRUE\n", self.good);
        let (itself, as_authority) = (own("itself", &self.good), own("as-authority", &authority));
        let unknown = always("is self-signed, and not among those in");
        let known = |case: Case| Case { root: case.certificate.clone(), errors: WORKS, ..case };
        vec![
            self.case("signed by itself", &itself, unknown),
            known(self.case("signed by itself, known", &itself, unknown)),
            self.case("signed by itself as an authority", &as_authority, unknown),
            known(self.case("signed by itself as an authority, known", &as_authority, unknown)),
            self.case("an authority's, signed by another", self.issue("leaf", "/CN=x", &authority), WORKS),
        ]
    }

    fn of_version_1(&self) -> Vec<Case> {
        vec![
            self.case("version 1", self.issue("old", &format!("/CN={HOST}"), ""), WORKS),
            self.case(
                "version 1, wrong name",
                self.issue("old-x", "/CN=x", ""),
                name("is for \"x\", and not"),
            ),
            self.case(
                "version 1, wrong authority",
                self.foreign("old-foreign", ""),
                always("signed by \"CN=stranger,O=test\", which is not among"),
            ),
            self.case("version 1, expired", self.expired("old-expired", ""), always("expired at 20")),
        ]
    }
}
