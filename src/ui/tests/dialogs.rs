use std::sync::Arc;

use super::{SIZES, Stage, check, incident};
use crate::app::message::{Effect, Message};
use crate::model::finding::Subject;
use crate::model::plan::{
    ActionReport, ExecutorOrder, ExecutorReply, Outcome, RecoveryPlan, Request, RunState, RunningExecution,
    Selection, TargetResult, Verb,
};
use crate::model::view::{ConnectionState, TargetId};
use crate::sample;

fn jobs(width: u16, height: u16) -> Stage {
    Stage::new(width, height).view(sample::jobs(0.0).view())
}

fn leases(width: u16, height: u16) -> Stage {
    Stage::new(width, height).view(sample::systems::leases(0.0).view())
}

fn queue(width: u16, height: u16) -> Stage {
    Stage::new(width, height).view(sample::systems::queue(0.0).view())
}

/// "Cancel" is reserved for canceling a query.
#[test]
fn no_way_out_of_a_question_is_called_cancel() {
    for keys in ["K", "<tab>jC", "<tab>jK", "7 jj K", "7 jj C"] {
        let text = incident(80, 24).keys(keys).text();
        assert!(
            text.contains("[Back] Enter") && text.lines().last().unwrap().starts_with("Esc back"),
            "{text}"
        );
        let cancels = text.lines().filter(|line| line.to_lowercase().contains("cancel")).collect::<Vec<_>>();
        let is_query = |line: &&str| {
            let line = line.to_lowercase();
            ["cancel query", "pg_cancel_backend", "query to cancel", "c cancel: the alter fails"]
                .iter()
                .any(|words| line.contains(words))
        };
        assert!(cancels.iter().all(is_query), "{cancels:?}");
        // The strip above the question shows the shortcut of the row.
        assert!(!cancels.is_empty() || !keys.contains('C'), "{keys}: {text}");
    }
}

#[test]
fn questions_about_sessions_at_three_sizes() {
    for (width, height) in SIZES {
        for (name, keys) in [
            ("ask_root", "2K"),
            ("ask_middle", "2jK"),
            ("ask_root_of", "2jK<tab>"),
            ("ask_typed", "2jjK16"),
            ("ask_wrong", "2jjK18<enter>"),
            ("ask_y", "2jjKy"),
            ("ask_queue", "2jjK"),
            ("ask_cancel", "2jC"),
            ("ask_marked", "7/who:prisma<enter>*<esc>/pid:4980<enter>K"),
            ("ask_some", "2 <end> K"),
            ("ask_lock", "3K"),
            ("refused_cancel", "2C"),
            ("refused_prepared", "2GkK"),
        ] {
            check(name, &mut incident(width, height).keys(keys));
        }
        let mut later = sample::incident(0.0);
        later.backends.retain(|backend| backend.pid != 4312);
        let mut asked = incident(width, height).keys("2K");
        asked.text();
        check("ask_over", &mut asked.view(later.view()));
        check(
            "ask_blockers",
            &mut Stage::new(width, height).view(sample::shared(0.0).view()).keys("2K<tab>"),
        );
    }
}

#[test]
fn questions_about_tasks_leases_and_items_at_three_sizes() {
    for (width, height) in SIZES {
        check("ask_task_key", &mut jobs(width, height).keys("4jK"));
        check("ask_recover", &mut jobs(width, height).keys("4R"));
        check("ask_disable", &mut jobs(width, height).keys("4E"));
        check("ask_due", &mut jobs(width, height).keys("4/send<enter>gT"));
        check("ask_put_off", &mut jobs(width, height).keys("4/send<enter>gD"));
        check("refused_task", &mut jobs(width, height).keys("4K"));
        check("ask_unlock", &mut leases(width, height).keys("5GkkU"));
        check("ask_unlock_many", &mut leases(width, height).keys("5*U"));
        check("ask_requeue", &mut queue(width, height).keys("6R"));
        check("ask_set_aside", &mut queue(width, height).keys("6*X"));
        check("refused_unlock", &mut incident(width, height).keys("U"));
    }
}

fn running(execution_id: i64, name: &str, state: RunState) -> RunningExecution {
    let slow = state == RunState::Slow;
    let (pid, start) = (Some(6103), Some(sample::at(-3600.0)));
    RunningExecution {
        execution_id,
        task_id: execution_id,
        task_name: name.to_owned(),
        worker_id: "worker-3".to_owned(),
        state,
        started_at: Some(sample::at(-725.0)),
        heartbeat_at: None,
        run_seconds: Some(725.0),
        timeout_seconds: Some(600.0),
        attempt: 2,
        max_attempts: 3,
        retry_seconds: Some(60.0),
        is_scheduled: true,
        is_enabled: true,
        lock_id: Some(execution_id),
        holder_pid: pid.filter(|_| slow),
        holder_start: start.filter(|_| slow),
        held_by_prepared: false,
        backend_pid: pid,
        backend_start: start,
    }
}

/// Sends the plan that the question opened by `keys` waits for.
fn answered(mut stage: Stage, keys: &str, running: &[RunningExecution], request: &Request) -> Stage {
    let all = crate::keys::Key::parse_all(keys).unwrap();
    let mut asked = None;
    for key in all {
        stage.draw();
        for effect in stage.app.update(Message::Key(key)).effects {
            if let Effect::Order(ExecutorOrder::PlanRecovery { number, .. }) = effect {
                asked = Some(number);
            }
        }
    }
    let plan = RecoveryPlan::of("locktop", sample::at(0.0), 30.0, running, request);
    stage.app.update(Message::Answer(ExecutorReply::RecoveryPlanned(asked.unwrap(), Ok(Arc::new(plan)))));
    stage
}

#[test]
fn recoveries_at_three_sizes() {
    let these = |terminate| Request { select: Selection::Executions(vec![3, 7, 8]), task: None, terminate };
    let orphan = [running(7, "报表生成任务", RunState::Orphan)];
    let slow = [running(3, "数据清理任务", RunState::Slow)];
    let many = [
        running(7, "报表生成任务", RunState::Orphan),
        running(8, "rotate partitions", RunState::Orphan),
        running(3, "数据清理任务", RunState::Slow),
    ];
    for (width, height) in SIZES {
        let of = |keys, running: &[RunningExecution], terminate| {
            answered(jobs(width, height), keys, running, &these(terminate))
        };
        check("recover_orphan", &mut of("4R", &orphan, false));
        check("recover_slow", &mut of("4jR", &slow, true));
        check("recover_many", &mut of("4Ro", &many, false));
        check("recover_none", &mut of("4Ro", &[], false));
    }
}

#[test]
fn a_dialog_without_a_connection_and_action_results_at_three_sizes() {
    for (width, height) in SIZES {
        let mut stage = incident(width, height).keys("2K");
        let mut view = sample::incident(0.0).view();
        view.link = ConnectionState::Down {
            reason: "connection refused".into(),
            attempt: 3,
            wait: std::time::Duration::from_secs(4),
        };
        stage.app.update(Message::View(TargetId(0), Arc::new(view)));
        check("ask_down", &mut stage);
        let mut stage = incident(width, height).keys("2jjK16<enter>");
        let number = stage.app.pending_actions[0].number;
        stage.app.update(Message::Answer(ExecutorReply::Progress(number, 1)));
        check("in_flight", &mut stage);
        let result = |name: &str, outcome, detail: &str| TargetResult {
            name: name.into(),
            subject: Subject::Server,
            outcome,
            detail: detail.into(),
        };
        let results = vec![
            result("4312 app@web-3", Outcome::Done, "ended"),
            result("4410 deploy@ci", Outcome::Changed, "its transaction has ended"),
            result("4466 app@web-0", Outcome::Forbidden, "GRANT pg_signal_backend TO locktop would allow it"),
        ];
        let report = ActionReport { number, verb: Verb::Terminate, results, notes: Vec::new() };
        stage.app.update(Message::Answer(ExecutorReply::Reported(Arc::new(report))));
        check("reported", &mut stage);
    }
}

#[test]
fn a_dialog_that_does_not_fit_is_not_drawn_and_takes_no_answer() {
    for (width, height) in
        [(0, 0), (1, 1), (3, 2), (59, 24), (60, 14), (60, 15), (80, 23), (119, 30), (300, 100)]
    {
        for keys in ["2K", "2jjK", "2jK", "2jjKr"] {
            let mut stage = incident(width, height).keys(keys);
            stage.draw();
            assert_eq!(stage.viewport.dialog.is_some(), width >= 60 && height >= 15, "{width}x{height}");
        }
        let mut stage = incident(width, height).keys("2Ky");
        stage.draw();
        assert_eq!(
            stage.app.pending_actions.len(),
            usize::from(width >= 60 && height >= 15),
            "{width}x{height}"
        );
    }
}

#[test]
fn a_question_in_ascii_is_ascii() {
    let mut stage = incident(80, 24).keys("2jjK");
    stage.theme = super::Theme::new(super::BaseTheme::Dark, super::ColorDepth::Ansi, true);
    let text = stage.text();
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn hostile_names_stay_within_a_question() {
    let mut builder = sample::incident(0.0);
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\n\t\u{9b}31m\u{202e}\u{200b}🏴‍☠️文字".repeat(50);
    if let Some(backend) = builder.backends.iter_mut().find(|backend| backend.pid == 4312) {
        backend.application = Some(evil.as_str().into());
        backend.query = Some(evil.repeat(500).into());
    }
    let text = Stage::new(80, 24).view(builder.view()).keys("2K").text();
    assert!(!text.chars().any(|character| character.is_control() && character != '\n'), "{text}");
    assert!(text.contains("y terminate"), "{text}");
}
