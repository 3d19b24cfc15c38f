//! The unmodified npm client against a hub process: every action of the spec, end to end.
//!
//! The client is installed from npm into the target directory once, and kept. The scripts are
//! `foreign/*.mjs`, which print one JSON line for every check.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::crash::TO_COME_BACK;
use crate::kit::{Lines, Process, ended, npm_package};

/// How many checks the scripts make; fewer would mean that some were skipped.
const CHECKS_MIN: u64 = 130;

#[test]
fn the_spec_s_examples_run_with_the_current_client() {
    Run::of("0.0.98").killing_the_hub();
}

#[test]
fn the_spec_s_examples_run_with_an_older_client() {
    Run::of("0.0.55").in_peace();
}

/// A running script with one version of the client.
struct Run {
    data: TempDir,
    hub: Option<Process>,
    script: Child,
    answers: ChildStdin,
    lines: Box<dyn Iterator<Item = Value>>,
    checks: Vec<Value>,
}

impl Run {
    fn of(version: &str) -> Self {
        let client = npm_package("@permaweb/aoconnect", version);
        let data = TempDir::new().expect("a directory");
        let hub = serve(data.path(), TO_COME_BACK);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/it/clara/foreign");
        let mut script = Command::new("node")
            .arg(folder.join("run.mjs"))
            .arg(client)
            // All servers the client knows, so that it contacts none of its defaults.
            .env("MU_URL", format!("{}/clara/mu", hub.url))
            .env("CU_URL", format!("{}/clara/cu", hub.url))
            .envs(
                ["GATEWAY_URL", "GRAPHQL_URL", "AO_URL", "RELAY_URL"].map(|name| (name, &hub.url)),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("node starts: the foreign client needs Node.js 20 or later");
        let answers = script.stdin.take().expect("a pipe");
        let lines = Lines::of(script.stdout.take())
            .map(|line| serde_json::from_str(&line).unwrap_or_else(|_| panic!("bad JSON: {line}")));
        Self { data, hub: Some(hub), script, answers, lines: Box::new(lines), checks: Vec::new() }
    }

    /// Lets the script run without interruption.
    fn in_peace(mut self) {
        self.until("pause");
        self.go_on();
        self.finish();
    }

    /// Kills the hub during the run and restarts it at the same address.
    fn killing_the_hub(mut self) {
        self.until("pause");
        let hub = self.hub.take().expect("it runs");
        let url = hub.url.clone();
        hub.kill();
        let hub = serve(self.data.path(), url.trim_start_matches("http://"));
        assert_eq!(hub.url, url);
        self.hub = Some(hub);
        self.go_on();
        self.finish();
    }

    /// Reads up to a line with this member.
    fn until(&mut self, member: &str) -> Value {
        for line in self.lines.by_ref() {
            if line.get(member).is_some() {
                return line;
            }
            self.checks.push(line);
        }
        panic!("the script ended early: {}", self.complaint());
    }

    fn go_on(&mut self) {
        self.answers.write_all(b"\n").expect("the script listens");
    }

    fn finish(mut self) {
        let end = self.until("end");
        let failed: Vec<&Value> = self.checks.iter().filter(|line| line["ok"] != true).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        assert_eq!(end["checks"].as_u64(), Some(self.checks.len() as u64));
        assert!(self.checks.len() as u64 >= CHECKS_MIN, "only {} checks", self.checks.len());
        assert!(ended(&mut self.script).success());
    }

    /// The script's own error output.
    fn complaint(&mut self) -> String {
        let mut said = String::new();
        if let Some(mut errors) = self.script.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        said
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

/// A hub with a welcome grant of 100 credits and long auctions: wallets sign slowly on a busy
/// machine.
fn serve(data: &Path, address: &str) -> Process {
    let listen = format!("http.listen={address}");
    let process = format!("clara.process_id={}", rialto_protocols::clara::PROCESS);
    let settings = ["ledger.welcome_grant=100.00", "jobs.auction_window=6s", &listen, &process];
    let flags: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    Process::start("serve", data, &flags)
}
