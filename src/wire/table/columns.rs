use crate::text::{Align, fit_pad, width};

const WIDEST: usize = 48;

/// Lays `rows` out under `heads`; the last column is not limited. Cells must be one line each.
pub fn laid_out<R: AsRef<[String]>>(heads: &[(&str, Align)], rows: &[R]) -> Vec<String> {
    let mut widths: Vec<usize> = heads.iter().map(|(head, _)| width(head)).collect();
    for row in rows {
        for (columns, cell) in widths.iter_mut().zip(row.as_ref()) {
            *columns = (*columns).max(width(cell)).min(WIDEST);
        }
    }
    let line = |cells: &[&str]| {
        let mut line = String::new();
        for (place, ((cell, columns), (_, align))) in cells.iter().zip(&widths).zip(heads).enumerate() {
            if place > 0 {
                line.push_str("  ");
            }
            if place + 1 == heads.len() {
                line.push_str(cell);
            } else {
                line.push_str(&fit_pad(cell, *columns, *align));
            }
        }
        line
    };
    let mut lines = vec![line(&heads.iter().map(|(head, _)| *head).collect::<Vec<_>>())];
    lines.extend(rows.iter().map(|row| line(&row.as_ref().iter().map(String::as_str).collect::<Vec<_>>())));
    lines
}
