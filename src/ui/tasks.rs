//! What the titles and the header say of the tasks.

use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::task::TaskState;

/// How old the rows of a table that could not be read are; then `10 running · 1 orphan · 1 slow · 2 overdue`, and what
/// was left out.
pub(super) fn facts(scene: &Scene<'_>) -> Vec<(String, Tone)> {
    let counts = &scene.view.tasks.counts;
    // Each task is in one state: the numbers add up.
    let running = counts.of(TaskState::Running) + counts.of(TaskState::MaybeRunning);
    let mut facts = staleness(scene);
    facts.push((format!("{running} running"), Tone::Plain));
    facts.extend(urgent(scene));
    let doubtful = [TaskState::LeftOver, TaskState::Settling, TaskState::Unknown];
    facts.extend(doubtful.into_iter().filter_map(|state| count(scene, state)));
    if scene.snapshot.task_sets.iter().any(|set| set.tasks_cut) {
        facts.push(("more are not read".to_owned(), Tone::Warning));
    }
    if scene.snapshot.task_sets.iter().any(|set| set.running_cut) {
        facts.push(("older executions are not read".to_owned(), Tone::Warning));
    }
    facts
}

/// How many need somebody, the worst first.
fn urgent(scene: &Scene<'_>) -> Vec<(String, Tone)> {
    let states = [
        TaskState::Orphan,
        TaskState::MaybeOrphan,
        TaskState::Slow,
        TaskState::MaybeSlow,
        TaskState::Failed,
        TaskState::Overdue,
        TaskState::Leaked,
    ];
    states.into_iter().filter_map(|state| count(scene, state)).collect()
}

/// `2 overdue`; nothing where there is none.
pub(super) fn count(scene: &Scene<'_>, state: TaskState) -> Option<(String, Tone)> {
    let number = scene.view.tasks.counts.of(state);
    let tone = if state == TaskState::Orphan { Tone::Critical } else { Tone::Warning };
    (number > 0).then(|| (format!("{number} {}", state.as_str()), tone))
}

fn staleness(scene: &Scene<'_>) -> Vec<(String, Tone)> {
    let mut facts = Vec::new();
    for set in scene.snapshot.task_sets.iter() {
        let tasks = set.tasks.error.as_ref().map(|error| (set.tasks.taken_at, error));
        let log = set.executions.error.as_ref().map(|error| (set.executions.taken_at, error));
        // Both are mostly locked by the same, and there is one line.
        if let Some((taken, error)) = tasks.or(log) {
            facts.push(super::body::stale(scene, taken, error));
        }
    }
    facts
}
