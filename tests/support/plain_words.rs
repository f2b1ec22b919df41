//! Finds words that must not appear in a text for users: the rules are in `CONTRIBUTING.md`, the words in
//! `WORDS`.
//!
//! [`violations`] takes any text, a page or a string of the program. Words are separated by spaces;
//! punctuation around them is ignored. `--looks` and `frees_now` are names, and never match.

#![allow(dead_code, reason = "each test program uses a part of it")]

/// Sequences of words, with alternatives, and their replacement.
const WORDS: &[(&str, &str)] = &[
    ("look|looks|looked|looking", "a snapshot; poll; see; check"),
    ("told|tell|tells|telling", "reported, shown, known"),
    ("say|says|said|saying", "reports, shows, states"),
    ("came|comes|coming", "appears, arrives, follows"),
    ("go|goes|going on", "continues"),
    ("gone", "ended, disconnected, removed"),
    ("went away", "ended, disconnected"),
    ("stand|stands|stood|standing", "is, appears, is listed"),
    ("is|are|was|were there", "exists"),
    ("give|gives|gave|given|giving back", "return, release"),
    ("somebody|somebody's|someone|someone's", "a session, a role"),
    ("nobody|nobody's|no-one", "no session, no role"),
    ("anybody|anybody's|anyone|anyone's|everybody|everybody's", "any session, any role"),
    ("whoever|whomever|whom", "the session that"),
    ("whatever", "any"),
    ("session|sessions|backend|backends|client|role whose", "the session's"),
    ("he|him|his|she|her", "the session"),
    ("ours|theirs|ourselves", "locktop's own; of other systems"),
    ("beside|besides", "next to, together with"),
    ("anew", "again"),
    ("by itself|themselves", "automatically, alone"),
    ("so many", "N, that many"),
    ("so long", "for N s"),
    ("held against", "compared with"),
    ("has it that", "states that"),
    ("is|are|was|were of", "belongs to, has"),
    ("is|are|was|were to be", "should, must"),
    ("ends|end|ended|ending a|the|this|that session", "terminates a session"),
    ("trouble|troubles", "the incident, the problem"),
    ("never read", "cannot be read: the reason"),
    ("in the|its|their|his way", "blocks, conflicts with"),
    ("hole|holes", "vulnerability; gap"),
    ("circle|circles", "wait cycle, deadlock"),
    ("may not", "cannot, is not permitted to"),
    (
        "where there|it|they|that|this|these|those|a|an|the|no|not|nothing|only|one|others|both|all|many",
        "if, when",
    ),
    ("as you like", "at your choice"),
    ("made anew|new", "remade, written again"),
    ("for people|somebody who", "for"),
];

/// Words that must not begin a sentence, except a question: the subject is a thing with a name.
const STARTS: &[&str] = &["who", "whoever", "whom", "what", "whatever", "where", "wherever", "of"];

/// The violations in a text, one line each, with the words around it.
pub(crate) fn violations(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let bare: Vec<String> = words.iter().map(|word| plain(word)).collect();
    let mut found = Vec::new();
    for (pattern, instead) in WORDS {
        let parts: Vec<Vec<&str>> = pattern.split(' ').map(|part| part.split('|').collect()).collect();
        for at in matches(&parts, &words, &bare) {
            found.push(format!("{:?} in {:?}: {instead}", pattern, around(&words, at)));
        }
    }
    for at in starts(&words) {
        // "of a lock: …" is a cell; "Of a lock it has …" is a sentence.
        let is_cell = words[at].starts_with("of");
        if STARTS.contains(&bare[at].as_str()) && !is_cell && !is_question(&words[at..]) {
            found.push(format!("a sentence begins with {:?}: name the thing", around(&words, at)));
        }
    }
    found
}

/// The positions where these words follow each other within one sentence.
fn matches(parts: &[Vec<&str>], words: &[&str], bare: &[String]) -> Vec<usize> {
    let fits = |at: &usize| {
        let here = bare.get(*at..*at + parts.len());
        here.is_some_and(|here| here.iter().zip(parts).all(|(word, part)| part.contains(&word.as_str())))
            && words[*at..*at + parts.len() - 1].iter().all(|word| !ends_sentence(word))
    };
    (0..words.len()).filter(fits).collect()
}

/// A word in lower case, without the punctuation around it. A word in capitals is SQL or a heading, and is
/// kept.
fn plain(word: &str) -> String {
    const AROUND: &[char] = &['.', ',', ';', ':', '!', '?', '(', ')', '[', ']', '"', '*', '…', '“', '”', '|'];
    let word = word.trim_matches(AROUND).trim_end_matches("'s");
    if word.len() > 1 && word.chars().all(char::is_uppercase) { word.to_owned() } else { word.to_lowercase() }
}

fn ends_sentence(word: &str) -> bool {
    word.trim_end_matches([')', '"', '*']).ends_with(['.', '!', '?', ':', ';', '|'])
}

/// The words that begin a sentence: the first one, and each capitalized word after the end of another
/// sentence.
fn starts(words: &[&str]) -> Vec<usize> {
    let begins = |at: &usize| {
        let is_capital = words[*at].trim_start_matches(['"', '(', '*', '[']).starts_with(char::is_uppercase);
        *at == 0 || (is_capital && ends_sentence(words[*at - 1]))
    };
    (0..words.len()).filter(begins).collect()
}

fn is_question(words: &[&str]) -> bool {
    let end = words.iter().find(|word| ends_sentence(word));
    end.is_some_and(|word| word.trim_end_matches([')', '"', '*']).ends_with('?'))
}

fn around(words: &[&str], at: usize) -> String {
    words[at.saturating_sub(3)..words.len().min(at + 6)].join(" ")
}
