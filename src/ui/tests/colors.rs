use ratatui::style::{Color, Modifier};

use super::{incident, place_of};
use crate::ui::theme::{Base, Depth, Theme};

#[test]
fn the_selection_is_seen_without_colours() {
    let mut stage = incident(80, 24);
    stage.theme = Theme::new(Base::Dark, Depth::None, false);
    stage.draw();
    let buffer = stage.terminal.backend().buffer();
    let reversed: Vec<u16> =
        (0..24).filter(|y| buffer[(5, *y)].modifier.contains(Modifier::REVERSED)).collect();
    assert_eq!(reversed.len(), 1);
    for cell in &buffer.content {
        assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
    }
}

#[test]
fn the_mode_and_the_sign_of_writing_are_dim() {
    let mut stage = incident(120, 35);
    for (text, part) in [("accounts AccessExclusive  ", "accounts"), ("3m12s w ", "3m12s")] {
        let (x, y) = place_of(&mut stage, text);
        let buffer = stage.terminal.backend().buffer();
        let colour = |at: usize| buffer[(x + u16::try_from(at).unwrap(), y)].fg;
        let dim = stage.theme.style(crate::app::line::Tone::Dim).fg.unwrap();
        assert_eq!(colour(part.len() + 1), dim, "{text}");
        assert_ne!(colour(0), dim, "{text}");
        assert_ne!(colour(part.len() - 1), dim, "{text}");
    }
}

#[test]
fn every_theme_draws_every_tone() {
    for base in [Base::Dark, Base::Light, Base::Mono, Base::Ansi] {
        for depth in [Depth::None, Depth::Ansi, Depth::Indexed, Depth::Rgb] {
            let mut stage = incident(80, 24);
            stage.theme = Theme::new(base, depth, false);
            stage.draw();
            let rgb = stage
                .terminal
                .backend()
                .buffer()
                .content
                .iter()
                .any(|cell| matches!(cell.fg, Color::Rgb(..)));
            assert_eq!(
                rgb,
                depth == Depth::Rgb && matches!(base, Base::Dark | Base::Light),
                "{base:?} {depth:?}"
            );
        }
    }
}

#[test]
fn theme_mistakes_are_named() {
    let theme = Theme::new(Base::Dark, Depth::Rgb, false);
    let colors = |meaning: &str, color: &str| {
        theme.clone().with_colors(&[(meaning.to_owned(), color.to_owned())], Depth::Rgb).map(drop)
    };
    assert!(colors("critical", "#ff0000").is_ok());
    assert!(colors("critical", "light-red").is_ok());
    assert!(colors("colour", "red").unwrap_err().to_string().contains("unknown color \"colour\""));
    assert!(colors("dim", "reddish").unwrap_err().to_string().contains("\"reddish\" is not a color"));
}
