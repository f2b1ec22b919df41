pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// Escapes text for HTML, without line breaks inside times and dates.
pub(super) fn text(text: &str) -> String {
    let is_time = |word: &str| {
        let is_of_it = |byte: u8| byte.is_ascii_digit() || b":.,;+-".contains(&byte);
        let core = word.replace('–', "-");
        core.len() >= 5
            && core.bytes().all(is_of_it)
            && core.bytes().filter(|byte| b":-".contains(byte)).count() >= 2
    };
    let words = text.split(' ').map(|word| {
        let escaped = escape(word);
        if is_time(word) { format!("<time>{escaped}</time>") } else { escaped }
    });
    words.collect::<Vec<_>>().join(" ")
}
