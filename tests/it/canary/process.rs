//! A hub in its own process, with all its output captured.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::kit::{http, operator_key};

/// The data directory, which the hub creates.
pub const MADE: &str = "made";
/// The maximum time of a start.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The hub.
pub struct Watched {
    pub url: String,
    pub operator: String,
    pub http: reqwest::Client,
    child: Option<Child>,
    data: TempDir,
    words: TempDir,
}

/// What the stopped hub left behind.
pub struct Stopped {
    pub printed: String,
    pub logs: String,
    pub data: TempDir,
}

impl Watched {
    pub fn start() -> Self {
        let (data, words) =
            (TempDir::new().expect("a directory"), TempDir::new().expect("another"));
        let operator = operator_key();
        let file = |name: &str| File::create(words.path().join(name)).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_rialto"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path().join(MADE))
            .args(["--set", "egress.allow=127.0.0.0/8"])
            .args(["--set", "registry.sync_wait=1ms"])
            .args(["--set", &format!("clara.process_id={}", rialto_protocols::clara::PROCESS)])
            .args(["--set", "relay.accept_direct=true"])
            .args(["--set", "limits.writes_per_minute=0"])
            .args(["--set", "limits.wrong_keys_per_minute=0"])
            .args(["--set", "limits.registrations_per_minute=0"])
            .args(["--set", "limits.registrations_per_minute_total=0"])
            .env("RIALTO_OPERATOR_KEY", &operator)
            .env("RIALTO_LOG", "trace")
            .stdin(Stdio::null())
            .stdout(file("printed"))
            .stderr(file("logs"))
            .spawn()
            .expect("the binary starts");
        let mut hub =
            Self { url: String::new(), operator, http: http(), child: Some(child), data, words };
        let began = Instant::now();
        while hub.url.is_empty() {
            let printed = hub.read("printed");
            let found = printed.split_whitespace().find(|word| word.starts_with("http://"));
            hub.url = found.unwrap_or_default().to_owned();
            assert!(
                began.elapsed() < TIME_LIMIT,
                "it never printed its address: {}",
                hub.read("logs")
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        hub
    }

    fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.words.path().join(name)).expect("a file");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Kills the process, so that its log file is as it was in use.
    pub fn stop(mut self) -> Stopped {
        self.kill();
        let (printed, logs) = (self.read("printed"), self.read("logs"));
        let data = std::mem::replace(&mut self.data, TempDir::new().expect("a directory"));
        Stopped { printed, logs, data }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.kill();
    }
}
