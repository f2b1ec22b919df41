use std::path::Path;

use super::*;
use crate::config::Config;
use crate::model::adapter::{ActionKind, ActionValue, Job, JobState, Part, Proof};

const LEAST: &str = r#"
format = 1
name = "small"
title = "Small"
licence = "MIT"
seen = "1"
[detect]
tables.jobs = { name = "small_jobs", columns = { id = "int", state = "enum", due = "time" } }
[settings]
rescue_after = "1h"
word = "a word"
[[jobs.running]]
sql = "SELECT j.id::text AS id, 'running' AS state FROM {jobs} j LIMIT {limit}"
"#;

fn parse(text: &str) -> Result<Adapter, String> {
    parse_adapter(text, Path::new("small.toml")).map_err(|error| error.to_string())
}

#[test]
fn those_that_are_compiled_in_have_no_mistakes() {
    for adapter in built_in().unwrap() {
        let name = &adapter.name;
        assert!(adapter.is_built_in && !adapter.tables.is_empty(), "{name}");
        let file = BUILT_IN.iter().find(|(file, _)| *file == &**name);
        assert!(file.is_some(), "{name} is in a file of that name");
    }
    let good_job = built_in().unwrap().into_iter().find(|one| &*one.name == "good_job").unwrap();
    assert_eq!((&*good_job.name, &*good_job.title), ("good_job", "GoodJob"));
    assert_eq!(good_job.queries.iter().filter(|query| query.part == Part::Running).count(), 3);
    assert_eq!(good_job.evidence.beat_seconds, Some(300.0));
}

#[test]
fn advice_has_the_words_of_a_job_in_it_unless_they_are_none() {
    let adapters = built_in().unwrap();
    let job =
        |id: &str, queue: Option<&str>| Job { id: id.into(), queue: queue.map(Into::into), ..Job::default() };
    for (name, state, job, expected) in [
        ("good_job", JobState::Failed, job("7", None), Some("GoodJob::Job.find('7').retry_job")),
        ("good_job", JobState::Orphan, job("7", None), Some("GoodJob::Process.cleanup")),
        ("good_job", JobState::Running, job("7", None), None),
        ("good_job", JobState::Failed, job("7').destroy #", None), None),
        ("good_job", JobState::Failed, job("", None), None),
        ("pg_boss", JobState::Lost, job("7-a", Some("mail/de")), Some("await boss.fail('mail/de', '7-a')")),
        ("pg_boss", JobState::Lost, job("7-a", Some("a\nb")), None),
        ("pg_boss", JobState::Lost, job("7-a", None), None),
    ] {
        let adapter = adapters.iter().find(|one| &*one.name == name).unwrap();
        assert_eq!(adapter.advice(state, &job).as_deref(), expected, "{name} {job:?}");
    }
}

#[test]
fn the_least_is_enough() {
    let adapter = parse(LEAST).unwrap();
    assert_eq!((&*adapter.name, adapter.queries.len(), adapter.tables.len()), ("small", 1, 1));
    assert_eq!(adapter.setting("rescue_after").unwrap().seconds, Some(3600.0));
    assert_eq!(adapter.setting("word").unwrap().seconds, None);
}

#[test]
fn each_mistake_is_reported_with_its_place_and_a_hint() {
    let bad = |old: &str, new: &str| parse(&LEAST.replacen(old, new, 1)).unwrap_err();
    for (old, new, expected) in [
        ("format = 1", "format = 2", "small.toml:2:10: format is the number 2: expected 1, the only one"),
        ("format = 1\n", "", "small.toml:1:1: it has no format: expected format = 1"),
        ("title = \"Small\"", "titel = \"Small\"", "unknown key \"titel\": did you mean \"title\"?"),
        ("\"small\"", "\"Sm all\"", "name is \"Sm all\": expected letters a to z, digits and _"),
        ("\"MIT\"", "\"M\\u001bIT\"", "expected one line of at most 500 characters"),
        ("\"int\"", "\"integer\"", "id is \"integer\": expected one of \"int\", \"text\""),
        ("name = \"small_jobs\"", "nam = \"small_jobs\"", "unknown key \"nam\" in [detect.tables.jobs]"),
        (
            "name = \"small_jobs\"",
            "name = \"a\", suffix = \"b\"",
            "has exactly one of name, suffix and begins",
        ),
        ("name = \"small_jobs\"", "begins = \"\"", "begins is \"\": expected the name of a table, or how it"),
        (
            "{ name = \"small_jobs\"",
            "{ optional = true, begins = \"j_\"",
            "one of them must not be optional, and a table with a name must not be optional either",
        ),
        ("{ id = \"int\", state = \"enum\", due = \"time\" }", "{ id = \"int\" }", "name at least 3"),
        (
            "[detect]",
            "[detect]\ntables.others = { suffix = \"_x\", columns = { id = \"int\" } }",
            "either all tables have a name, or all have a suffix",
        ),
        ("[detect]", "[detect]\nwhere = 1", "unknown key \"where\" in [detect]: expected one of tables"),
        ("tables.jobs", "tables.\"jo bs\"", "the key of a table has letters"),
        ("[settings]", "[settings]\nschema = \"x\"", "is none of schema"),
        (
            "[[jobs.running]]",
            "[[jobs.runing]]",
            "unknown key \"runing\" in [jobs]: did you mean \"running\"?",
        ),
        ("[[jobs.running]]", "[jobs.running]", "expected a list of tables, [[running]]"),
        ("sql =", "needs = [\"jobs\"]\nsql =", "expected a list such as [\"TABLE.column\""),
        ("sql =", "needs = [\"job.id\"]\nsql =", "needs names the table \"job\": expected one of jobs"),
        ("sql =", "sq =", "[[jobs.running]] has no query"),
        ("{jobs} j", "{job} j", "sql is no query of an adapter: {job} is not a known placeholder"),
        ("{jobs} j", "public.secret j", "it names public.secret"),
        ("LIMIT {limit}", "; DROP TABLE x", "semicolon"),
        (
            "[[jobs.running]]",
            "[evidence]\nkey = \"maybe\"\n[[jobs.running]]",
            "key is \"maybe\": expected \"while running\" or \"never\"",
        ),
        (
            "[[jobs.running]]",
            "[evidence]\nbeat_limit = \"word\"\n[[jobs.running]]",
            "beat_limit is \"word\": expected a duration",
        ),
        (
            "[[jobs.running]]",
            "[comes_back]\nluck = \"x\"\n[[jobs.running]]",
            "unknown key \"luck\" in [comes_back]",
        ),
        (
            "[[jobs.running]]",
            "[advise]\nlots = \"x\"\n[[jobs.running]]",
            "unknown key \"lots\" in [advise]: did you mean",
        ),
        ("[[jobs.running]]", "[[version]]\ntext = \"{0}\"\n[[jobs.running]]", "expected sql = "),
        (
            "[[jobs.running]]",
            "[actions.recover]\nsql = \"x\"\n[[jobs.running]]",
            "[actions.recover] has no proof",
        ),
        (
            "[[jobs.running]]",
            "[actions.discard]\nsql = \"x\"\n[[jobs.running]]",
            "unknown key \"discard\" in [actions]",
        ),
        (
            "[[jobs.running]]\nsql",
            "[x]\nsql",
            "it has no part: expected one of [[workers]], [[jobs.running]]",
        ),
        ("[detect]", "[detect", "not valid TOML"),
    ] {
        let error = bad(old, new);
        assert!(error.contains(expected), "{new}: {error}");
        assert!(error.starts_with("small.toml:"), "{error}");
    }
    assert_eq!(bad("title = \"Small\"\nlicence", "x = 1\nlicense").lines().count(), 4, "all at once");
}

/// The minimal adapter with an action in which one text is replaced.
fn acting(old: &str, new: &str) -> Result<Adapter, String> {
    const ACTION: &str = r#"
[actions.recover]
proof = ["heartbeat", "absent"]
hold_key = true
writes = ["jobs"]
sql = "UPDATE {jobs} j SET state = 'ready' WHERE j.id = {id}::bigint AND j.due = {started_at} AND j.word = {worker}"
then = "it is ready again"
late = "its late finish ends the second run too"
[actions.unlock]
writes = ["jobs"]
sql = "WITH x AS (SELECT 1) UPDATE {jobs} j SET due = now() WHERE j.id = {id}::bigint AND j.due = {expires_at}"
then = "the next request gets it"
"#;
    parse(&format!("{LEAST}{}", ACTION.replacen(old, new, 1)))
}

#[test]
fn an_action_is_one_statement_that_names_the_row_and_its_run() {
    let adapter = acting("", "").unwrap();
    let action = adapter.action(ActionKind::Recover, 1).unwrap();
    assert_eq!(action.proofs, [Proof::Heartbeat, Proof::Absent]);
    assert!(action.holds_key && !adapter.allows_actions);
    assert!(action.sql.values().eq([ActionValue::Id, ActionValue::StartedAt, ActionValue::Worker]));
    assert!(adapter.action(ActionKind::Unlock, 1).is_some());
    for (old, new, expected) in [
        ("{id}::bigint AND ", "", "it does not have {id}: which row it is"),
        ("j.due = {started_at} AND ", "", "it has none of {started_at}, {attempt}: the next run"),
        (
            "{worker}",
            "{owner}",
            "{owner} is not a known placeholder: expected {id}, {worker}, {attempt}, {started_at}",
        ),
        ("{worker}", "{limit}", "{limit} is not a known placeholder"),
        (
            "UPDATE {jobs} j SET state = 'ready'",
            "DELETE FROM {jobs} j",
            "it does not begin with UPDATE or WITH",
        ),
        ("= {worker}\"", "= {worker} RETURNING 1\"", "it has the word RETURNING"),
        ("= {worker}\"", "= {worker}; DROP TABLE x\"", "semicolon"),
        ("{worker}\"", "pg_terminate_backend(1)\"", "it names pg_terminate_backend"),
        (
            "UPDATE {jobs} j SET",
            "UPDATE public.jobs j SET",
            "sql is no action of an adapter: it names public.jobs",
        ),
        (
            "WHERE j.id = {id}::bigint AND j.due = {s",
            "FROM {jobs} k, public.secret s WHERE j.id = {id}::bigint AND j.due = {s",
            "it names public.secret: only columns of the adapter's tables",
        ),
        ("[\"heartbeat\", \"absent\"]", "[\"luck\"]", "proof is \"luck\": expected a list of lock, session"),
        ("writes = [\"jobs\"]", "writes = [\"job\"]", "writes is \"job\": expected a list of jobs"),
        ("writes = [\"jobs\"]", "writes = []", "expected a list of jobs"),
        ("then = \"it is", "than = \"it is", "unknown key \"than\" in [actions.recover]"),
        ("hold_key = true", "hold_key = 1", "hold_key is the number 1: expected true or false"),
    ] {
        let error = acting(old, new).unwrap_err();
        assert!(error.contains(expected), "{new}: {error}");
    }
}

#[test]
fn no_adapter_text_causes_a_panic() {
    for (_, text) in BUILT_IN {
        let lines: Vec<&str> = text.lines().collect();
        for left_out in 0..lines.len() {
            let mut kept = lines.clone();
            kept.remove(left_out);
            let _ = parse(&kept.join("\n"));
        }
        for end in (0..text.len()).step_by(97).filter(|end| text.is_char_boundary(*end)) {
            let _ = parse(&text[..end]);
        }
    }
    let _ = parse(&"[".repeat(50_000));
    let _ = parse(&format!("a = {}", "[".repeat(50_000)));
    let _ = parse("\u{0}\u{feff}\u{202e} = \u{1b}");
}

fn config(text: &str) -> Config {
    Config::parse(text, Path::new("config.toml")).unwrap()
}

fn load(text: &str, files: &[(&str, &str)]) -> Result<Vec<Arc<Adapter>>, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("adapters")).unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join("adapters").join(name), text).unwrap();
    }
    let path = folder.path().join("config.toml");
    let named = |error: ConfigError| error.to_string().replace(&*folder.path().to_string_lossy(), "~");
    adapters(&config(text).adapters, Some(&path)).map_err(named)
}

fn names(adapters: &[Arc<Adapter>]) -> Vec<&str> {
    adapters.iter().map(|adapter| &*adapter.name).collect()
}

#[test]
fn a_user_adapter_is_added_or_replaces_a_built_in_one() {
    let river = LEAST.replace("\"small\"", "\"river\"");
    let found = load("", &[("small.toml", LEAST), ("mine.toml", &river), ("notes.txt", "no")]).unwrap();
    assert!(names(&found).contains(&"small") && names(&found).contains(&"good_job"));
    let river = found.iter().find(|adapter| &*adapter.name == "river").unwrap();
    assert!(!river.is_built_in && &*river.title == "Small");
    assert_eq!(names(&found).iter().filter(|name| **name == "river").count(), 1);
}

#[test]
fn the_config_switches_off_and_sets() {
    let found = load(
        "[adapters]\noff = [\"river\"]\n[adapters.small]\nschema = \"jobs\"\nrescue_after = \"30m\"\n",
        &[("small.toml", LEAST)],
    )
    .unwrap();
    assert!(!names(&found).contains(&"river"));
    let small = found.iter().find(|adapter| &*adapter.name == "small").unwrap();
    assert_eq!(small.schema.as_deref(), Some("jobs"));
    assert_eq!(small.setting("rescue_after").unwrap().seconds, Some(1800.0));
    assert_eq!(&*small.setting("word").unwrap().value, "a word");
    assert_eq!(names(&load("[adapters]\nenabled = false\n", &[("bad.toml", "x")]).unwrap()), [""; 0]);
}

#[test]
fn the_config_sets_the_zone_of_timestamps_without_one() {
    let of = |name: &str, zone: &str| {
        let found = load(&format!("[adapters.{name}]\ntime_zone = \"{zone}\"\n"), &[("small.toml", LEAST)]);
        found.map(|all| all.into_iter().find(|adapter| *adapter.name == *name).unwrap())
    };
    assert_eq!(of("small", "America/New_York").unwrap().time_zone.as_deref(), Some("America/New_York"));
    // Its own setting, for some of its timestamps.
    let own = of("jobrunr", "Europe/Berlin").unwrap();
    assert_eq!(
        (own.time_zone.as_deref(), &*own.setting("time_zone").unwrap().value),
        (None, "Europe/Berlin")
    );
    let error = of("small", "x'; SELECT 1").unwrap_err();
    assert!(
        error.contains("time_zone is \"x'; SELECT 1\": expected a zone such as America/New_York"),
        "{error}"
    );
}

#[test]
fn mistakes_of_all_files_are_reported_together() {
    let twice = [("a.toml", LEAST), ("b.toml", LEAST)];
    assert_eq!(
        load("", &twice).unwrap_err(),
        "~/adapters/b.toml:1:1: name is \"small\", as in ~/adapters/a.toml"
    );
    let bad = [("a.toml", "format = 1"), ("b.toml", "x = 1"), ("c.toml", "[")];
    let error = load("", &bad).unwrap_err();
    for file in ["a.toml:1:1: it has no name", "b.toml:1:1: unknown key \"x\"", "c.toml:1:"] {
        assert!(error.contains(&format!("~/adapters/{file}")), "{error}");
    }
    let large = format!("#{}", "x".repeat(300_000));
    assert!(load("", &[("a.toml", &large)]).unwrap_err().contains("more than 262144"));
}

#[test]
fn mistakes_of_the_config_name_its_line() {
    for (text, expected) in [
        ("[adapters]\noff = [\"rivr\"]\n", "2:8: unknown adapter \"rivr\": did you mean \"river\"?"),
        ("[adapters.rivr]\n", "1:11: unknown adapter \"rivr\": did you mean \"river\"?"),
        (
            "[adapters.river]\nrescue_afte = \"1h\"\n",
            "2:1: unknown setting of river \"rescue_afte\": did you mean",
        ),
        ("[adapters.river]\nrescue_after = \"soon\"\n", "2:1: rescue_after is \"soon\": expected a duration"),
    ] {
        let error = load(text, &[]).unwrap_err();
        assert!(error.contains(&format!("~/config.toml:{expected}")), "{error}");
    }
    for (text, expected) in [
        ("adapters = 1", "1:12: adapters is the number 1: expected a table, [adapters]"),
        ("[adapters]\nenabled = 1", "2:11: enabled is the number 1: expected true or false"),
        ("[adapters]\noff = \"river\"", "2:7: off is \"river\": expected a list of adapters"),
        ("[adapters]\non = 1", "2:6: adapters.on is not a table: expected enabled, off or [adapters.NAME]"),
        ("[adapters.river]\nschema = 1", "2:10: schema is the number 1: expected a text in quotes"),
    ] {
        let error = Config::parse(text, Path::new("c.toml")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
