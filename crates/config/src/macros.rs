//! Macros that declare types of settings.

/// Declares settings with a fixed set of values.
#[macro_export]
macro_rules! choices {
    ($($(#[$about:meta])* $Name:ident { $($(#[$doc:meta])* $Word:ident = $text:literal,)+ })+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Name { $($(#[$doc])* $Word,)+ }

        impl $Name {
            /// The value as it is configured.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$Word => $text,)+ }
            }
        }

        impl $crate::Setting for $Name {
            fn expected() -> String {
                format!("one of {}", [$($text),+].join(", "))
            }

            const EXAMPLE: &'static str = [$($text),+][0];

            fn from_text(text: &str) -> Result<Self, $crate::InvalidValue> {
                match text {
                    $($text => Ok(Self::$Word),)+
                    _ => Err($crate::InvalidValue::new(text, "is not one of the choices")),
                }
            }

            fn to_toml(&self) -> String {
                $crate::quote_toml(self.as_str())
            }
        }
    )+};
}

/// Declares settings that are text with a grammar.
#[macro_export]
macro_rules! names {
    ($($(#[$about:meta])* $Name:ident by $read:ident, $expected:literal, $example:literal;)+) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Name(String);

        impl $Name {
            /// The value as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl $crate::Setting for $Name {
            fn expected() -> String {
                $expected.to_owned()
            }

            const EXAMPLE: &'static str = $example;

            fn from_text(text: &str) -> Result<Self, $crate::InvalidValue> {
                $read(text).map(Self).map_err(|wrong| $crate::InvalidValue::new(text, wrong))
            }

            fn to_toml(&self) -> String {
                $crate::quote_toml(self)
            }
        }
    )+};
}
