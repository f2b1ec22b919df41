use std::ops::RangeBounds;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::app::screens::Screen;
use crate::config::{MAX_REFRESH, MIN_REFRESH};
use crate::text::parse_duration;
use crate::ui::theme::Base;

/// Appearance and start of the dashboard.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Dashboard")]
pub struct ViewArgs {
    /// Time between two polls, 0.1s to 60s [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = refresh())]
    pub refresh: Option<Duration>,
    /// The screen to start on.
    #[arg(long, value_name = "SCREEN")]
    pub screen: Option<Screen>,
    /// Colors [default: dark]
    #[arg(long, value_name = "THEME")]
    pub theme: Option<Base>,
    /// Draw with ASCII characters only.
    #[arg(long)]
    pub ascii: bool,
    /// Use the mouse from the start; m turns it on and off.
    #[arg(long)]
    pub mouse: bool,
    /// Disable everything that acts on the server.
    #[arg(long)]
    pub read_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SnapshotFormat {
    /// Text.
    Table,
    /// One JSON object.
    Json,
}

impl ValueEnum for Screen {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let screen = self.definition();
        Some(PossibleValue::new(screen.name).help(screen.about))
    }
}

pub(super) const NANO: Duration = Duration::from_nanos(1);
pub(super) const TENTH: Duration = Duration::from_millis(100);
pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// Parses a duration of this range; the words follow "expected a duration".
pub(super) fn time(
    range: impl RangeBounds<Duration> + Clone,
    words: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let found = parse_duration(text).filter(|found| range.contains(found));
        found.ok_or_else(|| format!("expected a duration{words}"))
    }
}

pub(super) fn refresh() -> impl Fn(&str) -> Result<Duration, String> + Clone {
    time(MIN_REFRESH..=MAX_REFRESH, " from 0.1s to 60s, such as 1s")
}
