const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One bar per value, newest at the right, in exactly `columns` columns. A measured zero is the lowest bar; columns before
/// the first measurement are blank. The tallest value reaches the top.
pub(in crate::ui) fn bars(values: &[u32], columns: usize) -> String {
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let blanks = columns.saturating_sub(values.len());
    let shown = values.iter().skip(values.len().saturating_sub(columns));
    let bar = |value: &u32| {
        // Any value above zero must be taller than zero.
        let step = if *value == 0 { 0 } else { 1 + (u64::from(*value) * 6 / u64::from(most)) };
        usize::try_from(step).ok().and_then(|step| BARS.get(step)).copied().unwrap_or('█')
    };
    std::iter::repeat_n(' ', blanks).chain(shown.map(bar)).collect()
}

#[cfg(test)]
mod tests {
    use super::bars;

    #[test]
    fn bars_have_one_column_each_and_the_newest_is_right() {
        assert_eq!(bars(&[], 4), "    ");
        assert_eq!(bars(&[0, 0], 4), "  ▁▁");
        assert_eq!(bars(&[0, 1, 100], 3), "▁▂█");
        assert_eq!(bars(&[5, 5, 0, 0], 2), "▁▁");
        assert_eq!(bars(&[u32::MAX, 1], 2), "█▂");
    }
}
