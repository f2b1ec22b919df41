use super::BoardBuilder;
use crate::model::Text;
use crate::model::adapter::AdapterSchedule;
use crate::model::systems::TextId;

#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleRow {
    pub id: TextId,
    pub source: Text,
    pub place: (usize, usize),
    pub schedule: AdapterSchedule,
    pub state: ScheduleState,
}

words! {
    /// The state of a schedule, worst first.
    pub enum ScheduleState {
        /// It was due longer than `[thresholds] task_overdue` ago, and was not started.
        Overdue,
        On,
        Off,
    }
}

impl BoardBuilder<'_> {
    pub(super) fn schedules(&self, place: usize) -> Vec<ScheduleRow> {
        let rows = self.rows.schedules.last_rows().iter().enumerate();
        rows.map(|(at, schedule)| self.schedule_row((place, at), schedule)).collect()
    }

    fn schedule_row(&self, place: (usize, usize), schedule: &AdapterSchedule) -> ScheduleRow {
        // Rows that were read some time ago may have been started since.
        let read_at = self.rows.schedules.taken_at.unwrap_or(self.snapshot.taken_at);
        let late = schedule.next_run_at.map(|next| (read_at - next).as_seconds_f64());
        let state = match late {
            _ if schedule.is_enabled == Some(false) => ScheduleState::Off,
            Some(late) if late > self.thresholds.task_overdue => ScheduleState::Overdue,
            _ => ScheduleState::On,
        };
        ScheduleRow {
            id: self.id(&format!("schedule {}", schedule.id)),
            source: self.source.clone(),
            place,
            schedule: schedule.clone(),
            state,
        }
    }
}
