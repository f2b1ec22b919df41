#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirm {
    /// Nothing can be confirmed: there is no target.
    Nothing,
    /// One target: the key `y` is enough.
    Yes,
    /// Several targets: their number.
    Count(usize),
    /// One target with a live owner: the process id, or the id of the lease.
    Owner(String),
    /// One target that was not selected: the first word of its name.
    Name(String),
}

const LONGEST: usize = 40;

impl Confirm {
    /// `owner` is the word to type for a single target with a live owner.
    pub(super) fn of(targets: usize, owner: Option<String>) -> Self {
        match (targets, owner) {
            (0, _) => Self::Nothing,
            (1, Some(owner)) => Self::Owner(owner),
            (1, None) => Self::Yes,
            (several, _) => Self::Count(several),
        }
    }

    /// `None` if nothing can be confirmed.
    pub fn word(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Yes => Some("y".to_owned()),
            Self::Count(several) => Some(several.to_string()),
            Self::Owner(word) | Self::Name(word) => Some(word.clone()),
        }
    }

    /// Whether `typed` is the required word; surrounding blanks are ignored.
    pub fn accepts(&self, typed: &str) -> bool {
        self.word().is_some_and(|word| word == typed.trim())
    }

    /// The prompt; `unlocks` if the word is that of a lease, not a process id.
    pub fn asks(&self, unlocks: bool) -> String {
        match self {
            Self::Nothing => "nothing to do".to_owned(),
            Self::Yes => "y to confirm".to_owned(),
            Self::Count(several) => format!("type {several} to confirm all {several}"),
            // A lease whose name cannot be typed.
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

pub(super) fn is_typable(word: &str) -> bool {
    !word.is_empty() && word.len() <= LONGEST && word.chars().all(|character| character.is_ascii_graphic())
}
