use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use super::files::PasswordFile;
use super::{ConnInfo, Endpoint, Flags, Host, Sources, SslMode};
use crate::error::ConnInfoError;

#[derive(Default)]
struct Given<'a> {
    target: Option<&'a str>,
    flags: Flags,
    flags_first: bool,
    env: &'a [(&'a str, &'a str)],
    home: Option<PathBuf>,
}

fn resolve(given: Given<'_>) -> Result<ConnInfo, ConnInfoError> {
    let env: HashMap<_, _> = given.env.iter().copied().collect();
    ConnInfo::resolve(&Sources {
        target: given.target,
        flags: given.flags,
        flags_first: given.flags_first,
        env: &|name| env.get(name).map(|value| (*value).to_owned()),
        home: given.home,
        os_user: Some("me".to_owned()),
    })
}

fn target(text: &str) -> Result<ConnInfo, ConnInfoError> {
    resolve(Given { target: Some(text), ..Given::default() })
}

fn password(info: &ConnInfo) -> Option<&str> {
    info.password.as_ref().map(|(secret, _)| secret.expose())
}

#[test]
fn connection_strings_resolve_to_the_expected_target() {
    for (text, meaning) in [
        ("", "[local]:5432/me as me"),
        ("app", "[local]:5432/app as me"),
        ("host=db", "db:5432/me as me"),
        ("host = db  port =6000 dbname='my db' user='o\\'neil'", "db:6000/my db as o'neil"),
        ("host=/tmp port=6000", "/tmp/.s.PGSQL.6000/me as me"),
        ("dbname=a\\ b", "[local]:5432/a b as me"),
        ("host=a,b port=1,2", "a:1,b:2/me as me"),
        ("host=a,b port=7", "a:7,b:7/me as me"),
        ("host=a,,b port=1,,", "a:1,[local]:5432,b:5432/me as me"),
        ("host=::1", "[::1]:5432/me as me"),
        ("user=u", "[local]:5432/u as u"),
        ("postgres://", "[local]:5432/me as me"),
        ("postgresql://u@h/d", "h:5432/d as u"),
        ("postgresql://u:p@h:99/d", "h:99/d as u"),
        ("postgresql://h", "h:5432/me as me"),
        ("postgresql:///d", "[local]:5432/d as me"),
        ("postgresql://%2Frun%2Fpg/d", "/run/pg/.s.PGSQL.5432/d as me"),
        ("postgresql://[::1]:99/d", "[::1]:99/d as me"),
        ("postgresql://[2001:db8::1]/d", "[2001:db8::1]:5432/d as me"),
        ("postgresql://a:1,b,c:3/d", "a:1,b:5432,c:3/d as me"),
        ("postgresql://a/d?host=b&port=8", "b:8/d as me"),
        ("postgresql://h?user=u&dbname=%C3%A9", "h:5432/é as u"),
        ("postgresql:///d?host=/tmp", "/tmp/.s.PGSQL.5432/d as me"),
    ] {
        assert_eq!(target(text).unwrap().describe(), meaning, "{text:?}");
    }
}

#[test]
fn strings_with_mistakes_are_refused() {
    for (text, error) in [
        (
            "host=db port",
            "the connection string cannot be read: no \"=\" after the word at character 9 (a value with spaces in it is written in single quotes)",
        ),
        ("dbname='a", "the connection string cannot be read: the quote at character 8 is not closed"),
        ("hots=db", "unknown setting \"hots\" in the connection string: did you mean \"host\"?"),
        ("zebra=db", "unknown setting \"zebra\" in the connection string"),
        ("port=0", "port is \"0\" (from the connection string): expected a number from 1 to 65535"),
        ("host=a port=x", "port is \"x\" (from the connection string): expected a number from 1 to 65535"),
        (
            "host=a,b port=1,2,3",
            "the connection string cannot be read: 3 values for port and 2 places to connect to: give one for each",
        ),
        (
            "hostaddr=db",
            "hostaddr is \"db\" (from the connection string): expected a numeric IPv4 or IPv6 address",
        ),
        (
            "connect_timeout=soon",
            "connect_timeout is \"soon\" (from the connection string): expected a whole number",
        ),
        (
            "sslmode=maybe",
            "sslmode is \"maybe\" (from the connection string): expected disable, allow, prefer, require, verify-ca or verify-full",
        ),
        (
            "mysql://h/d",
            "the connection string cannot be read: a URI begins with postgresql:// or postgres://",
        ),
        (
            "postgres://h:x/d",
            "the connection string cannot be read: the port in the URI is not a number from 1 to 65535 (in a password write %3A for \":\", %2F for \"/\", %40 for \"@\")",
        ),
        (
            "postgres://[::1/d",
            "the connection string cannot be read: an IPv6 address in the URI lacks its \"]\"",
        ),
        (
            "postgres://[::1]x/d",
            "the connection string cannot be read: the \"]\" of an IPv6 address in the URI must be followed by \":\" and a port, or by nothing",
        ),
        (
            "postgres://h/%zz",
            "the connection string cannot be read: a \"%\" in the URI is not followed by two hexadecimal digits (a \"%\" itself is written %25)",
        ),
        (
            "postgres://h/%ff",
            "the connection string cannot be read: the percent-encoded bytes of the URI are not UTF-8",
        ),
        ("postgres://h/%00", "the connection string cannot be read: %00 cannot be in a URI"),
        (
            "postgres://h/?host",
            "the connection string cannot be read: a setting after \"?\" in the URI has no \"=\"",
        ),
        ("gssencmode=require", "gssencmode=require (from the connection string) is not supported: remove it"),
        ("requirepeer=postgres", "requirepeer (from the connection string) is not supported: remove it"),
        (
            "ssl_max_protocol_version=TLSv1.1",
            "ssl_max_protocol_version=TLSv1.1 (from the connection string) is not supported: remove it",
        ),
        (
            "ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2",
            "ssl_max_protocol_version is \"TLSv1.2\" (from the connection string): expected no less than ssl_min_protocol_version",
        ),
        (
            "sslrootcert=system sslmode=require",
            "sslmode is \"require\" (from the connection string): expected verify-full, with sslrootcert=system",
        ),
        (
            "sslnegotiation=direct",
            "sslnegotiation is \"direct\" (from the connection string): expected sslmode=require or stricter with it",
        ),
        (
            "require_auth=md5,!none",
            "require_auth is \"md5,!none\" (from the connection string): expected either only methods, or only methods with \"!\" before them",
        ),
        (
            "postgres://h/?a=b=c",
            "the connection string cannot be read: a setting after \"?\" in the URI has two \"=\" (write %3D for it in a value)",
        ),
        (
            "postgres://[]/d",
            "the connection string cannot be read: the text between \"[\" and \"]\" in the URI is not an IPv6 address",
        ),
    ] {
        assert_eq!(target(text).unwrap_err().to_string(), error, "{text:?}");
    }
}

#[test]
fn settings_without_effect_are_accepted() {
    let text = "gssencmode=prefer krbsrvname=x client_encoding=auto sslcompression=0 sslsni=0 \
                sslnegotiation=postgres ssl_min_protocol_version=TLSv1.2 replication=false load_balance_hosts=disable";
    assert_eq!(target(text).unwrap().describe(), "[local]:5432/me as me");
    target("sslmode=disable sslkeylogfile=keys").unwrap();
}

#[test]
fn no_error_and_no_debug_output_repeats_a_password() {
    for text in [
        "password=hush hush2",
        "password=hush hush2=x",
        "password='hush",
        "postgres://u:hu/sh@h/d",
        "postgres://u:hush%@h/d",
        "postgres://u:hush@h:port/d",
        "postgres://u:hush@h/d?zebra=1",
        "host=h password=hush sslmode=hm",
        "host=h password=hush service=x",
    ] {
        let error = target(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hu"), "{text}: {error}");
    }
    for text in ["postgres://u:hush@h/d", "host=h user=u password=hush"] {
        let info = target(text).unwrap();
        assert_eq!(password(&info), Some("hush"));
        assert!(!format!("{info:?} {}", info.describe()).contains("hush"), "{text}");
    }
}

#[test]
fn the_stronger_source_wins() {
    let flags = || Flags {
        host: Some("flag".to_owned()),
        port: Some("2".to_owned()),
        user: None,
        dbname: Some("flagdb".to_owned()),
    };
    let env = &[("PGHOST", "env"), ("PGUSER", "envuser"), ("PGDATABASE", "envdb"), ("PGPORT", "3")];
    let given = |target, flags, flags_first| Given { target, flags, flags_first, env, home: None };
    for (given, meaning) in [
        (given(None, Flags::default(), false), "env:3/envdb as envuser"),
        (given(None, flags(), false), "flag:2/flagdb as envuser"),
        (given(Some("host=string"), flags(), false), "string:2/flagdb as envuser"),
        (given(Some("host=string"), flags(), true), "flag:2/flagdb as envuser"),
        (given(Some("host=''"), Flags::default(), false), "[local]:3/envdb as envuser"),
        (
            given(None, Flags { dbname: Some("postgres://uri/x".to_owned()), ..flags() }, false),
            "uri:2/x as envuser",
        ),
    ] {
        assert_eq!(resolve(given).unwrap().describe(), meaning);
    }
    let error = resolve(Given { env: &[("PGGSSENCMODE", "require")], ..Given::default() }).unwrap_err();
    assert!(
        error.to_string().starts_with("gssencmode=require (from PGGSSENCMODE) is not supported"),
        "{error}"
    );
    let error = resolve(Given { env: &[("PGPORT", "x")], ..Given::default() }).unwrap_err();
    assert_eq!(error.to_string(), "port is \"x\" (from PGPORT): expected a number from 1 to 65535");
}

#[test]
fn the_environment_is_followed() {
    let info = resolve(Given {
        env: &[
            ("PGHOSTADDR", "10.0.0.1"),
            ("PGPASSWORD", "hush"),
            ("PGSSLMODE", "require"),
            ("PGCONNECT_TIMEOUT", "7"),
            ("PGAPPNAME", "watch"),
            ("PGOPTIONS", "-c geqo=off"),
        ],
        ..Given::default()
    })
    .unwrap();
    assert_eq!(
        info.endpoints,
        [Endpoint { host: Host::Local, address: Some([10, 0, 0, 1].into()), port: 5432, password: None }]
    );
    assert_eq!(password(&info), Some("hush"));
    assert_eq!(info.tls.mode, SslMode::Require);
    assert_eq!(info.connect_timeout, Some(Duration::from_secs(7)));
    assert_eq!(info.application_name, "watch");
    assert_eq!(info.options.as_deref(), Some("-c geqo=off"));
    let old = resolve(Given { env: &[("PGREQUIRESSL", "1")], ..Given::default() }).unwrap();
    assert_eq!(old.tls.mode, SslMode::Require);
}

#[test]
fn defaults_and_numbers() {
    let info = target("").unwrap();
    assert!(info.application_name.starts_with("pg_connect"), "this program: {}", info.application_name);
    assert_eq!(info.connect_timeout, Some(Duration::from_secs(10)));
    assert_eq!(target("connect_timeout=0").unwrap().connect_timeout, None);
    assert_eq!(
        target("ssl=true").unwrap_err().to_string(),
        "unknown setting \"ssl\" in the connection string"
    );
    assert_eq!(target("postgres://h?ssl=true").unwrap().tls.mode, SslMode::Require);
    assert!(target("keepalives=0").unwrap().keepalives.probes.is_none());
    let timeout = target("tcp_user_timeout=1500").unwrap().keepalives.user_timeout;
    assert_eq!(timeout, Some(Duration::from_millis(1500)));
}

#[test]
fn password_file_fields() {
    let file = PasswordFile::parse(
        "# a comment\n\
         db:5432:app:alice:one\n\
         db:*:*:alice:two\n\
         with\\:colon:1:a\\\\b:u:p\\:w\\\\\n\
         *:*:*:bob:three:ignored\n\
         broken line\n\
         *:*:*:carol:\n\
         localhost:*:*:*:last\r\n",
    );
    let find = |host, port, database, user| {
        file.find(host, port, database, user).map(|secret| secret.expose().to_owned())
    };
    assert_eq!(find("db", 5432, "app", "alice").as_deref(), Some("one"));
    assert_eq!(find("db", 5433, "app", "alice").as_deref(), Some("two"));
    assert_eq!(find("other", 5432, "app", "alice"), None);
    assert_eq!(find("with:colon", 1, "a\\b", "u").as_deref(), Some("p:w\\"));
    assert_eq!(find("anywhere", 9, "x", "bob").as_deref(), Some("three"));
    assert_eq!(find("db", 5432, "app", "carol"), None);
    assert_eq!(find("localhost", 1, "x", "y").as_deref(), Some("last"));
}

#[test]
fn password_file_of_each_host_and_its_mode() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".pgpass");
    std::fs::write(&path, "a:*:*:*:for-a\nlocalhost:*:*:*:for-local\n/elsewhere:*:*:*:for-socket\n").unwrap();
    let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    let passwords = |text: &str| {
        let info =
            resolve(Given { target: Some(text), home: Some(home.path().to_owned()), ..Given::default() })
                .unwrap();
        let found = |e: &Endpoint| e.password.as_ref().map(|(secret, _)| secret.expose().to_owned());
        (info.endpoints.iter().map(found).collect::<Vec<_>>(), info.password_note)
    };
    mode(0o600);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(passwords("host=a,b,/elsewhere").0, [some("for-a"), None, some("for-socket")]);
    assert_eq!(passwords("host=/tmp").0, [some("for-local")]);
    assert_eq!(passwords("").0, [some("for-local")]);
    assert_eq!(passwords("host=a password=given").0, [None]);
    mode(0o640);
    let (found, note) = passwords("host=a");
    assert_eq!(found, [None]);
    assert!(note.unwrap().ends_with("was not used: other users can read it: chmod 600"));
    let absent = format!("host=a passfile={}/none", home.path().display());
    assert_eq!(passwords(&absent), (vec![None], None));
}

#[test]
fn a_service_ranks_between_the_string_and_the_environment() {
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join(".pg_service.conf");
    let text = "# mine\n[first]\nhost=one\nport = 1\n[prod]\n  host=db.prod  \nport=7\nhost=again\nuser=svc\npassword=hush hush\n\n[later]\nhost=x\n";
    std::fs::write(&own, text).unwrap();
    let system = home.path().join("etc");
    std::fs::create_dir(&system).unwrap();
    std::fs::write(system.join("pg_service.conf"), "[far]\nhost=far\n[prod]\nhost=not-this\n").unwrap();
    let system = system.display().to_string();
    let resolve = |text: &str, env: &[(&str, &str)]| {
        let env = [env, &[("PGSYSCONFDIR", system.as_str())]].concat();
        resolve(Given {
            target: Some(text),
            env: &env,
            home: Some(home.path().to_owned()),
            ..Given::default()
        })
    };
    let describe = |text: &str, env: &[(&str, &str)]| resolve(text, env).unwrap().describe();
    assert_eq!(describe("service=prod", &[]), "db.prod:7/svc as svc");
    assert_eq!(describe("service=prod user=me port=8", &[("PGHOST", "env")]), "db.prod:8/me as me");
    assert_eq!(describe("dbname=d", &[("PGSERVICE", "prod"), ("PGDATABASE", "e")]), "db.prod:7/d as svc");
    assert_eq!(describe("service=prod", &[("PGDATABASE", "e")]), "db.prod:7/e as svc");
    assert_eq!(describe("service=far", &[]), "far:5432/me as me");
    assert_eq!(describe("postgresql:///d?service=far", &[]), "far:5432/d as me");
    assert_eq!(password(&resolve("service=prod", &[]).unwrap()), Some("hush hush"));

    let error = |text: &str, env: &[(&str, &str)]| resolve(text, env).unwrap_err().to_string();
    let absent = error("service=nowhere", &[]);
    assert_eq!(
        absent,
        format!(
            "service \"nowhere\" is not in any of the service files: {}, {system}/pg_service.conf",
            own.display()
        )
    );
    let spaced = error("service=first", &[]);
    assert_eq!(spaced, format!("{}, line 4: no space is permitted before the \"=\"", own.display()));
    let other = home.path().join("other");
    for (text, problem) in [
        ("[s]\nhost", "line 2: a setting is key=value"),
        ("[s]\nservice=t", "line 2: a service cannot name another one"),
        ("[s]\nzebra=1", "line 2: unknown setting"),
        ("[s]\nprot=1", "line 2: unknown setting \"prot\": did you mean \"port\"?"),
        (
            "[s]\nldap://dir/x",
            "line 2: services from an LDAP server are not supported: write the settings into the file",
        ),
    ] {
        std::fs::write(&other, text).unwrap();
        let error = error("service=s", &[("PGSERVICEFILE", &other.display().to_string())]);
        assert_eq!(error, format!("{}, {problem}", other.display()));
    }
    std::fs::write(&other, "[s]\nport=zebra").unwrap();
    assert_eq!(
        error(&format!("service=s servicefile={}", other.display()), &[]),
        format!(
            "port is \"zebra\" (from service \"s\" in {}): expected a number from 1 to 65535",
            other.display()
        )
    );
}

proptest::proptest! {
    /// Any input is accepted or refused, and a password is not repeated.
    #[test]
    fn any_string_is_taken(text in "(postgres(ql)?://|host=|)[a-z%@:/?&= \\\\'\\[\\]#\\x00-\\x7f\u{e4}]{0,60}") {
        if let Ok(info) = target(&text) {
            let again = target(&info.to_key_value()).unwrap();
            proptest::prop_assert_eq!(format!("{info:?}"), format!("{again:?}"));
        }
    }

    #[test]
    fn any_service_file_is_taken(lines in "([a-z=\\[\\] #\\r\\t]{0,12}\n){0,8}") {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".pg_service.conf"), format!("{lines}[s]\nhost=h\n{lines}")).unwrap();
        let given = Given { target: Some("service=s"), home: Some(home.path().to_owned()), ..Given::default() };
        if let Err(error) = resolve(given) {
            let text = error.to_string();
            proptest::prop_assert!(!text.contains('\n'), "{}", text);
        }
    }
}
