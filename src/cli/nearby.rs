//! Words that are nearly the name of a command.

/// The word that somebody meant who wrote `written`: one that is a letter more, less, another or a swap away. None where it is
/// one of them itself.
pub(super) fn meant<'a>(written: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written: Vec<char> = written.chars().collect();
    words.into_iter().find(|word| is_one_edit(&written, &word.chars().collect::<Vec<_>>()))
}

/// Whether one insertion, deletion, replacement or swap of neighbours makes one of the other (Damerau, 1964).
fn is_one_edit(a: &[char], b: &[char]) -> bool {
    let same = |(a, b): &(&char, &char)| a == b;
    let head = a.iter().zip(b).take_while(same).count();
    let (a, b) = (a.get(head..).unwrap_or_default(), b.get(head..).unwrap_or_default());
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(same).count();
    let middle = |text: &[char]| text.get(..text.len() - tail).unwrap_or_default().to_vec();
    match (middle(a).as_slice(), middle(b).as_slice()) {
        ([_], [] | [_]) | ([], [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn one_edit_is_near_and_two_are_not() {
        let words = ["recover", "demo", "snapshot"];
        for (written, word) in [
            ("recvoer", Some("recover")),
            ("recove", Some("recover")),
            ("recoverr", Some("recover")),
            ("rekover", Some("recover")),
            ("edmo", Some("demo")),
            ("dem", Some("demo")),
            ("recover", None),
            ("rekofer", None),
            ("app", None),
            ("", None),
            ("d", None),
        ] {
            assert_eq!(meant(written, words), word, "{written}");
        }
    }
}
