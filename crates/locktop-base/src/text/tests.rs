use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::*;

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[ -~]{0,8}",
        "[\\x00-\\x1f\\x7f-\\xa0]{1,3}",
        "[\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{feff}\u{ad}\u{e0020}\u{fe0f}]{1,3}",
        "[\u{300}-\u{310}\u{ff9e}\u{ff9f}\u{1f1e6}-\u{1f1ff}]{1,9}",
        "[\u{4e00}-\u{4e10}\u{ac00}-\u{ac10}\u{644}\u{627}\u{915}\u{94d}\u{937}\u{1100}\u{1161}]{1,4}",
        Just("👨\u{200d}👩\u{1f3fd}\u{200d}👧❤\u{fe0f}".to_owned()),
        Just("\x1b[31m\x1b]0;title\x07\u{9b}2J\r\n\t".to_owned()),
        Just(" \u{3000} ".to_owned()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn columns(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
            || matches!(c, '\u{e0000}'..='\u{e0fff}')
    })
}

proptest! {
    #[test]
    fn one_line_is_harmless_and_idempotent(text in hostile()) {
        let line = one_line(&text);
        prop_assert!(is_harmless(&line), "{line:?}");
        prop_assert!(!line.contains("  ") && line.trim() == line, "{line:?}");
        prop_assert!(line.chars().all(|c| c == ' ' || !c.is_whitespace()), "{line:?}");
        prop_assert_eq!(one_line(&line), line.as_ref());
    }

    #[test]
    fn a_prefix_is_cut_as_the_whole(text in hostile(), n in 0_usize..40) {
        let (whole, prefix) = (one_line(&text), one_line_prefix(&text, n));
        prop_assert_eq!(fit(&prefix, n), fit(&whole, n), "{:?} {:?}", &prefix, &whole);
    }

    #[test]
    fn fit_never_exceeds_its_columns(text in hostile(), n in 0_usize..40) {
        let line = one_line(&text);
        let fitted = fit(&line, n);
        prop_assert!(columns(&fitted) <= n, "{fitted:?}");
        prop_assert_eq!(fitted == line, columns(&line) <= n);
        let kept = fitted.strip_suffix(ELLIPSIS).unwrap_or(&fitted);
        prop_assert!(line.starts_with(kept));
    }

    #[test]
    fn fit_pad_fills_its_columns_exactly(text in hostile(), n in 0_usize..40) {
        let line = one_line(&text);
        for align in [Align::Left, Align::Right] {
            let field = fit_pad(&line, n, align);
            prop_assert_eq!(columns(&field), n, "{:?}", &field);
            prop_assert_eq!(width(&field), n);
            prop_assert!(is_harmless(&field));
        }
    }

    #[test]
    fn wrapped_lines_fit_and_keep_the_words(text in hostile(), n in 3_usize..40) {
        let wrapped = lines(&text, n);
        for line in &wrapped {
            prop_assert!(columns(line) <= n, "{line:?} in {n}");
            prop_assert!(is_harmless(line) && !line.ends_with(' '), "{line:?}");
        }
        let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
        prop_assert_eq!(letters(&wrapped.concat()), letters(&one_line(&text)));
    }

    #[test]
    fn ascii_keeps_the_width(text in hostile()) {
        let line = one_line(&text);
        let plain = ascii(&line);
        prop_assert!(plain.is_ascii() && is_harmless(&plain));
        prop_assert_eq!(plain.len(), width(&line));
    }

    #[test]
    fn a_duration_has_at_most_six_columns(seconds in prop_oneof![any::<f64>(), 0.0..1e7, 0.0..2e10]) {
        prop_assert!(duration(seconds).len() <= 6, "{}", duration(seconds));
    }

    #[test]
    fn a_short_count_has_at_most_four_columns(number in prop_oneof![any::<u64>(), 0..10_000_000_u64]) {
        prop_assert!(count_short(number).len() <= 4, "{}", count_short(number));
        prop_assert_eq!(count(number).replace(',', ""), number.to_string());
    }
}

#[test]
fn one_line_by_example() {
    for (text, line) in [
        ("", ""),
        ("select 1", "select 1"),
        ("  select\r\n\t1 ;\n", "select 1 ;"),
        ("\x1b[2Jhello\x07", "␛[2Jhello␇"),
        ("a\0b\u{7f}\u{9b}c", "a␀b␡<U+009B>c"),
        ("user\u{202e}txt.exe", "user<U+202E>txt.exe"),
        ("❤\u{fe0f} 👍\u{1f3fd} re\u{ad}port", "❤<U+FE0F> 👍<U+1F3FD> re<U+00AD>port"),
        ("报表\u{3000}生成任务", "报表 生成任务"),
        ("e\u{301}te\u{301}", "e\u{301}te\u{301}"),
        (
            "a\u{300}\u{300}\u{300}\u{300}\u{300}\u{300}\u{300}\u{300}b",
            "a\u{300}\u{300}\u{300}\u{300}\u{300}\u{300}b",
        ),
        ("\u{feff}bom\u{200b}", "<U+FEFF>bom<U+200B>"),
    ] {
        assert_eq!(one_line(text), line, "{text:?}");
    }
}

#[test]
fn text_that_needs_no_change_is_borrowed() {
    for text in ["", "select 1", "报表生成任务", "été"] {
        assert!(matches!(one_line(text), std::borrow::Cow::Borrowed(_)), "{text}");
        assert!(matches!(one_line_prefix(text, 3), std::borrow::Cow::Borrowed(_)), "{text}");
        assert!(matches!(fit(text, 20), std::borrow::Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn a_prefix_is_short_for_any_text() {
    let texts = [
        "x".repeat(1 << 20),
        "报".repeat(1 << 18),
        " \n".repeat(1 << 19),
        "\u{300}".repeat(1 << 19),
        "\x1b".repeat(1 << 20),
    ];
    for text in texts {
        let prefix = one_line_prefix(&text, 80);
        assert!(prefix.len() < 2000, "{}", prefix.len());
    }
    assert_eq!(one_line_prefix(&" ".repeat(100_000), 10), "…");
}

#[test]
fn fit_by_example() {
    for (text, columns, fitted) in [
        ("accounts", 8, "accounts"),
        ("accounts", 7, "accoun…"),
        ("accounts", 1, "…"),
        ("accounts", 0, ""),
        ("", 0, ""),
        ("报表生成任务", 12, "报表生成任务"),
        ("报表生成任务", 11, "报表生成任…"),
        ("报表生成任务", 10, "报表生成…"),
        ("报表", 2, "…"),
        ("报表", 1, "…"),
        ("e\u{301}te\u{301}s", 3, "e\u{301}t…"),
    ] {
        assert_eq!(fit(text, columns), fitted, "{text} in {columns}");
    }
    assert_eq!(fit_with("accounts", 4, ASCII_ELLIPSIS), "acc~");
    assert_eq!(fit_pad("报表生成", 6, Align::Right), " 报表…");
    assert_eq!(fit_pad("41s", 6, Align::Right), "   41s");
    assert_eq!(fit_pad("app", 6, Align::Left), "app   ");
}

#[test]
fn text_cut_in_the_middle_keeps_both_ends() {
    for (text, columns, expected) in [
        ("app@db:5432", 11, "app@db:5432"),
        ("app@/tmp/run/of/a/long/name:5432", 20, "app@/tmp/r…name:5432"),
        ("报表@数据库主机:5432", 12, "报表@…:5432"),
        ("abcdef", 3, "a…f"),
        ("abcdef", 1, "…"),
        ("abcdef", 0, ""),
    ] {
        let fitted = fit_middle(text, columns);
        assert!(width(&fitted) <= columns, "{fitted}");
        assert_eq!(fitted, expected);
    }
}

#[test]
fn lines_by_example() {
    assert_eq!(
        lines("select *\n  from accounts where id = 1\n", 14),
        ["select *", "  from", "accounts where", "id = 1"]
    );
    assert_eq!(lines("\r\n\r\na\tb\r\n\r\nc\r\n", 20), ["a   b", "", "c"]);
    assert_eq!(lines("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
    assert_eq!(lines("报表生成", 5), ["报表", "生成"]);
    assert_eq!(lines("报a", 1), ["…", "a"]);
    assert_eq!(lines("\x1b[1mx", 10), ["␛[1mx"]);
    assert!(lines("text", 0).is_empty() && lines("", 10).is_empty());
}

#[test]
fn duration_by_example() {
    for (seconds, text) in [
        (f64::NAN, "0s"),
        (f64::NEG_INFINITY, "0s"),
        (-3.0, "0s"),
        (0.0, "0s"),
        (0.44, "0.4s"),
        (9.99, "9.9s"),
        (10.0, "10s"),
        (41.9, "41s"),
        (171.2, "2m51s"),
        (3599.9, "59m59s"),
        (10_920.0, "3h02m"),
        (86_399.0, "23h59m"),
        (1_051_200.0, "12d04h"),
        (8_639_999.0, "99d23h"),
        (18_144_000.0, "210d"),
        (f64::INFINITY, "99999y"),
    ] {
        assert_eq!(duration(seconds), text, "{seconds}");
    }
}

#[test]
fn count_by_example() {
    for (number, exact, short) in [
        (0, "0", "0"),
        (999, "999", "999"),
        (1_000, "1,000", "1.0k"),
        (12_345, "12,345", "12k"),
        (999_999, "999,999", "999k"),
        (1_250_000, "1,250,000", "1.2M"),
        (u64::MAX, "18,446,744,073,709,551,615", "18E"),
    ] {
        assert_eq!((count(number).as_str(), count_short(number).as_str()), (exact, short));
    }
}
