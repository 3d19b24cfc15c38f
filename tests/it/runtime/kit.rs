//! Shared by these tests: `rialto agent run` in its own process, which can be killed.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::kit::{TestHub, eventually, in_time};

/// A directory with handlers, and the command line's home directory beside them.
pub struct Place {
    pub directory: TempDir,
}

/// A running agent. It is killed when dropped.
pub struct Runtime {
    child: Child,
    said: PathBuf,
}

impl Place {
    pub fn new() -> Self {
        Self { directory: TempDir::new().expect("a directory") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file beside the handlers.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        path
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The binary, isolated from this machine's settings.
    pub fn rialto(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
        let ours = |name: &OsStr| name.to_string_lossy().starts_with("RIALTO_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
            command.env_remove(name);
        }
        command.env("RIALTO_HOME", self.path("home")).current_dir(self.directory.path());
        command
    }

    /// `rialto agent run --json` with these arguments; its output goes to a file of that name.
    pub fn run(&self, said: &str, arguments: &[&str]) -> Runtime {
        self.run_with(said, arguments, &[])
    }

    /// The same with further environment variables.
    pub fn run_with(&self, said: &str, arguments: &[&str], env: &[(&str, &str)]) -> Runtime {
        let said = self.path(said);
        let out = fs::OpenOptions::new().create(true).append(true).open(&said).expect("a file");
        let child = self
            .rialto()
            .args(["agent", "run", "--json"])
            .args(arguments)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(out.try_clone().expect("a file"))
            .stderr(out)
            .spawn()
            .expect("the binary starts");
        Runtime { child, said }
    }

    /// The same, and waits until the hub lists it.
    pub async fn at_work(&self, hub: &TestHub, said: &str, arguments: &[&str]) -> Runtime {
        self.at_work_with(hub, said, arguments, &[]).await
    }

    /// The same with further environment variables.
    pub async fn at_work_with(
        &self,
        hub: &TestHub,
        said: &str,
        arguments: &[&str],
        env: &[(&str, &str)],
    ) -> Runtime {
        let arguments = [arguments, &["--hub", &hub.url]].concat();
        let mut runtime = self.run_with(said, &arguments, env);
        eventually(async || {
            runtime.assert_running();
            runtime.said("at_work").is_some()
        })
        .await;
        runtime
    }
}

impl Runtime {
    /// Sends SIGKILL and waits for the exit.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Sends SIGTERM and waits for the exit.
    pub async fn terminate(&mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        assert!(sent.success());
        self.ended().await
    }

    /// Waits until it exits by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        in_time(async {
            loop {
                if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                    return status;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await
    }

    /// All its events, oldest first.
    pub fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.said).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Its last event of a kind.
    pub fn said(&self, event: &str) -> Option<Value> {
        self.events().into_iter().rev().find(|said| said["event"] == event)
    }

    #[track_caller]
    pub fn assert_running(&mut self) {
        let ended = self.child.try_wait().expect("it can be waited for");
        let said = || fs::read_to_string(&self.said).unwrap_or_default();
        assert!(ended.is_none(), "it ended with {ended:?}: {}", said());
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The key file of an agent in this home directory.
pub fn key_of(place: &Place, agent: &str) -> PathBuf {
    let contexts = fs::read_dir(place.path("home/contexts")).expect("contexts");
    let keys = contexts.flatten().map(|at| at.path().join("agents").join(agent).join("agent.key"));
    keys.into_iter().find(|key| key.exists()).expect("a key")
}
