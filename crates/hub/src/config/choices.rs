//! Settings with a fixed set of values.

use super::value::{InvalidValue, Setting, quote_toml};

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

        impl Setting for $Name {
            fn expected() -> String {
                format!("one of {}", [$($text),+].join(", "))
            }

            fn example() -> &'static str {
                [$($text),+][0]
            }

            fn from_text(text: &str) -> Result<Self, InvalidValue> {
                match text {
                    $($text => Ok(Self::$Word),)+
                    _ => Err(InvalidValue::new(text, "is not one of the choices")),
                }
            }

            fn to_toml(&self) -> String {
                quote_toml(self.as_str())
            }
        }
    )+};
}

choices! {
    /// How callers of a protocol authenticate.
    Access {
        /// Always with a key.
        Key = "key",
        /// With the agent id in the body, without a key: for development only.
        Open = "open",
    }

    /// What happens to a relay message whose receiver is offline.
    Offline {
        /// It is queued.
        Queue = "queue",
        /// It fails at once.
        Fail = "fail",
    }

    /// The HTTP status of a relay response that reports a failed delivery.
    FailedStatus {
        /// 200, as the relay protocol specifies: the failure is in the body.
        Ok = "ok",
        /// An error status, for clients that check only the status.
        Error = "error",
    }

    /// Which endpoint the registry's `/discover` shows for an agent.
    DiscoverEndpoint {
        /// The agent's own endpoint.
        Agent = "agent",
        /// The hub's endpoint, so that every call passes through the hub.
        Hub = "hub",
    }

    /// The format of log lines.
    LogFormat {
        /// Text for a terminal, JSON for anything else.
        Auto = "auto",
        /// One JSON object per line.
        Json = "json",
        /// Text.
        Text = "text",
    }

    /// The least important log lines that are still written.
    Level {
        /// Failures only.
        Error = "error",
        /// Also suspicious conditions.
        Warn = "warn",
        /// Also normal events.
        Info = "info",
        /// Also details for debugging.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }

    /// Where the hub stores its data.
    Backend {
        /// In one file in the data directory.
        Sqlite = "sqlite",
        /// In memory only: a restart loses everything.
        Memory = "memory",
    }
}
