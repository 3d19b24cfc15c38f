//! Tests this agent with a hub on this machine: start one with `rialto dev`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// The agent, running until the test ends.
struct AtWork(Child);

impl Drop for AtWork {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

#[test]
fn the_handler_shouts() {
    let mut handler = Command::new(env!("CARGO_BIN_EXE_shout-agent"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the handler starts");
    let job = json!({"job_id": "1", "skill": "shout", "input": {"text": "hello"}});
    let mut input = handler.stdin.take().expect("a pipe");
    input.write_all(job.to_string().as_bytes()).expect("the handler reads its input");
    drop(input);
    let ran = handler.wait_with_output().expect("the handler ends");
    let made: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!(made, json!({"text": "HELLO"}));
}

#[test]
fn a_job_is_done_and_paid() {
    let agent = Command::new("rialto")
        // Runs a second agent, beside the one that may already run here.
        .args(["agent", "run", "--name", "shout-test", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("rialto is on the path");
    let mut agent = AtWork(agent);
    let mut first = String::new();
    let said = agent.0.stdout.take().expect("a pipe");
    BufReader::new(said).read_line(&mut first).expect("the agent prints a line");
    let told: Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(told["event"], "at_work", "no hub? start one with `rialto dev`: {told}");
    let worker = told["agent_id"].as_str().expect("an id");
    let posted = Command::new("rialto")
        .args(["job", "post", "--skill", "shout", "--to", worker])
        .args(["--input", r#"{"text":"hello"}"#, "--budget", "0.10", "--wait", "--json"])
        .output()
        .expect("rialto is on the path");
    let job: Value = serde_json::from_slice(&posted.stdout).expect("JSON");
    assert_eq!(job["state"], "completed", "{job}");
    assert_eq!(job["result"]["output"], json!({"text": "HELLO"}));
    assert_eq!(job["paid"], json!(0.05));
}
