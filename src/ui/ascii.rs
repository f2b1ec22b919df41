use ratatui::buffer::Buffer;

/// Replaces every non-ASCII character by an ASCII one of the same width. Works on the finished screen, so that nothing is
/// missed.
pub(super) fn replace(buffer: &mut Buffer) {
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            let Some(cell) = buffer.cell_mut((x, y)) else { continue };
            if cell.symbol().is_ascii() {
                continue;
            }
            let width = crate::text::width(cell.symbol());
            let replacement = glyph(cell.symbol());
            cell.set_char(replacement);
            for beside in 1..u16::try_from(width).unwrap_or(1).max(1) {
                if let Some(cell) = buffer.cell_mut((x.saturating_add(beside), y)) {
                    cell.set_char(replacement);
                }
            }
        }
    }
}

fn glyph(symbol: &str) -> char {
    match symbol {
        "─" | "▃" => '-',
        "│" | "├" => '|',
        "└" => '`',
        "┌" | "┐" | "┘" | "▅" => '+',
        "…" => '~',
        "≥" | "→" => '>',
        "·" | "▂" | "░" => '.',
        "↑" | "␛" | "▲" => '^',
        "↓" => 'v',
        "▁" => '_',
        "▄" => '=',
        "▆" => '*',
        "▇" => '%',
        "█" => '#',
        _ => '?',
    }
}
