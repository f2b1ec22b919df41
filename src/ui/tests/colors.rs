use ratatui::style::{Color, Modifier};

use super::{incident, place_of};
use crate::app::line::Tone;
use crate::ui::theme::{BaseTheme, ColorDepth, Theme};

#[test]
fn the_selection_is_seen_without_colours() {
    let mut stage = incident(80, 24);
    stage.theme = Theme::new(BaseTheme::Dark, ColorDepth::None, false);
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
    for base in [BaseTheme::Dark, BaseTheme::Light, BaseTheme::Mono, BaseTheme::Ansi] {
        for depth in [ColorDepth::None, ColorDepth::Ansi, ColorDepth::Indexed, ColorDepth::Rgb] {
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
                depth == ColorDepth::Rgb && matches!(base, BaseTheme::Dark | BaseTheme::Light),
                "{base:?} {depth:?}"
            );
        }
    }
}

#[test]
fn colors_of_the_config_are_used_unless_the_terminal_has_none() {
    let colors = vec![(Some(Tone::Critical), Color::LightRed), (None, Color::Green)];
    let of = |depth| {
        let theme = Theme::new(BaseTheme::Dark, depth, false).with_colors(&colors, depth);
        (theme.style(Tone::Critical).fg, theme.selected.bg)
    };
    assert_eq!(of(ColorDepth::Rgb), (Some(Color::LightRed), Some(Color::Green)));
    assert_eq!(of(ColorDepth::None), (None, None));
}
