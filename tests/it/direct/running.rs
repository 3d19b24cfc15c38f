//! `rialto agent run --direct` in its own process, with a handler of each kind.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::kit::eventually;

/// Upper-cases the text of a job, fails if it begins with `fail`, and records every run.
const EXEC: &str = r#"read -r job
text=$(printf %s "$job" | sed 's/.*"text":"\([^"]*\)".*/\1/')
echo "$text" >>runs
case $text in fail*) echo '{"error":"no paper"}'; exit 3;; esac
printf '{"text":"%s"}' "$(printf %s "$text" | tr a-z A-Z)"
"#;
/// The same as a long-running program, line by line.
const STAYS: &str = r#"while read -r job; do
text=$(printf %s "$job" | sed 's/.*"text":"\([^"]*\)".*/\1/')
id=$(printf %s "$job" | sed 's/.*"job_id":"\([^"]*\)".*/\1/')
echo "$text" >>runs
case $text in
fail*) printf '{"job_id":"%s","error":"no paper"}\n' "$id";;
*) printf '{"job_id":"%s","output":{"text":"%s"}}\n' "$id" "$(printf %s "$text" | tr a-z A-Z)";;
esac
done
"#;

/// The kind of an agent's handler.
#[derive(Clone, Copy, Debug)]
pub enum Handler {
    Exec,
    Persistent,
    Http,
}

/// A directory with handlers and the agent's state directory.
pub struct Place {
    directory: Arc<TempDir>,
    flags: Vec<String>,
    _web: Option<Web>,
}

/// A server that does the work; it stops when dropped.
struct Web(JoinHandle<()>);

/// A running agent. It is killed when dropped.
pub struct Running {
    child: Child,
    pub url: String,
}

impl Place {
    pub async fn new(handler: Handler) -> Self {
        let directory = Arc::new(TempDir::new().expect("a directory"));
        fs::write(directory.path().join("exec.sh"), EXEC).expect("written");
        fs::write(directory.path().join("stays.sh"), STAYS).expect("written");
        let (flags, web) = match handler {
            Handler::Exec => (vec!["--exec".to_owned(), "sh exec.sh".to_owned()], None),
            Handler::Persistent => {
                let flags = ["--persistent", "--exec", "sh stays.sh"].map(str::to_owned);
                (flags.to_vec(), None)
            }
            Handler::Http => {
                let (url, web) = Web::new(Arc::clone(&directory)).await;
                (vec!["--http".to_owned(), url], Some(web))
            }
        };
        Self { directory, flags, _web: web }
    }

    /// The same with a program given by the test.
    pub fn with(flags: &[&str]) -> Self {
        let directory = Arc::new(TempDir::new().expect("a directory"));
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Self { directory, flags, _web: None }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The texts of the jobs that were run, in order.
    pub fn runs(&self) -> Vec<String> {
        self.text("runs").lines().map(str::to_owned).collect()
    }

    /// Starts the agent and waits until it serves.
    pub async fn start(&self) -> Running {
        // Removes the output of an earlier process.
        let said = self.path("said");
        let out = fs::File::create(&said).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("RIALTO_") {
                command.env_remove(name);
            }
        }
        let child = command
            .env("RIALTO_HOME", self.path("home"))
            .current_dir(self.directory.path())
            .args(["agent", "run", "--json", "--skill", "shout", "--price", "0", "--name", "me"])
            .args(["--direct", "127.0.0.1:0"])
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(out.try_clone().expect("a file"))
            .stderr(out)
            .spawn()
            .expect("the binary starts");
        let mut running = Running { child, url: String::new() };
        eventually(async || {
            let text = fs::read_to_string(&said).unwrap_or_default();
            let ended = running.child.try_wait().expect("it can be waited for");
            assert!(ended.is_none(), "it ended with {ended:?}: {text}");
            let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let serves = events.into_iter().find(|said| said["event"] == "serves_peers");
            running.url = serves.map_or_else(String::new, |said| {
                said["url"].as_str().unwrap_or_default().to_owned()
            });
            !running.url.is_empty()
        })
        .await;
        running
    }
}

impl Web {
    async fn new(directory: Arc<TempDir>) -> (String, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/work", listener.local_addr().expect("an address"));
        let work = move |body: String| async move { answer(&directory, &body) };
        let app = Router::new().route("/work", post(work));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("served") });
        (url, Self(task))
    }
}

fn answer(directory: &TempDir, body: &str) -> (StatusCode, String) {
    use std::io::Write;
    let job: Value = serde_json::from_str(body).expect("a job");
    let text = job["input"]["text"].as_str().expect("a text");
    let runs = fs::OpenOptions::new().create(true).append(true).open(directory.path().join("runs"));
    writeln!(runs.expect("a file"), "{text}").expect("written");
    match text.starts_with("fail") {
        true => (StatusCode::INTERNAL_SERVER_ERROR, json!({"error": "no paper"}).to_string()),
        false => (StatusCode::OK, json!({"text": text.to_uppercase()}).to_string()),
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Running {
    /// Sends SIGKILL and waits for the exit.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Sends SIGTERM and waits for the exit.
    pub async fn terminate(mut self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        assert!(sent.success());
        eventually(async || self.child.try_wait().expect("it can be waited for").is_some()).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
