use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind};

use crate::app::message::Message;
use crate::keys::{Code, Key};
use crate::ui::viewport::Viewport;

/// Rows per step of the mouse wheel.
const WHEEL: isize = 3;

pub(super) fn message(event: Event, viewport: &Viewport) -> Option<Message> {
    match event {
        Event::Key(event) => key(event).map(Message::Key),
        Event::Paste(text) => Some(Message::Paste(text)),
        Event::Resize(columns, rows) => Some(Message::Resize(columns, rows)),
        Event::Mouse(event) => {
            let pane = viewport.row(event.column, event.row).map(|(pane, _)| pane);
            let wheel = |by| Some(Message::Wheel(pane, by));
            match event.kind {
                MouseEventKind::Down(MouseButton::Left) => {
                    viewport.hit(event.column, event.row).map(Message::Click)
                }
                MouseEventKind::ScrollDown => wheel(WHEEL),
                MouseEventKind::ScrollUp => wheel(-WHEEL),
                _ => None,
            }
        }
        Event::FocusGained | Event::FocusLost => None,
    }
}

fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let code = match event.code {
        KeyCode::Char(character) => Code::Char(character),
        KeyCode::F(number) => Code::F(number),
        KeyCode::Enter => Code::Enter,
        KeyCode::Esc => Code::Esc,
        KeyCode::Backspace => Code::Backspace,
        KeyCode::Delete => Code::Delete,
        KeyCode::Tab => Code::Tab,
        KeyCode::BackTab => Code::BackTab,
        KeyCode::Up => Code::Up,
        KeyCode::Down => Code::Down,
        KeyCode::Left => Code::Left,
        KeyCode::Right => Code::Right,
        KeyCode::PageUp => Code::PageUp,
        KeyCode::PageDown => Code::PageDown,
        KeyCode::Home => Code::Home,
        KeyCode::End => Code::End,
        _ => return None,
    };
    let has = |modifier| event.modifiers.contains(modifier);
    Some(Key { code, ctrl: has(KeyModifiers::CONTROL), alt: has(KeyModifiers::ALT) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_what_they_are() {
        let converted = |code, modifiers| key(KeyEvent::new(code, modifiers)).map(|key| key.to_string());
        assert_eq!(converted(KeyCode::Char('K'), KeyModifiers::SHIFT).as_deref(), Some("K"));
        assert_eq!(converted(KeyCode::Char('c'), KeyModifiers::CONTROL).as_deref(), Some("Ctrl-C"));
        assert_eq!(converted(KeyCode::BackTab, KeyModifiers::SHIFT).as_deref(), Some("Shift-Tab"));
        assert_eq!(converted(KeyCode::CapsLock, KeyModifiers::NONE), None);
        let mut release = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
        release.kind = KeyEventKind::Release;
        assert_eq!(key(release), None);
    }
}
