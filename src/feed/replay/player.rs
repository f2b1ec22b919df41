use std::io;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::Recording;
use crate::feed::history::{Answer, Command, History, Reply};
use crate::model::timeline::{PastView, Step};

/// Longest pause between snapshots during playback, in seconds.
const GAP: f64 = 5.0;

/// Poll interval for appended snapshots.
const GROWS: Duration = Duration::from_millis(200);

/// Starts the thread. It shows the snapshot of `first`, then those requested. With `follow` it also shows appended
/// snapshots until a request.
///
/// # Errors
/// The thread cannot be created.
pub fn start(mut recording: Recording, first: Step, follow: bool, speed: Option<f64>) -> io::Result<History> {
    let (history, received, answers) = History::channel();
    let serve = move || {
        let mut player = Player { shown: recording.moments().len() as u64, speed, follow };
        let first = recording.go(player.shown, first);
        player.note(first.as_ref().ok());
        let _ = answers.send(Reply::Look(first));
        loop {
            match received.recv_timeout(player.rest(&recording)) {
                Ok(Command::Go { from, step }) => {
                    // A request ends following.
                    player.follow = false;
                    // If reading fails, the recording ends here.
                    let _ = recording.look_on();
                    let answer = recording.go(from, step);
                    player.note(answer.as_ref().ok());
                    player.follow = follow && matches!(answer, Ok(None));
                    let _ = answers.send(Reply::Look(answer));
                }
                Ok(Command::Play(speed)) => player.speed = speed,
                Ok(Command::Keep(_) | Command::Lost(_) | Command::Save(..)) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let has_more = recording.look_on().unwrap_or_default();
                    let next = match (player.follow, player.speed) {
                        (true, _) if has_more => Step::Looks(i32::MAX),
                        (false, Some(_)) => Step::Looks(1),
                        _ => continue,
                    };
                    if let Some(answer) = player.on(&mut recording, next) {
                        let _ = answers.send(Reply::Look(answer));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    std::thread::Builder::new().name("replay".to_owned()).spawn(serve)?;
    Ok(history)
}

struct Player {
    shown: u64,
    /// Multiple of the original speed. `None` while stopped.
    speed: Option<f64>,
    follow: bool,
}

impl Player {
    fn note(&mut self, answer: Option<&Option<Arc<PastView>>>) {
        if let Some(Some(past)) = answer {
            self.shown = past.view.id;
        }
    }

    fn rest(&self, recording: &Recording) -> Duration {
        let (Some(speed), false) = (self.speed, self.follow) else { return GROWS };
        let at = |number: u64| {
            let place = usize::try_from(number.checked_sub(1)?).ok()?;
            Some(recording.moments().get(place)?.at)
        };
        let Some((here, next)) = at(self.shown).zip(at(self.shown + 1)) else { return GROWS };
        let between = (next - here).as_seconds_f64().clamp(0.0, GAP);
        Duration::from_secs_f64(between / speed).max(Duration::from_millis(10))
    }

    /// Takes a step. `None` if there are no more snapshots.
    fn on(&mut self, recording: &mut Recording, step: Step) -> Option<Answer> {
        let step = if step == Step::Looks(i32::MAX) {
            let last = recording.moments().len() as u64;
            Step::Looks(i32::try_from(last.saturating_sub(self.shown)).unwrap_or(i32::MAX))
        } else {
            step
        };
        let answer = recording.go(self.shown, step);
        self.note(answer.as_ref().ok());
        match answer {
            Ok(Some(past)) => Some(Ok(Some(past))),
            _ => None,
        }
    }
}
