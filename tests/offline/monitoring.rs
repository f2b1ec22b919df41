//! The files for monitoring systems in `contrib` are correct: the options and checks exist, and the JSON paths lead to values in
//! the output of `check --format zabbix`.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Arg, CommandFactory};
use locktop::cli::Cli;
use locktop::output::check::{CheckFormat, CheckReport, JudgedMeasure, Status, names, render};
use yaml_rust2::{Yaml, YamlLoader};

/// Options for use at a terminal, or that print something and end the program.
const NOT_FOR_MONITORING: [&str; 4] = ["password", "no-password", "help", "version"];

/// Options of the dashboard's appearance, which no check needs.
const OF_THE_DASHBOARD: &str = "Dashboard";

fn contrib(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The long options of `locktop check`.
fn options() -> BTreeSet<String> {
    let mut command = Cli::command();
    command.build();
    let check = command.find_subcommand("check").unwrap();
    let is_wanted = |arg: &&Arg| arg.get_help_heading() != Some(OF_THE_DASHBOARD);
    let options = check.get_arguments().filter(is_wanted).filter_map(Arg::get_long);
    options
        .filter(|option| !NOT_FOR_MONITORING.contains(option))
        .map(|option| format!("--{option}"))
        .collect()
}

/// Every `--option` of a text.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '-';
    let found = text.match_indices("--").filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|before| before.is_whitespace() || before == '"' || before == '!')
    });
    let options = found.map(|(at, _)| text[at..].chars().take_while(|c| is_part(*c)).collect::<String>());
    options.filter(|option| option.len() > 2).collect()
}

#[test]
fn icinga_has_every_option_of_a_check_and_no_other() {
    let text = contrib("icinga2/locktop.conf");
    assert_eq!(named(&text), options());
    // Each option has a variable with its name, which the command line in the docs has, too.
    for option in options() {
        let variable = format!("$locktop_{}$", option.trim_start_matches('-').replace('-', "_"));
        let entry = text.split(&format!("\"{option}\" = {{")).nth(1).unwrap().split('}').next().unwrap();
        assert!(entry.contains(&format!("value = \"{variable}\"")), "{option}: {entry}");
    }
    let open = text.matches('{').count();
    assert!(open > 10 && open == text.matches('}').count());
}

#[test]
fn monitoring_files_name_only_existing_options_and_checks() {
    let services = contrib("icinga2/services.conf");
    let agent = contrib("zabbix/userparameter_locktop.conf");
    let nagios = contrib("nagios/locktop.cfg");
    for text in [&agent, &nagios] {
        let unknown: Vec<_> = named(text).difference(&options()).cloned().collect();
        assert!(unknown.is_empty() && !named(text).is_empty(), "{unknown:?}");
    }
    let variables = services.split("vars.locktop_").skip(1).map(|rest| rest.split(' ').next().unwrap());
    let known: BTreeSet<_> = options().iter().map(|option| option[2..].replace('-', "_")).collect();
    let variables: Vec<_> = variables
        .filter(|variable| !["target", "targets"].contains(&variable.trim_end_matches(')')))
        .collect();
    assert!(variables.len() > 4);
    assert!(variables.iter().all(|variable| known.contains(*variable)), "{variables:?}");
    for text in [services, agent, nagios] {
        let limits = text.split([' ', '"', '!', '\n']).filter_map(|word| word.split_once('='));
        let limits = limits.filter(|(name, range)| {
            range.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        });
        for (name, range) in limits {
            assert!(names().any(|known| known == name), "{name}");
            assert!(range.parse::<locktop::output::check::Range>().is_ok(), "{range}");
        }
    }
}

/// The output of `check --format zabbix` if every check has a value, and without a connection.
fn printed() -> [serde_json::Value; 2] {
    let judged = |name| JudgedMeasure {
        name,
        unit: "",
        value: Some(1.0),
        status: Status::Ok,
        warning: None,
        critical: None,
        about: String::new(),
    };
    let all = CheckReport {
        checks: names().map(judged).collect(),
        ..CheckReport::of_failure(Status::Ok, String::new())
    };
    let down = CheckReport::of_failure(Status::Unknown, "no server socket".to_owned());
    [all, down].map(|report| serde_json::from_str(&render(&report, CheckFormat::Json)).unwrap())
}

/// The value at a path: `$.name`, or the value of the check of a name.
fn follow<'a>(document: &'a serde_json::Value, path: &str) -> Option<&'a serde_json::Value> {
    let of_check = path.strip_prefix("$.checks[?(@.name==\"");
    if let Some(name) = of_check.and_then(|rest| rest.strip_suffix("\")].value.first()")) {
        let checks = document["checks"].as_array().unwrap();
        return checks.iter().find(|check| check["name"] == name).map(|check| &check["value"]);
    }
    let key = path.strip_prefix("$.").unwrap_or_else(|| panic!("{path} is no path that is known here"));
    assert!(key.chars().all(|c| c.is_ascii_lowercase()), "{path}");
    document.get(key)
}

fn list<'a>(yaml: &'a Yaml, key: &str) -> &'a [Yaml] {
    yaml[key].as_vec().map_or(&[], Vec::as_slice)
}

fn text<'a>(yaml: &'a Yaml, key: &str) -> &'a str {
    yaml[key].as_str().unwrap_or_else(|| panic!("{key} in {yaml:?}"))
}

#[test]
fn zabbix_items_cover_every_check_with_valid_paths() {
    let documents = YamlLoader::load_from_str(&contrib("zabbix/locktop.yaml")).unwrap();
    let export = &documents[0]["zabbix_export"];
    assert_eq!(text(export, "version"), "6.0");
    let template = &list(export, "templates")[0];
    let discovery = &list(template, "discovery_rules")[0];
    let items = list(discovery, "item_prototypes");
    let [all, down] = printed();

    let (masters, dependent): (Vec<_>, Vec<_>) =
        items.iter().partition(|item| item["type"].as_str() != Some("DEPENDENT"));
    assert_eq!(masters.len(), 1, "one request for all");
    let mut seen = BTreeSet::new();
    for item in dependent {
        let key = text(item, "key");
        assert_eq!(text(&item["master_item"], "key"), text(masters[0], "key"), "{key}");
        let step = &list(item, "preprocessing")[0];
        assert_eq!(text(step, "type"), "JSONPATH");
        let path = list(step, "parameters")[0].as_str().unwrap();
        let found = follow(&all, path).unwrap_or_else(|| panic!("{key}: {path}"));
        let may_be_absent = step["error_handler"].as_str() == Some("DISCARD_VALUE");
        assert_eq!(follow(&down, path).is_none_or(serde_json::Value::is_null), may_be_absent, "{key}");
        if let Some(check) = key.strip_prefix("locktop.value[\"{#TARGET}\",") {
            assert!(found.is_number());
            seen.insert(check.trim_end_matches(']').to_owned());
        }
    }
    assert_eq!(seen, names().map(str::to_owned).collect());

    // Triggers name existing items, and every id is unique.
    let keys: Vec<&str> = items.iter().map(|item| text(item, "key")).collect();
    let of_template = format!("/{}/", text(template, "template"));
    for trigger in list(discovery, "trigger_prototypes") {
        let expression = text(trigger, "expression");
        let of = expression.split(&of_template).skip(1);
        let found: Vec<_> = of.map(|rest| keys.iter().find(|key| rest.starts_with(**key))).collect();
        assert!(!found.is_empty() && found.iter().all(Option::is_some), "{expression}");
    }
    let yaml = contrib("zabbix/locktop.yaml");
    let ids: Vec<&str> = yaml.split("uuid: ").skip(1).map(|rest| rest.lines().next().unwrap()).collect();
    let is_random = |id: &&&str| id.len() == 32 && &id[12..13] == "4" && "89ab".contains(&id[16..17]);
    assert_eq!(ids.iter().filter(is_random).collect::<BTreeSet<_>>().len(), ids.len());
    for parameter in ["locktop.targets", "locktop.check[*]"] {
        assert!(
            contrib("zabbix/userparameter_locktop.conf").contains(&format!("UserParameter={parameter},"))
        );
    }
}
