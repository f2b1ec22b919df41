//! A recording that is shown, on a thread of its own.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::Recording;
use crate::feed::history::{Answer, Command, History, Reply};
use crate::model::timeline::{PastView, Step};

/// Gaps that are longer, in seconds, are jumped over while it plays.
const GAP: f64 = 5.0;

/// How often a recording that grows is looked at.
const GROWS: Duration = Duration::from_millis(200);

/// Shows a recording on a thread of its own: the look of `first` at once, and then what is asked for. With `follow` it shows what comes
/// while nobody asks for anything else.
///
/// # Errors
/// When the system has no thread to give.
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
                    // Who goes somewhere stays there.
                    player.follow = false;
                    // What cannot be read any more is where it ends.
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

/// Which look a replay shows, and how it goes on.
struct Player {
    /// The number of the look that is shown.
    shown: u64,
    /// So many times as fast as it was; none for standing still.
    speed: Option<f64>,
    /// Whether it shows each look that is added to the file.
    follow: bool,
}

impl Player {
    fn note(&mut self, answer: Option<&Option<Arc<PastView>>>) {
        if let Some(Some(past)) = answer {
            self.shown = past.view.id;
        }
    }

    /// How long until the next look.
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

    /// Goes on; none where there is nothing more.
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
