/// Defines an enum in which each value has a word of the server; generates `ALL`, `as_str` and `of_word` from one list.
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
            /// Every value, in order of declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// The server's word for this value; `other`, if the enum has it, for a value that this version of locktop does not know.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

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
