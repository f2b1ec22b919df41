//! What the server says in one of a few words.

/// An enum of which each value has a word of the server's: `ALL`, `as_str` and `of_word` follow from one list.
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $value:ident $(= $number:literal)? => $word:literal,)+
        }
    ) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$doc])* $value $(= $number)?,)+
        }

        impl $name {
            /// Every value, in the order of their declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// The server's own word for it; `other`, if there is such a value, for what this version of
            /// locktop does not know.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            /// The value with this word; none for another word.
            fn of_word(word: &[u8]) -> Option<Self> {
                $(if word == $word.as_bytes() {
                    return Some(Self::$value);
                })+
                None
            }
        }
    };
}

pub(crate) use words;
