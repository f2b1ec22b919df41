/// An enumeration of which each variant has a word: its name in snake case, or what `#[strum(serialize = …)]` says.
macro_rules! words {
    ($(#[$attribute:meta])* pub enum $name:ident { $($variants:tt)* }) => {
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray,
        )]
        $(#[$attribute])*
        #[strum(serialize_all = "snake_case")]
        pub enum $name {
            $($variants)*
        }

        impl $name {
            pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

            pub fn as_str(self) -> &'static str {
                self.into()
            }

            /// The variant with this word, in upper or lower case.
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str().eq_ignore_ascii_case(word))
            }
        }
    };
}
