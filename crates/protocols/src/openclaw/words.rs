//! A macro for closed sets of strings as enums that can be written and read.

/// Defines a string enum with `ALL`, `as_str`, `read`, `Display` and serde.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $word:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$each])* #[serde(rename = $text)] $word,)+
        }

        impl $name {
            /// All variants, in the spec's order.
            pub const ALL: &'static [Self] = &[$(Self::$word,)+];

            /// The string on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)+
                }
            }

            /// Reads the string on the wire.
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
