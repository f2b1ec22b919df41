//! Whose a table is, and whether its owner is trusted.
//!
//! To use a table is to run what its owner wrote, with the rights of the role that is connected. What is not trusted is shown as
//! far as that runs nothing, and never acted on.

use locktop_tasks::trust::remedy;

use super::Text;

/// The owner of a table, and whether he is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owner {
    /// What the role is called; empty where it is not known.
    pub name: Text,
    /// Who owns the table, its schema or a part of it without being trusted: none where all of them are.
    pub stranger: Option<Text>,
    /// The table of another role that a bare name would mean, if this one of a stranger were not before it on the search path.
    pub hides: Option<Text>,
}

impl Owner {
    /// Why nothing is done to a table of this name, where nothing is.
    pub fn refusal(&self, table: &str) -> Option<String> {
        let stranger = self.stranger.as_deref()?;
        Some(format!("{table} belongs to {stranger}, who is not trusted; {}", remedy(stranger)))
    }

    /// The fact for a question: none where the owner is not known.
    pub fn fact(&self, table: &str) -> Option<String> {
        (!self.name.is_empty()).then(|| format!("table {table} of {}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_is_named_with_what_helps() {
        let owner = Owner { name: "app".into(), stranger: Some("app".into()), hides: None };
        let expected = "public.t belongs to app, who is not trusted; \
                        --trust-owner app, or trusted_owners = [\"app\"] in the config, permits it";
        assert_eq!(owner.refusal("public.t").as_deref(), Some(expected));
        let trusted = Owner { stranger: None, ..owner };
        assert_eq!(
            (trusted.refusal("t"), trusted.fact("public.t")),
            (None, Some("table public.t of app".to_owned()))
        );
        assert_eq!(Owner::default().fact("t"), None);
    }
}
