//! Colours by meaning. Only this module names a colour.

use clap::ValueEnum;
pub use ratatui::style::Color;
use ratatui::style::{Modifier, Style};

use crate::app::line::Tone;

/// A set of colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum BaseTheme {
    /// For a dark background.
    #[default]
    Dark,
    /// For a light background.
    Light,
    /// No colors.
    Mono,
    /// The sixteen colors of the terminal.
    Ansi,
}

/// Colours of meanings; `None` is the background of the selected row.
pub type Colors = Vec<(Option<Tone>, Color)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorDepth {
    /// No colours, or the user wants none (`NO_COLOR`, <https://no-color.org>).
    None,
    Ansi,
    Indexed,
    Rgb,
}

impl ColorDepth {
    pub fn detect(var: impl Fn(&str) -> Option<String>) -> Self {
        if var("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            return Self::None;
        }
        let term = var("TERM").unwrap_or_default();
        match var("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") => Self::Rgb,
            _ if term == "dumb" => Self::None,
            _ if term.ends_with("-direct") => Self::Rgb,
            _ if term.contains("256color") => Self::Indexed,
            _ => Self::Ansi,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Theme {
    styles: [Style; 8],
    pub selected: Style,
    pub ascii: bool,
}

/// The colour of a meaning in 24 bits, 256 colours and 16 colours.
type Shades = (u32, u8, Color);

/// The colours of dim, critical, warning, good, key and past text, and the background of the selected row.
type Palette = [Shades; 7];

const DARK: Palette = [
    (0x008a_9199, 245, Color::DarkGray),
    (0x00ff_6b6b, 203, Color::LightRed),
    (0x00e5_c07b, 179, Color::Yellow),
    (0x0098_c379, 114, Color::Green),
    (0x0056_c8d8, 80, Color::Cyan),
    (0x00d7_87d7, 176, Color::Magenta),
    (0x002d_3b4d, 237, Color::Blue),
];

const LIGHT: Palette = [
    (0x006b_7280, 243, Color::DarkGray),
    (0x00b9_1c1c, 124, Color::Red),
    (0x0092_5b00, 94, Color::Magenta),
    (0x0015_803d, 28, Color::Green),
    (0x0003_6a8c, 24, Color::Blue),
    (0x007e_22ce, 91, Color::Magenta),
    (0x00cf_e3f7, 153, Color::Cyan),
];

fn color((rgb, index, ansi): Shades, depth: ColorDepth) -> Color {
    match depth {
        ColorDepth::Rgb => Color::from_u32(rgb),
        ColorDepth::Indexed => Color::Indexed(index),
        ColorDepth::Ansi | ColorDepth::None => ansi,
    }
}

impl Theme {
    pub fn new(base: BaseTheme, depth: ColorDepth, ascii: bool) -> Self {
        match (base, depth) {
            (BaseTheme::Mono, _) | (_, ColorDepth::None) => Self::mono(ascii),
            (BaseTheme::Ansi, _) => Self::colored(DARK, ColorDepth::Ansi, ascii),
            (BaseTheme::Dark, depth) => Self::colored(DARK, depth, ascii),
            (BaseTheme::Light, depth) => Self::colored(LIGHT, depth, ascii),
        }
    }

    fn mono(ascii: bool) -> Self {
        let (plain, bold) = (Style::new(), Style::new().add_modifier(Modifier::BOLD));
        let dim = Style::new().add_modifier(Modifier::DIM);
        let underlined = Style::new().add_modifier(Modifier::UNDERLINED);
        let critical = bold.add_modifier(Modifier::UNDERLINED);
        Self {
            styles: [plain, bold, dim, critical, bold, plain, bold, underlined],
            selected: Style::new().add_modifier(Modifier::REVERSED),
            ascii,
        }
    }

    fn colored(palette: Palette, depth: ColorDepth, ascii: bool) -> Self {
        let colors = palette.map(|shades| color(shades, depth));
        let [dim, critical, warning, good, key, past, _] = colors.map(|color| Style::new().fg(color));
        let [.., selected] = colors;
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let critical = critical.add_modifier(Modifier::BOLD);
        // With sixteen colours, no background suits every foreground, so the row is reversed.
        let selected = match depth {
            ColorDepth::Ansi | ColorDepth::None => Style::new().add_modifier(Modifier::REVERSED),
            ColorDepth::Indexed | ColorDepth::Rgb => Style::new().bg(selected),
        };
        Self { styles: [Style::new(), bold, dim, critical, warning, good, key, past], selected, ascii }
    }

    /// Applies the colours of the config, unless the terminal has none.
    pub fn with_colors(mut self, colors: &Colors, depth: ColorDepth) -> Self {
        for (tone, color) in colors.iter().filter(|_| depth != ColorDepth::None) {
            match tone {
                None => self.selected = Style::new().bg(*color),
                Some(tone) => {
                    if let Some(style) = self.styles.get_mut(*tone as usize) {
                        *style = style.fg(*color);
                    }
                }
            }
        }
        self
    }

    pub fn style(&self, tone: Tone) -> Style {
        self.styles.get(tone as usize).copied().unwrap_or_default()
    }
}
