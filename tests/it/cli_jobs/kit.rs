//! Shared by these tests: a hub, an agent with credits, and the binary run for it.

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{Agent, TestHub, output_given};

/// A hub, the command line's home directory, and an owner with a hundred credits.
pub struct CliFixture {
    pub hub: TestHub,
    pub home: TempDir,
    pub boss: Agent,
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Deref for CliFixture {
    type Target = TestHub;

    fn deref(&self) -> &TestHub {
        &self.hub
    }
}

impl CliFixture {
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(flags: &[(&str, &str)]) -> Self {
        let hub = TestHub::serve(flags).await;
        let boss = hub.orchestrator("boss").await;
        hub.grant("boss", "100").await;
        Self { hub, home: TempDir::new().expect("a directory"), boss }
    }

    /// Runs a command as the boss.
    pub async fn run(&self, line: &[&str]) -> Ran {
        self.run_for(&self.boss, line).await
    }

    pub async fn run_for(&self, agent: &Agent, line: &[&str]) -> Ran {
        let mut command = self.command(line);
        command.env("RIALTO_KEY", &agent.key);
        finished(command, "").await
    }

    /// A command for this hub and home, without a key.
    pub fn command(&self, line: &[&str]) -> Command {
        command(self.home.path(), &self.url, line)
    }

    /// Posts a job as the boss and returns its id.
    pub async fn posted(&self, skill: &str, more: &[&str]) -> String {
        let line = ["job", "post", "--skill", skill, "--input", r#"{"text":"hello"}"#];
        let line = [&line[..], &["--budget", "0.10", "--json"], more].concat();
        self.run(&line).await.ok().str("/id")
    }

    /// Stores an agent in the context of this hub, as the runtime does.
    pub fn keep(&self, name: &str, agent: &Agent) {
        let context = self.home.path().join("contexts/default");
        let directory = context.join("agents").join(name);
        std::fs::create_dir_all(&directory).expect("made");
        let hub = format!("hub = \"{}\"\n", self.url);
        std::fs::write(context.join("context.toml"), hub).expect("written");
        std::fs::write(directory.join("agent.key"), &agent.key).expect("written");
    }

    /// The log file of a job of one of the context's agents; its directory is created.
    pub fn log_of(&self, name: &str, job: &str) -> std::path::PathBuf {
        let agents = self.home.path().join("contexts/default/agents");
        let directory = agents.join(name).join("jobs").join(format!("{job}.0123456789abcdef"));
        std::fs::create_dir_all(&directory).expect("made");
        directory.join("stderr")
    }

    /// Sends a worker's result through the hub's own API.
    pub async fn work(&self, worker: &Agent, job: &str, output: Value) {
        let body = json!({"ok": true, "output": output});
        let path = format!("/v1/jobs/{job}/result");
        self.post(&path, Some(&worker.key), &body).await.expect(200);
    }
}

/// The binary, isolated from this machine's settings.
pub fn command(home: &Path, hub: &str, line: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
    let ours = |name: &OsStr| name.to_string_lossy().starts_with("RIALTO_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
        command.env_remove(name);
    }
    command.env("RIALTO_HOME", home).env("RIALTO_HUB", hub).args(line);
    command
}

/// Runs a command to its end on a blocking thread, since it waits for the hub.
pub async fn finished(mut command: Command, input: &str) -> Ran {
    let input = input.to_owned();
    let run = move || output_given(&mut command, &input).expect("the binary starts");
    let output = tokio::task::spawn_blocking(run).await.expect("no panic");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

impl Ran {
    /// Checks the exit code and returns the same.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        self.expect(0)
    }

    /// The one document on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        let wrong = |error| panic!("{error}: no single document in {self:#?}");
        serde_json::from_str(&self.out).unwrap_or_else(wrong)
    }

    /// The string at a JSON pointer.
    #[track_caller]
    pub fn str(&self, pointer: &str) -> String {
        let document = self.json();
        let found = document.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_else(|| panic!("no {pointer} in {document}")).to_owned()
    }

    /// Checks the failure in both forms: one line for people, one document for programs.
    #[track_caller]
    pub fn failed(self, code: i32, part: &str) -> Self {
        let ran = self.expect(code);
        assert!(ran.out.is_empty(), "{ran:#?}");
        assert!(ran.err.contains(part), "{part} is not in {ran:#?}");
        ran
    }
}
