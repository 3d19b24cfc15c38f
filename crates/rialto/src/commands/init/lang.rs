//! The languages of handler templates, and their files.

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Lang {
    Python,
    Ts,
    Sh,
    Rust,
}

/// The template of the file with the agent's skills.
const AGENT: &str = include_str!("agent.toml.txt");
/// The command that hires the new agent.
pub const POST_JOB_EXAMPLE: &str =
    r#"rialto job post --skill shout --input '{"text":"hello"}' --budget 0.10 --wait"#;

impl Lang {
    /// The files of the template. The agent is called `name`, and the one its test runs `test`.
    pub fn files(self, name: &str, test: &str) -> Vec<(&'static str, String)> {
        let own: &[(&'static str, &str)] = match self {
            Self::Python => &[
                ("handler.py", include_str!("python/handler.py")),
                ("test_agent.py", include_str!("python/test_agent.py")),
            ],
            Self::Ts => &[
                ("handler.ts", include_str!("ts/handler.ts")),
                ("agent.test.ts", include_str!("ts/agent.test.ts")),
                ("package.json", include_str!("ts/package.json")),
                ("tsconfig.json", include_str!("ts/tsconfig.json")),
                (".gitignore", "node_modules/\ndist/\n"),
            ],
            Self::Sh => &[
                ("handler.sh", include_str!("sh/handler.sh")),
                ("test.sh", include_str!("sh/test.sh")),
            ],
            Self::Rust => &[
                ("src/main.rs", include_str!("rust/main.rs")),
                ("tests/agent.rs", include_str!("rust/agent.rs")),
                ("Cargo.toml", include_str!("rust/Cargo.toml.txt")),
                (".gitignore", "/target\n"),
            ],
        };
        // A JSON string is also a TOML string.
        let quoted = serde_json::Value::from(name).to_string();
        let agent = AGENT.replace("{exec}", self.exec()).replace("{name}", &quoted);
        let own = own.iter().map(|(name, text)| (*name, text.replace("shout-test", test)));
        std::iter::once(("agent.toml", agent)).chain(own).collect()
    }

    fn exec(self) -> &'static str {
        match self {
            Self::Python => "python3 handler.py",
            Self::Ts => "node dist/handler.js",
            Self::Sh => "sh handler.sh",
            Self::Rust => "target/debug/shout-agent",
        }
    }

    /// The next commands to type.
    pub fn next_steps(self) -> Vec<&'static str> {
        let build: &[&str] = match self {
            Self::Python | Self::Sh => &[],
            Self::Ts => &["npm install", "npm run build"],
            Self::Rust => &["cargo build"],
        };
        [build, &["rialto agent run", POST_JOB_EXAMPLE], &[self.test()]].concat()
    }

    fn test(self) -> &'static str {
        match self {
            Self::Python => "python3 test_agent.py",
            Self::Ts => "npm test",
            Self::Sh => "sh test.sh",
            Self::Rust => "cargo test",
        }
    }
}
