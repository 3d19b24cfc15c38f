//! The real binary in its own process, for tests that kill it.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{Lines, output};

/// A hub process. It is killed when dropped.
pub struct Process {
    child: Child,
    pub url: String,
    /// The lines it had printed by the time it was ready.
    pub greeting: Vec<String>,
}

impl Process {
    /// `rialto serve` or `rialto dev` on a free port over a data directory.
    pub fn start(verb: &str, data: &Path, more: &[&str]) -> Self {
        Self::with_env(verb, data, more, &[])
    }

    pub fn with_env(verb: &str, data: &Path, more: &[&str], env: &[(&str, &str)]) -> Self {
        Self::at("127.0.0.1:0", verb, data, more, env)
    }

    /// The same at a given address.
    pub fn at(address: &str, verb: &str, data: &Path, more: &[&str], env: &[(&str, &str)]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_rialto"))
            .arg(verb)
            .args(["--listen", address, "--data"])
            .arg(data)
            .args(more)
            .envs(env.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        // Owned before the wait, so that it is killed even if the wait fails.
        let mut this = Self { child, url: String::new(), greeting: Vec::new() };
        let (greeting, url) = Lines::of(this.child.stdout.take()).address();
        this.url = url.unwrap_or_else(|| panic!("the hub ended early: {greeting:?}"));
        this.greeting = greeting;
        this
    }

    /// Sends SIGKILL and waits for the exit.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Sends SIGTERM and waits for the exit.
    #[cfg(unix)]
    pub fn stop(mut self) -> std::process::ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        super::ended(&mut self.child)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the binary to its end: exit code, standard output and standard error.
pub fn run(arguments: &[&str]) -> (i32, String, String) {
    // The user who runs the tests may have contexts.
    let home = tempfile::TempDir::new().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
    let output = output(command.args(arguments).env("RIALTO_HOME", home.path())).expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Recomputes all money and jobs of a data directory that no hub uses.
#[track_caller]
pub fn assert_audit_is_clean(data: &Path) {
    let (code, said, problem) = run(&["audit", "--data", data.to_str().expect("a path")]);
    assert_eq!(code, 0, "{said}{problem}");
}
