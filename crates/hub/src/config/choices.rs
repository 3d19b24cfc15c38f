//! Settings with a fixed set of values.

use rialto_config::choices;

choices! {
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
        /// In a PostgreSQL database that several nodes share.
        Postgres = "postgres",
        /// In memory only: a restart loses everything.
        Memory = "memory",
    }
}
