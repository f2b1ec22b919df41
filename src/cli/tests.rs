use std::path::Path;
use std::time::Duration;

use clap::CommandFactory;

use super::{Cli, CliSettings, PasswordPrompt, Screen, check_config, completions, man};
use crate::config::Location;
use crate::ui::theme::BaseTheme;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    super::parse(std::iter::once("locktop").chain(line.split_whitespace()).map(Into::into))
}

/// The settings of a command line with this config, in an environment without PG variables.
fn settings(line: &str, config: &str) -> Result<CliSettings, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    std::fs::write(&path, config).unwrap();
    let env = |name: &str| (name == "LOCKTOP_CONFIG").then(|| path.display().to_string());
    let cli = parse(line).map_err(|error| error.to_string())?;
    cli.settings(&env).map_err(|error| error.to_string())
}

fn place(line: &str, config: &str) -> String {
    settings(line, config).unwrap().conninfo.unwrap().describe()
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn connection_options_are_psqls_before_and_after_a_subcommand() {
    for line in [
        "-h db -p 99 -U ops -d app",
        "--host db --port 99 --username ops --dbname app",
        "-h db -p 99 -U ops app",
        "snapshot -h db -p 99 -U ops -d app",
        "snapshot -h db -p 99 -U ops app",
        "-h db snapshot -p 99 -U ops app",
        "-h db schema -p 99 install -U ops --schema jobs app",
        "app -h db -p 99 -U ops snapshot --format json",
        "postgres://ops@db:99/app",
        "demo --url postgres://ops@db:99/app",
        "-d postgres://ops@db:99/app",
    ] {
        assert_eq!(place(line, ""), "db:99/app as ops", "{line}");
    }
}

#[test]
fn help_is_not_h() {
    for line in ["--help", "-?", "snapshot --help", "demo -?"] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 0, "{line}");
    }
    let help = parse("--help").unwrap_err().to_string();
    for part in
        ["-h, --host <HOST>", "-?, --help", "Examples:", "Exit status: 0 done, 1 failed, 2 wrong usage."]
    {
        assert!(help.contains(part), "{part} in {help}");
    }
    assert_eq!(
        parse("--version").unwrap_err().to_string(),
        concat!("locktop ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert_eq!(parse("-V").unwrap_err().exit_code(), 0);
}

#[test]
fn h_without_a_host_points_to_the_help() {
    for line in ["-h", "snapshot -h", "--host"] {
        let error = parse(line).unwrap_err();
        let words = error.to_string();
        assert!(
            words.contains("-h is the host, as in psql, and takes one: -h HOST. Help is --help or -?"),
            "{words}"
        );
        assert_eq!(error.exit_code(), 2, "{line}");
    }
    assert!(parse("-h --port 5").is_err());
}

#[test]
fn help_names_the_options_that_a_command_uses() {
    for (line, has, lacks) in [
        ("--help", vec!["--host", "--redis", "--trust-owner", "--config"], vec![]),
        ("snapshot --help", vec!["--host", "--redis <URL>", "--trust-owner", "--config"], vec![]),
        ("recover --help", vec!["--host", "--trust-owner", "--config"], vec!["--redis"]),
        ("worker --help", vec!["--host"], vec!["--redis"]),
        ("schema install --help", vec!["--host"], vec!["--redis"]),
        ("schema print --help", vec!["--schema"], vec!["--redis", "--host", "--trust-owner"]),
        ("completions --help", vec!["SHELL"], vec!["--redis", "--host", "--trust-owner"]),
        ("man --help", vec![], vec!["--redis", "--host"]),
        ("config check --help", vec!["--config"], vec!["--redis", "--host"]),
        ("demo --help", vec!["--url"], vec!["--redis <", "--host", "--trust-owner"]),
    ] {
        let help = parse(line).unwrap_err().to_string();
        assert!(has.iter().all(|option| help.contains(option)), "{line}: {help}");
        assert!(!lacks.iter().any(|option| help.contains(option)), "{line}: {help}");
    }
    assert!(parse("recover --redis redis://a app").is_ok(), "what is not shown is taken all the same");
}

#[test]
fn a_word_that_is_nearly_a_command_is_asked_about_before_anything_connects() {
    let error = |line: &str, config: &str| settings(line, config).unwrap_err();
    let words = "no command \"recvoer\": did you mean recover? (-d recvoer is the database of that name)";
    assert_eq!(error("recvoer", ""), words);
    assert_eq!(error("-h db recvoer", ""), words);
    let config = "[targets.recvoer]\nconninfo = \"host=db port=99 user=ops dbname=app\"\n";
    assert_eq!(place("recvoer", config), "db:99/app as ops", "a name of the config");
    for line in ["-h db -p 99 -U ops -d recvoer", "-h db -p 99 -U ops snapshot recvoer"] {
        assert_eq!(place(line, ""), "db:99/recvoer as ops", "{line}");
    }
    assert_eq!(place("-h db -p 99 -U ops app", ""), "db:99/app as ops");
}

#[test]
fn bad_flags_exit_with_2() {
    for line in [
        "--nonsense",
        "-h",
        "--refresh fast",
        "--refresh 0.01s",
        "--refresh 61s",
        "--screen kitchen",
        "--theme pink",
        "snapshot --format xml",
        "completions tcsh",
        "demo --scenario unheard-of",
        "demo --url x --pg-bin y",
        "demo --workers 0",
        "demo --tasks 10001",
        "demo --time-scale 0",
        "demo --time-scale nan",
        "demo --seed -1",
        "demo --duration 20s",
        "demo --format json",
        "demo --until kills=5",
        "demo --headless --duration 0s",
        "demo --headless --until kills",
        "demo --headless --until kills=many",
        "demo --headless --until murders=5",
        "demo-worker",
        "config",
        "schema",
        "worker",
        "worker --id=",
        "worker --id a\u{7}b",
        "worker --id w --concurrency 0",
        "worker --id w --concurrency 1001",
        "worker --id w --heartbeat 11s",
        "worker --id w --grace soon",
        "worker --id w --observe-locks=0s",
        "worker --id w --observe-locks=2h",
        "worker --id w --observe-locks 5s db",
        "worker --id w --only leases",
        "worker --id w --types",
        "worker --id w --types sql,",
        "worker --id w --log-format xml",
        "worker --id w --schema pg_jobs",
        "worker --id w one two",
        "schema print app",
        "schema drop --schema pg_jobs",
        "schema purge --keep soon",
        "schema purge --only leases",
        "one two",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn a_usage_error_repeats_no_password() {
    for line in
        ["host=db password=hush", "x snapshot y postgres://u:hush@h", "--password=hush", "db --password=hush"]
    {
        let error = parse(line).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(!error.to_string().contains("hush"), "{line}: {error}");
    }
}

#[test]
fn a_target_is_looked_up_in_the_config() {
    let config = "refresh = '3s'\n[targets.prod]\nconninfo = 'host=db dbname=app user=ops'\nread_only = true\nrefresh = '5s'";
    assert_eq!(place("prod", config), "db:5432/app as ops");
    assert_eq!(place("prod -d other -h standby", config), "standby:5432/other as ops");
    assert_eq!(place("snapshot prod", config), "db:5432/app as ops");
    assert_eq!(place("host=prod -U u", config), "prod:5432/u as u");
    assert_eq!(place("prod2 -U u", config), "[local]:5432/prod2 as u");

    let prod = settings("prod", config).unwrap();
    assert_eq!((prod.target.as_deref(), prod.read_only), (Some("prod"), true));
    assert_eq!(prod.refresh, Duration::from_secs(5));
    assert_eq!(settings("prod --refresh 0.5", config).unwrap().refresh, Duration::from_millis(500));
    let other = settings("elsewhere", config).unwrap();
    assert_eq!((other.target, other.read_only, other.refresh), (None, false, Duration::from_secs(3)));
}

#[test]
fn a_password_on_the_command_line_is_seen() {
    let config = "[targets.prod]\nconninfo = 'postgres://u:hush@h'";
    for (line, seen) in [
        ("postgres://u:hush@h", true),
        ("-d postgres://u:hush@h", true),
        ("snapshot sslpassword=x", true),
        ("postgres://u@h", false),
        ("prod", false),
        ("app", false),
    ] {
        let settings = settings(line, config).unwrap();
        assert_eq!(parse(line).unwrap().shows_password(&settings.config), seen, "{line}");
    }
}

#[test]
fn conflicting_or_invalid_connection_arguments_are_rejected() {
    for (line, error) in [
        (
            "app -d other",
            "two databases, \"app\" and -d \"other\": give one (the config has no target \"app\")",
        ),
        ("app snapshot other", "two targets, \"app\" and \"other\": give one"),
        ("postgres://u:hush@h snapshot x", "two targets, \"…\" and \"x\": give one"),
        ("demo -h db", "demo starts its own server: use --url to name another"),
        ("-p x", "port is \"x\" (from -p): expected a number from 1 to 65535"),
        ("gssencmode=require", "gssencmode=require (from the connection string) is not supported: remove it"),
    ] {
        assert_eq!(settings(line, "").unwrap_err(), error, "{line}");
    }
}

#[test]
fn the_view_is_set_before_or_after_demo() {
    let demo = settings("--ascii demo --theme mono --screen chains --mouse", "").unwrap();
    assert!(demo.conninfo.is_none());
    assert_eq!((demo.ascii, demo.mouse, demo.screen), (true, true, Some(Screen::Chains)));
    assert_eq!(demo.theme.base, BaseTheme::Mono);
    let plain = settings("", "[theme]\nbase = 'light'").unwrap();
    assert_eq!((plain.ascii, plain.mouse, plain.screen), (false, false, None));
    assert_eq!(plain.theme.base, BaseTheme::Light);
    assert_eq!(settings("--theme ansi", "[theme]\nbase = 'light'").unwrap().theme.base, BaseTheme::Ansi);
}

#[test]
fn prompts_as_psql() {
    for (line, prompt) in [
        ("", PasswordPrompt::IfNeeded),
        ("-w", PasswordPrompt::Never),
        ("-W", PasswordPrompt::Always),
        ("-w -W", PasswordPrompt::Always),
        ("-W -w", PasswordPrompt::Never),
        ("snapshot -w", PasswordPrompt::Never),
    ] {
        assert_eq!(settings(line, "").unwrap().prompt, prompt, "{line}");
    }
}

#[test]
fn a_bad_config_stops_everything() {
    let error = settings("", "refresh = 'fast'").unwrap_err();
    assert!(error.ends_with(
        "config.toml:1:11: refresh is \"fast\": expected a duration from \"0.1s\" to \"60s\", such as \"1s\""
    ));
}

#[test]
fn printed_things() {
    let printed = |print: &dyn Fn(&mut dyn std::io::Write) -> std::io::Result<()>| {
        let mut out = Vec::new();
        print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let script = printed(&|out| completions(clap_complete::Shell::Bash, out));
    assert!(script.contains("_locktop()") && script.contains("--no-password"));
    let page = printed(&|out| man(out));
    assert!(
        page.contains(".TH locktop 1") && page.contains("pg\\-bin") && page.contains("\\-\\-username"),
        "{page}"
    );
    assert!(crate::config::DEFAULT_TEXT.contains("refresh = \"1s\""));
}

#[test]
fn config_check() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    let absent = Location { path: directory.path().join("none.toml"), named: false };
    let check = |file: Option<&Path>| {
        check_config(file.map(Path::to_owned), &absent, &|_| Ok(vec!["a note".to_owned()]))
    };
    assert_eq!(
        check(None).unwrap(),
        format!("{}: does not exist, the defaults apply\na note", absent.path.display())
    );
    std::fs::write(&path, "refresh = '2s'").unwrap();
    assert_eq!(check(Some(&path)).unwrap(), format!("{}: no mistakes\na note", path.display()));
    std::fs::write(&path, "refresh = 2").unwrap();
    assert!(check(Some(&path)).unwrap_err().to_string().contains(":1:11: refresh is the number 2"));
}

#[cfg(feature = "redis")]
#[test]
fn redis_servers_are_taken_from_command_line_target_or_config() {
    let config = "[redis]\nurls = [\"redis://everywhere\"]\npattern = \"mutex:*\"\n\
                  [targets.prod]\nconninfo = \"dbname=app\"\n[targets.prod.redis]\nurls = [\"redis://a\", \"redis://b\"]\n";
    let found = |line: &str, config: &str| {
        let redis = settings(line, config).unwrap().redis;
        let mut urls = redis.sets.servers().map(ToString::to_string);
        let sets: Vec<_> = redis
            .sets
            .sizes()
            .iter()
            .map(|size| urls.by_ref().take(*size).collect::<Vec<_>>().join(","))
            .collect();
        format!("{} {}", sets.join(" | "), redis.patterns.join(" "))
    };
    assert_eq!(found("app", ""), " ");
    assert_eq!(found("app", config), "everywhere:6379 mutex:*");
    assert_eq!(found("prod", config), "a:6379,b:6379 ");
    assert_eq!(found("snapshot prod --redis redis://c --redis redis://d/1", config), "c:6379,d:6379/1 ");
    let sets = "snapshot app --redis redis://a,redis://b,redis://c --redis redis://d --redis redis://e,redis://f --redis redis://g";
    assert_eq!(found(sets, config), "d:6379,g:6379 | a:6379,b:6379,c:6379 | e:6379,f:6379 mutex:*");
    assert_eq!(found("--redis-pattern l:* app", config), "everywhere:6379 l:*");
    assert_eq!(found("--redis-pattern l:* --redis-pattern m:* app", config), "everywhere:6379 l:* m:*");
    assert_eq!(found("demo --redis redis://c", ""), "c:6379 ");
}

#[test]
fn a_redis_url_that_is_wrong_is_not_repeated() {
    for line in [
        "app --redis redis://:s3cret@",
        "app --redis redis://a --redis redis://:s3cret@a",
        "app --redis redis://a,redis://b --redis redis://:s3cret@b",
        "app --redis redis://a,redis://:s3cret@",
        "app --redis-pattern x",
    ] {
        let error = settings(line, "").unwrap_err();
        assert!(error.starts_with("--redis"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
