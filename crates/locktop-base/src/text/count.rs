/// All digits in groups of three: `1,234`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// At most four columns, truncated and never rounded up: `999`, `1.2k`, `12k`, `999k`, `1.2M`, … to `18E`.
#[must_use]
pub fn count_short(number: u64) -> String {
    let (mut scaled, mut remainder, mut unit) = (number, 0, None);
    for next in ['k', 'M', 'G', 'T', 'P', 'E'] {
        if scaled < 1000 {
            break;
        }
        (scaled, remainder, unit) = (scaled / 1000, scaled % 1000, Some(next));
    }
    match unit {
        None => scaled.to_string(),
        Some(unit) if scaled < 10 => format!("{scaled}.{}{unit}", remainder / 100),
        Some(unit) => format!("{scaled}{unit}"),
    }
}
