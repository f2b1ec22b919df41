//! "Did you mean …?"

/// The candidate closest to `word`, if one is close enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Whether that is the word, or it but for one letter more, less, another or in the place of its neighbour.
#[must_use]
pub fn is_nearly(written: &str, word: &str) -> bool {
    distance(written, word) <= 1
}

/// Insertions, deletions, replacements and swaps of neighbours that make one word of the other (optimal string
/// alignment), with case and the choice of `-` or `_` left aside.
fn distance(left: &str, right: &str) -> usize {
    let normal = |text: &str| text.to_lowercase().replace('-', "_");
    strsim::osa_distance(&normal(left), &normal(right))
}

#[cfg(test)]
mod tests {
    use super::{is_nearly, nearest};

    #[test]
    fn one_edit_is_near_and_two_are_not() {
        for (written, expected) in [
            ("recover", true),
            ("Recover", true),
            ("recvoer", true),
            ("recove", true),
            ("recoverr", true),
            ("rekover", true),
            ("rekofer", false),
            ("app", false),
            ("", false),
        ] {
            assert_eq!(is_nearly(written, "recover"), expected, "{written}");
        }
    }

    #[test]
    fn finds_what_was_meant() {
        let words = ["host", "port", "read_only", "refresh"];
        for (typed, meant) in [
            ("hsot", Some("host")),
            ("read-only", Some("read_only")),
            ("refrsh", Some("refresh")),
            ("Port", Some("port")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, words), meant, "{typed}");
        }
    }
}
