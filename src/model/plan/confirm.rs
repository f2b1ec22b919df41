//! What somebody has to type before anything is done.

/// What has to be typed before something is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirm {
    /// Nothing can be confirmed: there is no target.
    Nothing,
    /// One target: the key `y` is enough.
    Yes,
    /// Several: the number of them.
    Count(usize),
    /// One that somebody alive owns: its process id, or the lease's id.
    Owner(String),
    /// One that nobody selected: the first word of its name.
    Name(String),
}

/// The longest word that is asked for.
const LONGEST: usize = 40;

impl Confirm {
    /// For so many targets. Of a single one that somebody alive owns, what has to be typed instead.
    pub(super) fn of(targets: usize, owner: Option<String>) -> Self {
        match (targets, owner) {
            (0, _) => Self::Nothing,
            (1, Some(owner)) => Self::Owner(owner),
            (1, None) => Self::Yes,
            (several, _) => Self::Count(several),
        }
    }

    /// The word to type; none where nothing can be confirmed.
    pub fn word(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Yes => Some("y".to_owned()),
            Self::Count(several) => Some(several.to_string()),
            Self::Owner(word) | Self::Name(word) => Some(word.clone()),
        }
    }

    /// Whether that is what has to be typed. Blanks around it do not count.
    pub fn accepts(&self, typed: &str) -> bool {
        self.word().is_some_and(|word| word == typed.trim())
    }

    /// What to type, in words; `unlocks` where it is a lease's, and not a process id.
    pub fn asks(&self, unlocks: bool) -> String {
        match self {
            Self::Nothing => "nothing to do".to_owned(),
            Self::Yes => "y to confirm".to_owned(),
            Self::Count(several) => format!("type {several} to confirm all {several}"),
            // A lease whose name nobody can type.
            Self::Owner(word) if word == "end" => "its owner may be alive: type end to confirm".to_owned(),
            Self::Owner(owner) => {
                let is_pid = owner.bytes().all(|byte| byte.is_ascii_digit());
                match (unlocks, is_pid) {
                    (true, _) => format!("its owner may be alive: type {owner}, the lease, to confirm"),
                    (_, true) => format!("its owner may be alive: type {owner}, its pid, to confirm"),
                    _ => format!("its worker may still be running: type {owner} to confirm"),
                }
            }
            Self::Name(name) => format!("nothing was selected: type {name} to confirm"),
        }
    }
}

/// Whether somebody can type that, and see what it is.
pub(super) fn is_typable(word: &str) -> bool {
    !word.is_empty() && word.len() <= LONGEST && word.chars().all(|character| character.is_ascii_graphic())
}
