use super::Column;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar for each column, or the sign of its event, or a blank if it is not known; at most `room` of them.
pub(super) fn bars(columns: &[Column], room: usize) -> String {
    let room = room.min(columns.len()).max(1);
    let most = columns.iter().map(|column| column.waiting).max().unwrap_or_default().max(1);
    let of = |place: usize| place * columns.len() / room;
    let bar = |place: usize| {
        let here = columns.get(of(place)..of(place + 1)).unwrap_or_default();
        if let Some(sign) = here.iter().find_map(|column| column.sign) {
            return sign;
        }
        if !here.iter().any(|column| column.is_known) {
            return ' ';
        }
        let value = here.iter().map(|column| column.waiting).max().unwrap_or_default();
        let step = if value == 0 { 0 } else { 1 + u64::from(value) * 6 / u64::from(most) };
        usize::try_from(step).ok().and_then(|step| BARS.get(step)).copied().unwrap_or('█')
    };
    (0..room).map(bar).collect()
}
