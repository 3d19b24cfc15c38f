//! The hub's process: settings it refuses to start with, its log, its signals, its metrics.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{Lines, TestHub, ended, http, operator_key, run};

/// A hub whose log is read.
struct Logged {
    child: Child,
    url: String,
    greeting: Vec<String>,
    out: Lines,
    log: BufReader<ChildStderr>,
}

impl Logged {
    fn start(verb: &str, data: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rialto"))
            .args([verb, "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(more)
            .env("RIALTO_OPERATOR_KEY", operator_key())
            .env_remove("RIALTO_LOG")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let log = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut out = Lines::of(child.stdout.take());
        let (greeting, url) = out.address();
        let url = url.expect("a hub that listens");
        Self { child, url, greeting, out, log }
    }

    /// Reads the log until a line has this message.
    fn logged(&mut self, message: &str) -> Value {
        loop {
            let mut line = String::new();
            let read = self.log.read_line(&mut line).expect("a log");
            assert!(read > 0, "the log ended before {message:?}");
            let line: Value =
                serde_json::from_str(&line).expect("JSON, since it is not a terminal");
            if line["message"] == message {
                return line;
            }
        }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_wildcard_address_without_a_url_is_refused_before_anything_listens() {
    let data = TempDir::new().expect("a directory");
    let path = data.path().join("data");
    for verb in ["serve", "dev"] {
        let line = [verb, "--listen", "0.0.0.0:0", "--data", &path.display().to_string()];
        let (code, told, error) = run(&line);
        assert_eq!((code, told.as_str()), (2, ""), "{error}");
        assert!(error.contains("--public-url") && error.contains("http.public_url"), "{error}");
        assert!(!path.exists(), "nothing was created");
    }
}

#[test]
fn a_dev_hub_does_not_tell_of_a_flag_that_was_not_given() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
    command.args(["dev", "--listen", "127.0.0.1:0"]).env_remove("RIALTO_LOG");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut log = Lines::of(child.stderr.take());
    let read = std::iter::from_fn(|| log.next()).find(|line| line.contains("configuration loaded"));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let read = read.expect("a line");
    assert!(read.contains("--listen") && !read.contains("data.dir"), "{read}");
}

#[test]
fn what_operators_type_wrong_is_named_and_makes_nothing() {
    let room = TempDir::new().expect("a directory");
    let path = |name: &str| room.path().join(name).display().to_string();
    let (nope, data, notes) = (path("nope"), path("data"), path("notes.txt"));
    std::fs::write(&notes, "not a store").expect("written");
    assert_eq!(run(&["audit", "--data", &nope]).0, 3);
    let restore = ["restore", "--from", &notes, "--data", &data, "--new-hub-key"];
    let (code, _, error) = run(&restore);
    assert!(code == 1 && error.contains("notes.txt"), "{code}: {error}");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", &data];
    let wild = [&serve[..], &["--public-url", "http://0.0.0.0:7425"]].concat();
    let (code, _, error) = run(&wild);
    assert!(code == 2 && error.contains("http.public_url"), "{code}: {error}");
    assert!(!Path::new(&data).exists() && !Path::new(&nope).exists(), "nothing was created");
}

#[test]
fn a_configuration_is_checked_to_its_end() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "[http]\nlisten = \"0.0.0.0:1\"\nbdy = 1\n[jobs]\nlease = 7\n")
        .expect("written");
    let path = file.path().display().to_string();
    let (code, told, error) = run(&["config", "check", "--config", &path]);
    assert_eq!((code, told.as_str()), (2, ""));
    for part in ["http.public_url", "`http.bdy`", "`jobs.lease`"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_logs_its_life_reads_its_settings_again_and_is_not_ended_by_a_hangup() {
    use rustix::process::Signal;
    let room = TempDir::new().expect("a directory");
    let file = room.path().join("rialto.toml");
    let set = |text: &str| std::fs::write(&file, text).expect("written");
    set("[limits]\nwrites_per_minute = 1\n");
    let config = file.display().to_string();
    let mut hub = Logged::start("serve", &room.path().join("data"), &["--config", &config]);
    let settings = hub.logged("configuration loaded")["settings"].clone();
    assert!(settings.as_str().is_some_and(|all| all.contains("limits.writes_per_minute (")));
    assert_eq!(hub.logged("operator key issued")["level"], "INFO");
    let started = hub.logged("hub started");
    assert_eq!((&started["url"], &started["epoch"]), (&json!(hub.url), &json!(1)));

    let (http, url, operator) = (http(), hub.url.clone(), operator_key());
    let grant = async |owner: &str| {
        let body = json!({"owner": owner, "amount": 2, "create": true}).to_string();
        let sent = http.post(format!("{url}/v1/operator/grants")).bearer_auth(&operator);
        sent.body(body).send().await.expect("an answer").status().as_u16()
    };
    assert_eq!((grant("a").await, grant("b").await), (201, 429));
    assert_eq!(hub.logged("credits granted")["amount"], "2.00");
    set("[limits]\nwrites_per_minute = 0\n[agora]\nwindow = \"30s\"\n");
    hub.signal(Signal::HUP);
    let again = hub.logged("configuration reloaded");
    assert_eq!(again["taken"], "limits.writes_per_minute");
    assert_eq!(again["needs_restart"], "agora.window");
    assert_eq!((grant("b").await, grant("c").await), (201, 201));
    // An invalid file changes nothing, and the hub keeps running.
    set("[limits]\nwrites_per_minute = \"many\"\n");
    hub.signal(Signal::HUP);
    hub.logged("configuration not reloaded: it has errors");
    assert_eq!(grant("d").await, 201);
    let wrong = http.get(format!("{url}/v1/me")).bearer_auth("rk_wrong").send().await;
    assert_eq!(wrong.expect("an answer").status().as_u16(), 401);
    assert_eq!(hub.logged("invalid key refused")["route"], "/v1/me");
    hub.signal(Signal::TERM);
    hub.logged("hub stopping");
    hub.logged("hub stopped");
    assert!(ended(&mut hub.child).success());
    let log = room.path().join("data/rialto.db-wal");
    assert_eq!(std::fs::metadata(log).map_or(0, |log| log.len()), 0, "rialto.db is complete");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dev_hub_prints_what_happens_unless_it_is_to_be_quiet() {
    let room = TempDir::new().expect("a directory");
    for quiet in [false, true] {
        let data = room.path().join(quiet.to_string());
        let more: &[&str] = if quiet { &["--quiet"] } else { &[] };
        let mut hub = Logged::start("dev", &data, more);
        assert!(hub.greeting.iter().any(|line| line.contains("dev hub at")));
        let body = json!({"owner": "acme", "amount": 7, "create": true}).to_string();
        let grant = http().post(format!("{}/v1/operator/grants", hub.url));
        let granted = grant.bearer_auth(operator_key()).body(body).send().await.expect("an answer");
        assert_eq!(granted.status().as_u16(), 201);
        let told = |line: &String| line.contains("  granted  ") && line.contains("owner=acme");
        if quiet {
            hub.signal(rustix::process::Signal::TERM);
            assert!(ended(&mut hub.child).success());
            assert!(!std::iter::from_fn(|| hub.out.next()).any(|line| line.contains("granted")));
        } else {
            while !told(&hub.out.next().expect("a line for every event")) {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_numbers_tell_of_the_process_of_deliveries_of_refusals_of_jobs_and_of_the_disk() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("maker", "make", "0", None).await;
    let boss = hub.orchestrator("boss").await;
    let job = hub.hire(&boss, &worker, "make", "0").await.expect(202).str("/job_id");
    hub.report(&worker, &job, "SUCCESS", "0").await.expect(200);
    let body = json!({"from_owner": "boss", "to_owner": "maker", "amount": 5});
    hub.post("/registry/transfer", Some(&boss.key), &body).await.expect(402);
    let text = hub.get("/metrics", None).await.expect(200).text;
    for line in [
        "# TYPE rialto_jobs_opened_total counter",
        "rialto_jobs_opened_total 1.0",
        "# TYPE rialto_jobs_ended_total counter",
        "rialto_jobs_ended_total{state=\"completed\"} 1",
        "# TYPE rialto_refusals_total counter",
        "rialto_refusals_total{code=\"too_few_credits\"} 1",
        "# TYPE rialto_deliveries_total counter",
        "rialto_deliveries_total{outcome=\"delivered\"} 0",
        "# TYPE rialto_fsync_seconds histogram",
        "# TYPE rialto_batch_commands histogram",
        "# TYPE rialto_commit_seconds histogram",
        "# TYPE rialto_payments_total counter",
        "# TYPE rialto_rows_written_total counter",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        line.trim().parse::<f64>().expect("a number")
    };
    assert!(count("rialto_fsync_seconds_count ") >= 3.0);
    assert!(count("rialto_batch_commands_sum ") >= 3.0);
    assert!(count("rialto_rows_written_total ") >= 3.0);
    if cfg!(target_os = "linux") {
        for name in ["process_resident_memory_bytes ", "process_open_fds ", "process_max_fds "] {
            assert!(count(name) > 0.0, "{name}");
        }
        assert!(count("process_start_time_seconds ") > 1.6e9);
        assert!(text.contains("# TYPE process_cpu_seconds_total counter"), "{text}");
    }
}
