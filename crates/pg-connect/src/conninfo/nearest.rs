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

/// Whether the two are equal, or differ by one letter: added, missing, replaced or swapped with its neighbour.
#[must_use]
pub fn is_nearly(written: &str, word: &str) -> bool {
    distance(written, word) <= 1
}

/// Number of insertions, deletions, replacements and swaps of neighbours between two words (optimal string alignment),
/// ignoring case and the difference between `-` and `_`.
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
