//! Every command of the benchmark once, for a moment and at a tiny scale, against a real hub. Checks
//! that everything is measured and nothing fails, never how fast it is.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde_json::Value;

/// The hub: the one that was built beside the benchmark, as in a run of all tests, or else built now.
static HUB: LazyLock<PathBuf> = LazyLock::new(|| {
    let bench = Path::new(env!("CARGO_BIN_EXE_rialto-bench"));
    let hub = bench.with_file_name(format!("rialto{}", std::env::consts::EXE_SUFFIX));
    if !hub.exists() {
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--package", "rialto", "--bin", "rialto", "--profile", profile]);
        assert!(build.status().expect("cargo can be started").success(), "the hub must build");
    }
    hub
});

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto-bench"));
    for (option, value) in
        [("--rounds", "2"), ("--seconds", "0.2"), ("--connections", "2,4"), ("--receivers", "2")]
    {
        if !arguments.contains(&option) {
            command.args([option, value]);
        }
    }
    command.args(["--hub".as_ref(), HUB.as_os_str()]).args(arguments);
    command.output().expect("the benchmark can be started")
}

fn text(output: &Output) -> String {
    let (out, errors) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(errors))
}

/// Runs a scenario and returns its report. Every benchmark must have good answers and no errors.
fn report(arguments: &[&str]) -> Value {
    let output = bench(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    for series in report["series"].as_array().expect("there is a list of series") {
        for round in series["rounds"].as_array().expect("there is a list of rounds") {
            assert!(round["good"].as_u64() > Some(0), "{series}");
            assert_eq!(round["errors"]["first"], Value::Null, "{series}");
        }
    }
    report
}

/// The value of a figure.
fn value(report: &Value, name: &str) -> f64 {
    let figures = report["figures"].as_array().expect("there is a list of figures");
    let figure = figures.iter().find(|figure| figure["name"] == name);
    let figure = figure.unwrap_or_else(|| panic!("{name:?} is not among {figures:#?}"));
    figure["value"].as_f64().unwrap_or_else(|| panic!("{name:?} was not measured"))
}

#[test]
fn starts_are_measured_also_after_a_kill() {
    let report = report(&["start"]);
    assert!(value(&report, "start on a small store until ready") > 0.0);
    assert!(value(&report, "start after kill -9 at full load until ready") > 0.0);
    if cfg!(target_os = "linux") {
        assert!(value(&report, "memory of an idle hub") > 1.0);
    }
}

#[test]
fn jobs_are_measured_for_each_number_of_connections_and_by_component() {
    let report = report(&["jobs", "--batch", "2", "--components"]);
    for connections in [2, 4] {
        let name = format!("full registry job / echo ({connections} connections, 2 a poll)");
        assert!(value(&report, &name) > 0.0);
        if cfg!(target_os = "linux") {
            let name = format!("CPU of the hub per job request ({connections} connections)");
            assert!(value(&report, &name) > 0.0);
        }
    }
    let counters = &report["series"][1]["rounds"][0]["counters"];
    assert!(counters["rialto_fsync_seconds_count"].as_f64() > Some(0.0), "{counters}");
    assert!(counters["rialto_rows_written_total"].as_f64() > Some(0.0), "{counters}");
    assert!(report["series"][0]["rounds"][0]["counters"].as_object().unwrap().is_empty());
}

#[test]
fn sends_streams_and_stalled_readers_are_measured() {
    let report = report(&["send", "--streams", "3", "--stalled", "2"]);
    assert!(value(&report, "send / echo (4 connections)") > 0.0);
    assert!(value(&report, "p99 send / echo (2 connections)") > 0.0);
    value(&report, "p99 added by 2 stalled readers");
    if cfg!(target_os = "linux") {
        value(&report, "memory of an idle stream, 3 open");
    }
}

#[test]
fn deliveries_are_measured_beside_the_peers_that_are_installed() {
    let report = report(&["delivery", "--peers"]);
    assert!(value(&report, "end to end, sqlite / memory") > 0.0);
    let names = report["series"].as_array().unwrap().iter().map(|series| series["name"].as_str());
    let names: Vec<_> = names.flatten().collect();
    let notes: Vec<_> =
        report["notes"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    for (server, name) in [("redis-server", "Redis "), ("nats-server", "JetStream ")] {
        let measured = names.iter().find(|series| series.starts_with(name));
        match notes.iter().find(|note| note.starts_with(server)) {
            Some(note) => {
                println!("{note}");
                assert_eq!(measured, None);
            }
            None => {
                let name = measured.expect("an installed peer is measured");
                assert!(value(&report, &format!("end to end, hub / {name}")) > 0.0);
            }
        }
    }
}

#[test]
fn messages_of_a2a_are_measured_beside_the_sdk_where_it_is_installed() {
    let report = report(&["a2a"]);
    let notes: Vec<_> =
        report["notes"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    for connections in [2, 4] {
        assert!(value(&report, &format!("SendMessage / echo ({connections} connections)")) > 0.0);
        if notes.is_empty() {
            let name = format!("SendMessage / a2a-sdk's server ({connections} connections)");
            assert!(value(&report, &name) > 0.0);
        } else {
            assert!(notes[0].starts_with("a2a-sdk is not installed"), "{notes:?}");
        }
    }
}

#[test]
fn sends_beside_a_checkpoint_are_measured() {
    // In so short a time there may be no checkpoint, so only the sends are checked.
    let report = report(&["checkpoint"]);
    assert_eq!(report["figures"][0]["name"], "p99 of a send beside a checkpoint / without");
}

#[test]
fn signed_messages_are_measured_beside_their_verification() {
    let report = report(&["agora", "clara"]);
    assert!(value(&report, "agora REQUEST / verify_strict, per core") > 0.0);
    assert!(value(&report, "clara message / RSA-4096-PSS verify, per core") > 0.0);
}

#[test]
fn discovery_and_consecutive_jobs_are_measured() {
    let report = report(&["discover", "worker", "--scale", "1000", "--jobs", "3"]);
    assert!(value(&report, "discovery, rare skill: 1000 / 1000 agents") > 0.0);
    assert!(value(&report, "back-to-back jobs, function, median") > 0.0);
    assert!(value(&report, "back-to-back jobs, program, median") > 0.0);
}

#[test]
fn all_that_grows_is_measured() {
    let report = report(&["growth", "--scale", "1000"]);
    for name in [
        "register an agent: 1000 / 100 agents",
        "choose the best: 1000 / 100 candidates",
        "choose round robin: 1000 / 100 candidates",
        "choose the cheapest: 1000 / 100 candidates",
        "choose the least occupied: 1000 / 100 candidates",
        "full job: 1000 / 100 open jobs",
        "register an agent: 1000 / 0 waiting jobs",
        "full job: 1000 / 100 finished jobs",
        "send: 1000 / 100 stored messages",
    ] {
        assert!(value(&report, name) > 0.0, "{name}");
    }
    value(&report, "start per million agents, from 1000");
}

/// Without PostgreSQL only a note is left, which says what to install.
#[cfg(unix)]
#[test]
fn several_nodes_are_measured_where_postgresql_is_installed() {
    let report = report(&["cluster", "--failovers", "1", "--batch", "2", "--scale", "1000"]);
    let notes: Vec<_> =
        report["notes"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    if let Some(note) = notes.iter().find(|note| note.starts_with("PostgreSQL is not installed")) {
        println!("{note}");
        return;
    }
    for name in [
        "send, PostgreSQL / SQLite (4 connections)",
        "send, three nodes / one on PostgreSQL (4 connections)",
        "send, three nodes / SQLite (4 connections)",
        "send, follower / writer (1 connection, p50)",
        "sender to stream, writer to follower / at the writer (1 connection, p50)",
        "sender to stream, two followers / one (1 connection, p50)",
        "read as is, follower / writer (4 connections)",
        "strict read, follower / writer (4 connections)",
        "strict read / as is, writer (4 connections)",
        "strict read / as is, follower (4 connections)",
        "full registry job, PostgreSQL / SQLite (4 connections, 2 a poll)",
        "fail-over, writer killed: p99 of 1",
        "fail-over, writer stopped: p99 of 1",
        "fail-over, writer silent: p99 of 1",
        "crash and recovery of the database",
    ] {
        assert!(value(&report, name) > 0.0, "{name}");
    }
    value(&report, "fail-over, database crash, beyond its recovery: max of 1");
    value(&report, "start of a node per million hot rows");
}

/// Builds with debug assertions can pretend that PostgreSQL is missing.
#[cfg(all(unix, debug_assertions))]
#[test]
fn without_postgresql_the_cluster_is_left_out_and_the_report_says_what_to_install() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto-bench"));
    command.args(["cluster".as_ref(), "--hub".as_ref(), HUB.as_os_str()]);
    let output = command.env("RIALTO_TEST_POSTGRES_BIN", "").output().unwrap();
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("PostgreSQL is not installed"), "{text}");
    assert!(text.contains("Debian package postgresql"), "{text}");
}

#[test]
fn two_hubs_are_measured_in_turns_and_stand_side_by_side() {
    let hub = HUB.to_str().expect("the path is text");
    let output = bench(&["send", "--connections", "2", "--hub", hub]);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("rialto#2 / rialto#1"), "{text}");
    assert!(text.contains("send, receivers offline [rialto#1]"), "{text}");
}

#[test]
fn a_saved_run_can_be_compared_with() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("baseline.json");
    let file = file.to_str().unwrap();
    let saved = bench(&["send", "--connections", "2", "--save", file]);
    assert!(saved.status.success(), "{}", text(&saved));
    let compare = ["send", "--connections", "2", "--compare", file, "--tolerance"];
    let lenient = bench(&[compare.as_slice(), &["1000000"]].concat());
    assert!(lenient.status.success(), "{}", text(&lenient));
    assert!(text(&lenient).contains("now / saved"), "{}", text(&lenient));

    // A run that nothing can be as good as.
    let saved = std::fs::read_to_string(file).unwrap();
    let mut better: Value = serde_json::from_str(&saved).unwrap();
    better["figures"]["send / echo (2 connections)"]["comparable"] = 1e9.into();
    std::fs::write(file, better.to_string()).unwrap();
    let strict = bench(&[compare.as_slice(), &["0.5"]].concat());
    assert_eq!(strict.status.code(), Some(1), "{}", text(&strict));
    assert!(text(&strict).contains("WORSE"), "{}", text(&strict));
}

#[test]
fn what_cannot_work_is_refused_at_once() {
    for (arguments, problem) in [
        (&["send", "--compare", "no-such-file.json"][..], "no-such-file.json"),
        (&["send", "--hub", "no-such-hub"], "--hub no-such-hub not found"),
        (&["send", "--seconds", "0"], "must be from 0.05 to 3600"),
        (&["growth", "--grow", "hair"], "invalid value 'hair'"),
    ] {
        let output = bench(arguments);
        assert!(!output.status.success());
        assert!(text(&output).contains(problem), "{}", text(&output));
    }
}
