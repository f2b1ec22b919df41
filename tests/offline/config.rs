//! The config file: valid files, and the report for each error.

use std::path::Path;
use std::time::Duration;

use locktop::app::line::Tone;
use locktop::config::{Config, DEFAULT_TEXT, locate};
use locktop::model::lock_key::LockKey;
use locktop::ui::theme::{BaseTheme, Color};

fn read(kind: &str, name: &str) -> Result<Config, String> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(kind).join(name).with_extension("toml");
    let text = std::fs::read_to_string(path).unwrap();
    Config::parse(&text, Path::new("config.toml")).map_err(|error| error.to_string())
}

macro_rules! invalid {
    ($($name:ident: $expected:expr;)*) => { $(
        #[test]
        fn $name() {
            assert_eq!(read("invalid_configs", stringify!($name)).unwrap_err(), $expected);
        }
    )* };
}

invalid! {
    syntax: "config.toml:2:14: not valid TOML: unclosed table, expected `]`";
    unknown_section: "config.toml:1:2: unknown key \"tresholds\": did you mean \"thresholds\"?";
    unknown_threshold: "config.toml:2:1: unknown key \"wiat\" in [thresholds]: did you mean \"wait\"?";
    unknown_far_off: "config.toml:4:1: unknown key \"zebra\" in [[lock_names]]: expected one of key, name, database";
    server_load_no_share: "config.toml:1:15: server_load is the number 2: expected a share of one core above 0 and up to 1, such as 0.02";
    notify_unknown: "config.toml:1:19: notify is \"flash\": expected a list of \"bell\", \"title\", \"osc9\", \"osc777\", such as [\"bell\"]";
    refresh_too_short: "config.toml:1:11: refresh is \"10ms\": expected a duration from \"0.1s\" to \"60s\", such as \"1s\"";
    refresh_no_string: "config.toml:1:11: refresh is the number 1: expected a duration from \"0.1s\" to \"60s\", such as \"1s\"";
    threshold_no_duration: "config.toml:2:8: wait is \"a while\": expected a duration such as \"30s\", \"1m\" or \"2h\"";
    threshold_no_count: "config.toml:2:11: blocked is the number 0: expected a whole number from 1";
    threshold_no_share: "config.toml:2:15: connections is the number 90: expected a share of max_connections from 0.0 to 1.0";
    check_exclude_no_list: "config.toml:2:11: exclude is \"leases\": expected a list of sections, such as [\"rate_limits\", \"adapters River\"]";
    history_no_duration: "config.toml:2:10: length is \"a while\": expected a duration up to \"24h\", such as \"15m\"; \"0s\" keeps nothing";
    history_no_memory: "config.toml:2:10: memory is the number 64: expected an amount up to \"4GB\", such as \"64MB\"; \"0MB\" keeps nothing";
    target_without_conninfo: "config.toml:1:10: [targets.prod] has no conninfo: expected conninfo = \"host=… dbname=…\"";
    target_bad_conninfo: "config.toml:2:12: unknown setting \"hots\" in the connection string: did you mean \"host\"?";
    target_no_table: "config.toml:2:8: targets.prod is not a table: expected [targets.prod] with conninfo = \"…\"";
    redis_no_table: "config.toml:1:9: redis is not a table: expected [redis] with a list of URLs, urls = [\"redis://host\"]";
    redis_no_urls: "config.toml:1:1: [redis] has no servers: expected a list of URLs, urls = [\"redis://host\"]";
    redis_urls_no_list: "config.toml:2:8: urls is not a list: expected a list of URLs, urls = [\"redis://host\"]";
    target_name: "config.toml:1:10: the name of a target has no \"=\" and no \"://\" in it, and is not empty";
    read_only_no_boolean: "config.toml:3:13: read_only is \"yes\": expected true or false";
    lock_key_too_long: "config.toml:2:7: key is a list: expected a 64-bit number or two 32-bit numbers: key = 815 or key = [1, 100]";
    lock_key_too_large: "config.toml:2:7: key is a list: expected a 64-bit number or two 32-bit numbers: key = 815 or key = [1, 100]";
    lock_name_missing: "config.toml:3:1: [[lock_names]] needs a key and a name: key = 815 or key = [1, 100], name = \"…\"";
    lock_name_twice: "config.toml:5:1: key 1 already has a name";
    lock_names_single: "config.toml:1:1: lock_names is a table: expected a list of tables, [[lock_names]]";
    expected_unknown_key: "config.toml:2:1: unknown key \"aplication\" in [[expected]]: did you mean \"application\"?";
    expected_without_condition: "config.toml:1:1: [[expected]] matches every blocker: name at least one of application, user, database, lock or statement";
    expected_no_string: "config.toml:2:8: user is the number 5: expected the name of a role in quotes";
    expected_statement_empty: "config.toml:2:13: statement is \"\": expected a part of a statement in quotes";
    expected_no_duration: "config.toml:3:16: longest_wait is \"ages\": expected a duration such as \"30m\" or \"2h\"";
    expected_only_a_time: "config.toml:1:1: [[expected]] matches every blocker: name at least one of application, user, database, lock or statement";
    expected_single: "config.toml:1:1: expected is a table: expected a list of tables, [[expected]]";
    query_empty: "config.toml:2:7: sql is \"\": expected a query in quotes: \"select key, name from …\"";
    unknown_table: "config.toml:2:1: unknown key \"task_queues\" in [tables]: did you mean \"task_queue\"?";
    unknown_action: "config.toml:2:1: unknown action \"terminat\" in [keys]: did you mean \"terminate\"?";
    bad_key: "config.toml:2:19: terminate is \"hyper-x\": expected one character (K), a name (esc, enter, space, pgup, f1), or either after ctrl- or alt-";
    key_no_string: "config.toml:2:13: terminate is the number 5: expected a key in quotes or a list of keys, such as \"K\" or [\"q\", \"ctrl-c\"]";
    theme_base: "config.toml:2:8: base is \"drak\": expected \"dark\", \"light\", \"mono\" or \"ansi\"";
    theme_unknown_meaning: "config.toml:2:1: unknown key \"critcal\" in [theme]: did you mean \"critical\"?";
    theme_bad_colour: "config.toml:2:12: critical is \"reddish\": expected a name (red, light-blue), a number (0 to 255) or #rrggbb";
    several: "config.toml:1:11: refresh is \"fast\": expected a duration from \"0.1s\" to \"60s\", such as \"1s\"\n\
              config.toml:4:8: wait is the number 30: expected a duration such as \"30s\", \"1m\" or \"2h\"\n\
              config.toml:5:1: unknown key \"blöcked\" in [thresholds]: did you mean \"blocked\"?\n\
              config.toml:8:8: base is \"pink\": expected \"dark\", \"light\", \"mono\" or \"ansi\"";
}

#[cfg(feature = "redis")]
invalid! {
    redis_bad_url: "config.toml:2:24: not a Redis URL (redis url did not parse): write redis://[user[:password]@]host[:port][/database], rediss:// for TLS, or redis+unix:///path/to/socket (in a password write %3A for \":\", %2F for \"/\", %40 for \"@\")";
    redis_twice_in_sets: "config.toml:2:27: one:6379 is named twice";
    redis_set_no_text: "config.toml:2:27: a server is not a string: expected a list of URLs, urls = [\"redis://host\"]";
    redis_twice: "config.toml:4:24: one:6379 is named twice";
}

#[test]
fn hostile() {
    let error = read("invalid_configs", "hostile").unwrap_err();
    assert!(error.starts_with("config.toml:1:1: unknown key \""), "{error:?}");
}

#[test]
fn every_file_has_its_test() {
    let source = include_str!("config.rs");
    for kind in ["valid_configs", "invalid_configs"] {
        for entry in
            std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(kind)).unwrap()
        {
            let name = entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned();
            let tested =
                [format!("    {name}: "), format!("fn {name}()")].iter().any(|form| source.contains(form));
            assert!(tested, "{kind}/{name}.toml has no test");
        }
    }
}

#[test]
fn empty() {
    assert_eq!(read("valid_configs", "empty"), Ok(Config::default()));
}

#[test]
fn the_printed_default_is_the_default() {
    let parsed = Config::parse(DEFAULT_TEXT, Path::new("default")).unwrap();
    assert_eq!(parsed, Config::default());
}

#[cfg(feature = "redis")]
#[test]
fn the_examples_in_the_printed_default_are_valid() {
    // Every commented line that looks like TOML, without its comment character.
    let is_example = |line: &str| {
        let line = line.trim_start_matches("# ");
        line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '))
    };
    let live: String = DEFAULT_TEXT
        .lines()
        .map(|line| if line.starts_with("# ") && is_example(line) { &line[2..] } else { line })
        .fold(String::new(), |text, line| text + line + "\n");
    let config = Config::parse(&live, Path::new("examples")).unwrap();
    assert_eq!(config.targets.len(), 1);
    assert_eq!(config.tables.len(), 8);
    assert_eq!(config.lock_names.len(), 2);
    assert_eq!(config.lock_name_queries.len(), 1);
    assert_eq!(config.thresholds.expected.len(), 1);
    assert_eq!(config.keys.len(), 2);
    assert_eq!(config.theme.colours.len(), 1);
}

#[cfg(feature = "redis")]
#[test]
fn everything() {
    let config = read("valid_configs", "everything").unwrap();
    assert_eq!(config.refresh, Duration::from_millis(500));
    assert_eq!((format!("{}", config.server_load), config.remember), ("0.05".to_owned(), false));
    assert!(config.notify.bell && config.notify.title && config.notify.osc9 && config.notify.osc777);
    let prod = &config.targets["prod"];
    assert_eq!((prod.read_only, prod.refresh), (true, Some(Duration::from_secs(2))));
    assert!(config.targets.contains_key("生产"));
    assert!(!format!("{config:?}").contains("hush"));
    let own = prod.redis.as_ref().unwrap();
    assert_eq!(
        (own.sets.sizes(), own.sets.servers().nth(1).unwrap().to_string(), own.patterns.join(" ")),
        (vec![2], "two:7000/3".into(), String::new())
    );
    assert_eq!(
        (config.redis.sets.sizes(), config.redis.patterns.join(" ")),
        (vec![1, 2, 1], "mutex:*".to_owned())
    );
    assert_eq!(config.tables["scheduled_tasks"], "jobs.scheduled_tasks");
    let limits = &config.thresholds;
    let durations = [
        limits.wait,
        limits.idle_in_transaction,
        limits.idle_lock,
        limits.task_timeout,
        limits.orphan_grace,
        limits.task_overdue,
        limits.queue_pending,
        limits.id_ahead,
    ];
    assert_eq!(
        durations.map(|seconds| format!("{seconds}")),
        ["90", "120", "3600", "2700", "10", "120", "1800", "5"]
    );
    assert_eq!([limits.blocked, limits.convoy, limits.pile_up], [20, 6, 7]);
    assert_eq!(format!("{}", limits.connections), "0.75");
    let names: Vec<_> =
        config.lock_names.iter().map(|n| (n.key, n.name.as_str(), n.database.as_deref())).collect();
    assert_eq!(
        names,
        [(LockKey::Bigint(-815), "billing close", None), (LockKey::Pair(1, -100), "import", Some("app"))]
    );
    assert_eq!(config.lock_name_queries[0].database.as_deref(), Some("app"));
    let expected: Vec<_> = config
        .thresholds
        .expected
        .iter()
        .map(|entry| (entry.user.as_deref(), entry.lock.as_deref(), entry.reason.as_deref()))
        .collect();
    assert_eq!(expected, [(Some("ci"), Some("accounts"), Some("nightly migration")), (None, None, None)]);
    assert_eq!(config.thresholds.expected[1].application.as_deref(), Some("pg_dump"));
    let keys: Vec<_> = config
        .keys
        .iter()
        .map(|binding| {
            (binding.action.name, binding.keys.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>())
        })
        .collect();
    let of = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(keys, [("mark", of(&[])), ("quit", of(&["q", "Ctrl-C"])), ("terminate", of(&["x"]))]);
    assert_eq!(config.theme.base, BaseTheme::Light);
    assert_eq!(config.theme.colours, [(Some(Tone::Critical), Color::Rgb(0xff, 0x5f, 0x5f))]);
    let later = config.mistake(config.keys[1].keys[1].1, "ctrl-c is bound twice").to_string();
    assert!(later.ends_with(":64:14: ctrl-c is bound twice"), "{later}");
}

/// The file that tests every setting of 0.1.0 has the same meaning in this version.
#[cfg(feature = "redis")]
#[test]
fn release_0_1_0() {
    let mut new = read("valid_configs", "everything").unwrap();
    assert_eq!(std::mem::take(&mut new.check_exclude), ["rate_limits", "adapters River"], "new since then");
    assert_eq!(read("valid_configs", "release_0_1_0").unwrap(), new);
}

#[test]
fn dotted_keys() {
    let config = read("valid_configs", "dotted_keys").unwrap();
    assert_eq!(format!("{}", config.thresholds.wait), "5");
    assert_eq!(config.targets["a"].conninfo, "app");
    assert_eq!(config.lock_names[0].key, LockKey::Bigint(0x4C54));
    assert_eq!(config.theme.base, BaseTheme::Mono);
}

#[test]
fn the_config_file_is_found_by_xdg_env_variable_or_flag() {
    let directory = tempfile::tempdir().unwrap();
    let xdg = directory.path().display().to_string();
    let env = |name: &str| (name == "XDG_CONFIG_HOME").then(|| xdg.clone());
    let location = locate(None, &env).unwrap();
    assert_eq!(location.path, directory.path().join("locktop/config.toml"));
    assert_eq!(Config::load(&location).unwrap(), Config::default(), "it was not named: it may be absent");
    std::fs::create_dir(directory.path().join("locktop")).unwrap();
    std::fs::write(&location.path, "refresh = '3s'").unwrap();
    assert_eq!(Config::load(&location).unwrap().refresh, Duration::from_secs(3));

    let env = |name: &str| (name == "LOCKTOP_CONFIG").then(|| format!("{xdg}/none.toml"));
    let error = Config::load(&locate(None, &env).unwrap()).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("cannot read the config file {xdg}/none.toml: No such file or directory (os error 2)")
    );
    let flag = locate(Some("other.toml".into()), &env).unwrap();
    assert_eq!((flag.path.to_str(), flag.named), (Some("other.toml"), true));
}
