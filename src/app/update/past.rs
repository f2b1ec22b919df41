use std::sync::Arc;

use crate::app::message::{Effect, Update};
use crate::app::page::Typing;
use crate::app::{App, time};
use crate::model::Timestamp;
use crate::model::past::{PastView, Step, Trouble};

#[derive(Debug, Clone, Copy, Default)]
pub(in crate::app) struct Going {
    /// The next step, from keys pressed meanwhile.
    then: Option<Step>,
    open: Option<(u64, u32)>,
    /// Whether to show what the trouble of that snapshot was.
    tells: bool,
    /// The time that was typed.
    asked: Option<Timestamp>,
    is_off: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replay {
    /// Playback speed as a multiple of the original.
    pub speed: f64,
    pub plays: bool,
}

impl App {
    pub fn replay_at(&mut self, speed: Option<f64>) {
        self.replay = Some(Replay { speed: speed.unwrap_or(1.0), plays: speed.is_some() });
        self.settings.history = true;
        self.settings.keymap = std::mem::take(&mut self.settings.keymap).in_recording();
    }

    pub(super) fn play_or_stop(&mut self) -> Update {
        let Some(replay) = &mut self.replay else { return Update::none() };
        replay.plays = !replay.plays;
        Update::effect(Effect::Play(replay.plays.then_some(replay.speed)))
    }

    pub(super) fn change_speed(&mut self, faster: bool) -> Update {
        let Some(replay) = &mut self.replay else { return Update::none() };
        replay.speed = (if faster { replay.speed * 2.0 } else { replay.speed / 2.0 }).clamp(0.25, 64.0);
        Update::effect(Effect::Play(replay.plays.then_some(replay.speed)))
    }

    pub(super) fn step_in_time(&mut self, step: Step) -> Update {
        if !self.settings.history {
            return self.say("the history is off: see [history] in the config");
        }
        if let Some(going) = &mut self.going {
            going.then = Some(match (going.then, step) {
                (Some(Step::Looks(one)), Step::Looks(other)) => Step::Looks(one.saturating_add(other)),
                (Some(Step::Seconds(one)), Step::Seconds(other)) => Step::Seconds(one.saturating_add(other)),
                (_, step) => step,
            });
            return Update::none();
        }
        self.leave(step, Going::default())
    }

    fn leave(&mut self, step: Step, going: Going) -> Update {
        let Some(view) = self.view.as_ref().filter(|view| view.snapshot.is_some()) else {
            return self.say("no snapshot yet");
        };
        let from = view.id;
        let tells = matches!(step, Step::TroubleBefore | Step::NextTrouble);
        let asked = if let Step::Time(at) = step { Some(at) } else { None };
        self.going = Some(Going { tells, asked, ..going });
        Update { effects: vec![Effect::Go { from, step }], redraw: false }
    }

    /// A requested snapshot has arrived; `None` if it is the newest one.
    pub(super) fn arrived(&mut self, answer: Result<Option<Arc<PastView>>, String>) -> Update {
        let Going { then, open, tells, asked, is_off } = self.going.take().unwrap_or_default();
        let mut update = match answer {
            _ if is_off => Update::none(),
            Ok(Some(past)) => {
                let taken_at = past.view.snapshot.as_ref().map(|snapshot| snapshot.taken_at);
                let is_first = asked.zip(taken_at).is_some_and(|(asked, taken_at)| asked < taken_at);
                let is_replay = self.replay.is_some();
                let begins = if is_replay { "the recording begins here" } else { "the history begins here" };
                let said = is_first.then(|| begins.to_owned());
                let said = said.or_else(|| tells.then(|| trouble_of(&past)).flatten());
                self.show_past(past);
                said.map_or_else(Update::redraw, |said| self.say(said))
            }
            // An event of the newest snapshot is opened where it is.
            Ok(None) if open.is_none() && self.replay.is_some() => self.say("the recording ends here"),
            Ok(None) if open.is_none() => self.back_to_now(),
            Ok(None) => Update::redraw(),
            Err(_) if open.is_some() => Update::redraw(),
            Err(why) => self.say(why),
        };
        if let Some((number, count)) = open {
            update.effects.extend(self.open_event(number, count).effects);
        }
        if let Some(step) = then {
            update.effects.extend(self.leave(step, Going::default()).effects);
        }
        update
    }

    fn show_past(&mut self, past: Arc<PastView>) {
        let newest = self.newest().cloned();
        self.paused = false;
        self.show(Arc::clone(&past.view));
        (self.latest, self.past) = (newest, Some(past));
    }

    /// Shows the newest view again, and cancels a pending request.
    pub(super) fn back_to_now(&mut self) -> Update {
        if let Some(going) = &mut self.going {
            *going = Going { is_off: true, ..Going::default() };
        }
        if self.past.take().is_some()
            && let Some(newest) = self.latest.take()
        {
            self.show(newest);
        }
        Update::redraw()
    }

    pub(super) fn is_past(&mut self) -> Update {
        let context = self.context();
        let time = context.map(|context| context.time_of_day(context.snapshot.taken_at)).unwrap_or_default();
        self.say(format!("this is {time}: Esc returns to live"))
    }

    pub(super) fn start_time(&mut self) -> Update {
        if !self.settings.history {
            return self.step_in_time(Step::Worst);
        }
        self.type_into(Typing::Time, String::new())
    }

    /// Parses a typed time. `None` is live.
    pub(super) fn time_typed(&self, text: &str) -> Result<Option<Step>, String> {
        let newest = self.newest().and_then(|view| view.snapshot.as_ref());
        let newest = newest.map(|snapshot| snapshot.taken_at).unwrap_or_default();
        let last = self.past.as_ref().filter(|_| self.replay.is_some()).and_then(|past| past.moments.last());
        let newest = last.map_or(newest, |last| last.at);
        time::parse(text, newest, self.settings.zone)
    }

    pub(super) fn go_to_time(&mut self, text: &str) -> Update {
        match self.time_typed(text) {
            Ok(Some(step)) => {
                let update = self.step_in_time(step);
                Update { redraw: true, ..update }
            }
            // In a recording, its end takes the place of live.
            Ok(None) if self.replay.is_some() => self.step_in_time(Step::Time(Timestamp::MAX_UTC)),
            Ok(None) => self.back_to_now(),
            Err(why) => self.say(why),
        }
    }

    /// Goes to the row of an event in the snapshot that saw it, or for an end, in the snapshot before. Goes to the row in the current
    /// view without history, and for an action: what it did is there.
    pub(super) fn go_to_event(&mut self, number: u64, count: u32) -> Update {
        let event = self.view.as_ref().and_then(|view| view.events.get(number));
        let shown = self.view.as_ref().and_then(|view| view.snapshot.as_ref());
        let step = event.filter(|event| !event.kind.is_action()).and_then(|event| {
            match (event.kind.is_end(), event.seen) {
                (true, seen) => Some(Step::Before(seen)),
                (false, seen) => {
                    shown.is_some_and(|shown| shown.taken_at != seen).then_some(Step::Seen(seen))
                }
            }
        });
        match step {
            Some(step) if self.settings.history && self.going.is_none() => {
                self.leave(step, Going { open: Some((number, count)), ..Going::default() })
            }
            _ => self.open_event(number, count),
        }
    }
}

/// The first of the worst events between the previous snapshot and this one, and how many more of them there are.
fn trouble_of(past: &PastView) -> Option<String> {
    let trouble = past.moments.get(past.place)?.trouble?;
    let before = past.place.checked_sub(1).and_then(|place| past.moments.get(place)).map(|moment| moment.at);
    let since =
        past.view.events.iter().rev().take_while(|event| before.is_none_or(|before| event.seen > before));
    let mut found: Vec<_> = since.filter(|event| Trouble::of(event.kind) == Some(trouble)).collect();
    match (found.pop(), trouble) {
        (Some(first), _) if found.is_empty() => Some(first.text()),
        (Some(first), _) => Some(format!("{} · {} more", first.text(), found.len())),
        (None, Trouble::NoAnswer) => Some("the server did not answer after this snapshot".to_owned()),
        (None, _) => None,
    }
}
