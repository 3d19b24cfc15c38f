//! The hub over a failing disk, and its callers.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use super::disk::{DataDir, Fault};
use crate::crash::flags;
use crate::kit::{Lines, ended, operator_key};

/// Longer than this only if something hangs.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A hub process that may end by itself at any moment.
pub struct Hub {
    child: Child,
    /// Its address, if it got that far.
    pub url: Option<String>,
    complaint: Option<JoinHandle<String>>,
}

impl Hub {
    pub fn start(room: &DataDir, fault: &Fault) -> Self {
        Self::with_key(room, fault, &operator_key())
    }

    /// A hub with this operator key.
    pub fn with_key(room: &DataDir, fault: &Fault, key: &str) -> Self {
        Self::spawn(room, fault, &[("RIALTO_OPERATOR_KEY", key)])
    }

    /// A hub without an operator key, which has to create one.
    pub fn first(room: &DataDir, fault: &Fault) -> Self {
        Self::spawn(room, fault, &[])
    }

    fn spawn(room: &DataDir, fault: &Fault, env: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rialto"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(room.data())
            .args(flags())
            .env_remove("RIALTO_OPERATOR_KEY")
            .envs(env.iter().copied())
            .envs(fault.env(room))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        // Keep reading, or the hub would block on a full pipe.
        let mut errors = child.stderr.take().expect("a pipe");
        let complaint = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let greets = child.stdout.take();
        // Owned before the wait, so that it is killed even if the wait fails.
        let mut this = Self { child, url: None, complaint: Some(complaint) };
        this.url = Lines::of(greets).address().1;
        this
    }

    /// Waits until it has ended by itself; returns the status and its error output.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let status = ended(&mut self.child);
        let complaint = self.complaint.take().expect("asked once").join().expect("no panic");
        (status, complaint)
    }

    /// Sends SIGTERM and waits for the exit.
    pub fn stop(self) -> (ExitStatus, String) {
        let id = self.child.id().to_string();
        // It may have ended by itself already.
        Command::new("kill").args(["-TERM", &id]).output().expect("kill can be run");
        self.ended()
    }

    /// Sends SIGKILL and waits for the exit.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    #[track_caller]
    pub fn url(&self) -> &str {
        self.url.as_deref().expect("the hub has started")
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the process was killed, by itself or by the test, and died of nothing else.
pub fn was_killed(status: ExitStatus) -> bool {
    const SIGKILL: i32 = 9;
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(SIGKILL)
}

/// One complete request.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub key: Option<String>,
    /// `Idempotency-Key`
    pub once: Option<String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn get(path: impl Into<String>, key: Option<&str>) -> Self {
        let (path, key) = (path.into(), key.map(str::to_owned));
        Self { method: "GET", path, key, once: None, body: Vec::new() }
    }

    pub fn post(path: impl Into<String>, key: Option<&str>, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        Self { method: "POST", body, ..Self::get(path, key) }
    }
}

/// A complete response; a partial one counts as none.
pub type Told = Option<(u16, String)>;

/// One caller, at any hub address.
pub struct Caller(reqwest::Client);

impl Caller {
    pub fn new() -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(TIME_LIMIT).build();
        Self(http.expect("a client"))
    }

    pub async fn send(&self, url: &str, request: &Request) -> Told {
        let method = reqwest::Method::from_bytes(request.method.as_bytes()).expect("a method");
        let mut call = self.0.request(method, format!("{url}{}", request.path));
        if let Some(key) = &request.key {
            call = call.bearer_auth(key);
        }
        if let Some(once) = &request.once {
            call = call.header("idempotency-key", once);
        }
        if !request.body.is_empty() {
            call = call.body(request.body.clone());
        }
        let answer = call.send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, answer.text().await.ok()?))
    }

    /// Sends a request that a hub without faults must accept.
    pub async fn must(&self, url: &str, request: &Request) -> Value {
        let (status, text) = self.send(url, request).await.expect("an answer");
        assert!((200..300).contains(&status), "{}: {status} {text}", request.path);
        serde_json::from_str(&text).expect("JSON")
    }
}

/// Runs a future on this thread.
pub fn wait_for<R>(work: impl Future<Output = R>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// Runs `rialto audit` on some data: its exit code and its output.
pub fn audit(data: &Path) -> (i32, String) {
    let (code, said, problem) =
        crate::kit::run(&["audit", "--data", data.to_str().expect("a path")]);
    (code, said + &problem)
}
