//! The time line: a picture of its own within the page, and a row of bars.

use std::fmt::Write;

use super::Column;

/// The size of the picture, in its own units.
const WIDTH: usize = 960;
const HEIGHT: u32 = 120;

/// Signs that are drawn.
const SIGNS: usize = 150;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// An SVG element without anything to load. `times` are what stands below its begin and its end.
pub(super) fn svg(columns: &[Column], times: (&str, &str)) -> String {
    let most = columns.iter().map(|column| column.waiting).max().unwrap_or_default().max(1);
    let step = WIDTH / columns.len().max(1);
    let height = |value: u32| u64::from(value) * u64::from(HEIGHT) / u64::from(most);
    let (mut waiting, mut roots, mut signs, mut unknown) =
        (String::new(), String::new(), String::new(), String::new());
    let mut drawn = 0;
    for (at, column) in columns.iter().enumerate() {
        let x = at * step;
        if !column.is_known {
            // Into a string there is no error.
            let _ = write!(unknown, "M{x} 16h{step}v{HEIGHT}h-{step}z");
        }
        for (path, value) in [(&mut waiting, column.waiting), (&mut roots, column.roots.min(column.waiting))]
        {
            let high = height(value).max(u64::from(value > 0) * 2);
            if high > 0 {
                let _ = write!(
                    path,
                    "M{x} {}h{step}v{high}h-{step}z",
                    u64::from(HEIGHT).saturating_sub(high) + 16
                );
            }
        }
        if let Some(sign) = column.sign.filter(|_| drawn < SIGNS) {
            drawn += 1;
            let _ = write!(signs, "<text x=\"{x}\" y=\"12\">{sign}</text>");
        }
    }
    let (begin, end) = times;
    let bottom = HEIGHT + 16;
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"sessions that waited\">\
         <path class=\"u\" d=\"{unknown}\"/><path class=\"w\" d=\"{waiting}\"/><path class=\"r\" d=\"{roots}\"/><path class=\"a\" d=\"M0 {bottom}h{WIDTH}\"/>\
         <g class=\"s\">{signs}</g><text x=\"0\" y=\"{}\">{begin}</text>\
         <text x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\">{end}</text></svg>",
        HEIGHT + 34,
        HEIGHT + 30,
        HEIGHT + 30,
    )
}

/// A bar for each column, or the sign of what happened in it, or a blank where that is not known; none more than so many.
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
