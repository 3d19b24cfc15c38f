//! Closed sets of words, each an enum that can be written and read.

/// Makes an enum of words with `ALL`, `as_str`, `read`, `Display` and serde by the word.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $word:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$each])* #[serde(rename = $text)] $word,)+
        }

        impl $name {
            /// All of them, in the spec's order.
            pub const ALL: &'static [Self] = &[$(Self::$word,)+];

            /// The word as it is written.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)+
                }
            }

            /// What a word means.
            pub fn read(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(super) use words;
