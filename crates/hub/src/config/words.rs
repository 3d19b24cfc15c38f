//! Settings that are one word out of a few.

use super::value::{Misfit, Setting, quoted};

macro_rules! words {
    ($($(#[$about:meta])* $Name:ident { $($(#[$doc:meta])* $Word:ident = $text:literal,)+ })+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Name { $($(#[$doc])* $Word,)+ }

        impl $Name {
            /// The word as it is configured.
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

            fn from_text(text: &str) -> Result<Self, Misfit> {
                match text {
                    $($text => Ok(Self::$Word),)+
                    _ => Err(Misfit::new(text, "is not one of the choices")),
                }
            }

            fn to_toml(&self) -> String {
                quoted(self.as_str())
            }
        }
    )+};
}

words! {
    /// How a caller of a protocol shows who it is.
    Access {
        /// By its key, always.
        Key = "key",
        /// By the agent id in the body, without a key: for development only.
        Open = "open",
    }

    /// What becomes of a relay message whose receiver is not there.
    Offline {
        /// It waits.
        Queue = "queue",
        /// It fails at once.
        Fail = "fail",
    }

    /// The HTTP status of a relay answer that reports a failed delivery.
    FailedStatus {
        /// 200, as the relay protocol prints it: the failure is in the body.
        Ok = "ok",
        /// An error status, for clients that look at nothing else.
        Error = "error",
    }

    /// Which address the registry's `/discover` shows for an agent.
    DiscoverEndpoint {
        /// The agent's own.
        Agent = "agent",
        /// The hub's, so that every call passes through it.
        Hub = "hub",
    }

    /// How log lines are written.
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
        /// Only what broke.
        Error = "error",
        /// And what looks wrong.
        Warn = "warn",
        /// And what happened.
        Info = "info",
        /// And how.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }

    /// Where the hub keeps what it knows.
    Backend {
        /// In one file of the data directory.
        Sqlite = "sqlite",
        /// In memory only: a restart loses everything.
        Memory = "memory",
    }
}
