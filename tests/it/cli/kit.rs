//! Shared by these tests: the binary with its own home directory, and servers with prepared
//! answers.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::kit::output;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde_json::Value;
use tempfile::TempDir;

/// A command line isolated from this machine's settings.
pub struct Cli {
    directory: TempDir,
    env: Vec<(String, String)>,
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Cli {
    pub fn new() -> Self {
        Self { directory: TempDir::new().expect("a directory"), env: Vec::new() }
    }

    /// A command line whose current context is this hub, with this key.
    pub async fn at(hub: &str, key: &str) -> Self {
        let cli = Self::new();
        let file = cli.file("given.key", key);
        cli.run(&["context", "add", "here", "--hub", hub, "--key-file", &file]).await.ok();
        cli
    }

    /// The same with another variable set.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The home directory; it exists once something was stored.
    pub fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// A path outside of the home.
    pub fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// A file outside of the home.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    /// Runs a command to its end on a blocking thread, since it waits for the hub.
    pub async fn run(&self, line: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
        let ours = |name: &OsStr| name.to_string_lossy().starts_with("RIALTO_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
            command.env_remove(name);
        }
        command.env("RIALTO_HOME", self.home()).args(line);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let output =
            tokio::task::spawn_blocking(move || output(&mut command)).await.expect("no panic");
        let output = output.expect("the binary runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        let code = output.status.code().unwrap_or(-1);
        Ran { code, out: text(output.stdout), err: text(output.stderr) }
    }

    /// The one document a command prints with `--json`.
    pub async fn json(&self, line: &[&str]) -> Value {
        self.run(&[line, &["--json"]].concat()).await.ok().json()
    }
}

impl Ran {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        self.expect(0)
    }

    /// Checks the exit code, that the error has these parts, and that it says what to do next.
    #[track_caller]
    pub fn failed(self, code: i32, parts: &[&str]) -> Self {
        let ran = self.expect(code);
        assert!(ran.out.is_empty() && ran.err.trim().lines().count() == 1, "{ran:#?}");
        for part in parts {
            assert!(ran.err.contains(part), "{part} is not in {ran:#?}");
        }
        ran
    }

    /// The one document on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        let wrong = |error| panic!("{error}: no single document in {self:#?}");
        serde_json::from_str(&self.out).unwrap_or_else(wrong)
    }
}

/// A server that answers each path with a prepared text, and records the requests.
pub struct Stage {
    pub url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Heard {
    pub path: String,
    pub authorization: Option<String>,
}

impl Stage {
    pub async fn start(answers: &[(&'static str, &str)]) -> Self {
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let texts: Vec<(&str, String)> =
            answers.iter().map(|(path, text)| (*path, (*text).to_owned())).collect();
        let state = (Arc::new(texts), heard.clone());
        let router = Router::new().fallback(answer).with_state(state);
        let nowhere: SocketAddr = ([127, 0, 0, 1], 0).into();
        let listener = tokio::net::TcpListener::bind(nowhere).await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, heard }
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().expect("no panic").clone()
    }
}

type Play = (Arc<Vec<(&'static str, String)>>, Arc<Mutex<Vec<Heard>>>);

async fn answer(State((texts, heard)): State<Play>, request: Request) -> (StatusCode, String) {
    let path = request.uri().path().to_owned();
    let header = request.headers().get("authorization");
    let authorization = header.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let found = texts.iter().find(|(known, _)| *known == path).map(|(_, text)| text.clone());
    heard.lock().expect("no panic").push(Heard { path, authorization });
    match found {
        Some(text) => (StatusCode::OK, text),
        None => (StatusCode::NOT_FOUND, "{}".to_owned()),
    }
}
