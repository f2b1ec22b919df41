//! The schedules of all installations.

use strum::{IntoStaticStr, VariantArray};

use super::BoardBuilder;
use crate::model::Text;
use crate::model::adapter::AdapterSchedule;
use crate::model::systems::TextId;

/// What an installation starts by the clock.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleRow {
    /// What identifies it: the installation and its id.
    pub id: TextId,
    /// What its installation is called: `pg_cron`, with its schema where there are several.
    pub source: Text,
    /// Place of the installation in the snapshot, and of the schedule in it.
    pub place: (usize, usize),
    /// Whether it starts what it should.
    pub state: ScheduleState,
}

/// How a schedule is, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ScheduleState {
    /// Its time has passed for longer than `[thresholds] task_overdue`, and it was not started.
    Overdue,
    /// It is started when its time comes.
    On,
    /// Its row says that it is switched off.
    Off,
}

impl ScheduleState {
    /// Every state, worst first.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its word on the screens and in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl BoardBuilder<'_> {
    /// Its schedules, in the order in which they were read.
    pub(super) fn schedules(&self, place: usize) -> Vec<ScheduleRow> {
        let rows = self.rows.schedules.section.last_rows().iter().enumerate();
        rows.map(|(at, schedule)| self.schedule_row((place, at), schedule)).collect()
    }

    fn schedule_row(&self, place: (usize, usize), schedule: &AdapterSchedule) -> ScheduleRow {
        let installation = &self.rows.installation;
        let late = schedule.next_run_at.map(|next| (self.snapshot.taken_at - next).as_seconds_f64());
        let state = match late {
            _ if schedule.is_enabled == Some(false) => ScheduleState::Off,
            Some(late) if late > self.thresholds.task_overdue => ScheduleState::Overdue,
            _ => ScheduleState::On,
        };
        let name = format!("{} schedule {}", installation.oid, schedule.id);
        ScheduleRow {
            id: TextId::of(&installation.adapter.name, &name),
            source: installation.label().into(),
            place,
            state,
        }
    }
}
