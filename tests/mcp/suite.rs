//! The official conformance suite: at the hub, through the hub at a server whose tools are skills (R60),
//! and at the wire layer alone.

use std::path::Path;
use std::process::{Child, Stdio};

use crate::clients::{Scene, packages, text};
use crate::kit::{eventually, http, node_24, npm_folder, output, python_packages};
use crate::suite_catalogue::SuiteServer;

/// What a run of the suite says.
#[derive(Debug)]
struct Outcome {
    /// How many checks passed.
    passed: u32,
    /// Scenarios without a failed check, scored or not.
    clean: Vec<String>,
    /// A line for each scenario and each failure, for those who read why a test failed.
    summary: String,
}

impl Outcome {
    /// Reads the summary: a line for each scenario, and then the total.
    fn read(said: &str) -> Self {
        let summary = said.split("=== SUMMARY ===").nth(1).unwrap_or_else(|| panic!("{said}"));
        let clean = summary.lines().filter_map(|line| line.strip_prefix("✓ ")?.split(':').next());
        let total = summary.lines().find_map(|line| line.strip_prefix("Total: "));
        let passed = total.and_then(|total| total.split(' ').next()?.parse().ok());
        Self {
            passed: passed.expect("a total"),
            clean: clean.map(str::to_owned).collect(),
            summary: summary.to_owned(),
        }
    }

    #[track_caller]
    fn assert_passed(&self, at_least: u32) {
        assert!(self.passed >= at_least, "{} of {at_least} checks: {}", self.passed, self.summary);
    }
}

/// Runs what a revision requires; with expected failures, it must be content.
#[track_caller]
fn run(scene: &Scene, url: &str, revision: &str, expected: Option<&str>) -> Outcome {
    let suite = npm_folder(&packages("npm"));
    let suite = suite.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let mut command = scene.command(&node_24());
    command.arg(suite).args(["server", "--url", url, "--requirements", revision]);
    if let Some(name) = expected {
        let file = format!("conformance-{name}-{revision}.yml");
        let folder = "../../crates/hub/src/mcp/fixtures";
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        command.arg("--expected-failures").arg(folder.join(file));
    }
    let ran = output(&mut command).expect("it starts");
    let said = text(&ran.stdout) + &text(&ran.stderr);
    let outcome = Outcome::read(&said);
    if expected.is_some() {
        assert_eq!(ran.status.code(), Some(0), "{revision} at {url}: {}", outcome.summary);
    }
    outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_passes_the_suite_of_the_new_era() {
    let scene = Scene::build().await;
    run(&scene, &scene.url("/mcp"), "2026-07-28", Some("hub")).assert_passed(111);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_passes_the_suite_of_the_old_era() {
    let scene = Scene::build().await;
    run(&scene, &scene.url("/mcp"), "2025-11-25", Some("hub")).assert_passed(38);
}

/// An agent that sells the suite's tools. It ends with its test, however that ends.
struct Seller(Child);

impl Seller {
    async fn start(scene: &Scene) -> Self {
        let server = packages("../suite/server.py");
        let server = format!("python3 '{}'", server.display());
        let mut agent = scene.command(Path::new(env!("CARGO_BIN_EXE_rialto")));
        agent
            .args(["agent", "run", "--mcp", &server, "--name", "tck", "--price", "0"])
            .args(["--all-tools", "--concurrency", "16"])
            .env("PYTHONPATH", python_packages(&packages("python-2.3")))
            .env_remove("RIALTO_KEY")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut this = Self(agent.spawn().expect("it starts"));
        let url = scene.url("/registry/discover?skill=slow_compute");
        eventually(async || {
            let ended = this.0.try_wait().expect("a state");
            assert!(ended.is_none(), "the agent ended early: {ended:?}");
            let found = http().get(&url).send().await.expect("an answer").text().await;
            found.expect("a text").contains("agent_id")
        })
        .await;
        this
    }
}

impl Drop for Seller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sold_server_passes_the_suite_of_the_new_era_through_the_hub() {
    let scene = Scene::build().await;
    let _seller = Seller::start(&scene).await;
    run(&scene, &scene.url("/mcp/agents/tck"), "2026-07-28", Some("agents")).assert_passed(147);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sold_server_passes_the_suite_of_the_old_era_through_the_hub() {
    let scene = Scene::build().await;
    let _seller = Seller::start(&scene).await;
    run(&scene, &scene.url("/mcp/agents/tck"), "2025-11-25", Some("agents")).assert_passed(52);
}

/// The scenarios that a revision scores, by the suite's own list.
fn scored(revision: &str) -> Vec<String> {
    let suite = npm_folder(&packages("npm"));
    let list = suite.join("node_modules/@modelcontextprotocol/conformance/requirements");
    let list = std::fs::read_to_string(list.join(format!("{revision}.yaml"))).expect("a list");
    let section = list.split("\nserver:\n").nth(1).expect("a section");
    let names = section.lines().map_while(|line| line.strip_prefix("  - "));
    names.map(|name| name.trim().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wire_layer_alone_passes_every_scored_scenario_of_the_new_era() {
    let (scene, server) = (Scene::build().await, SuiteServer::start().await);
    let ran = run(&scene, &server.url, "2026-07-28", None);
    let missed: Vec<_> =
        scored("2026-07-28").into_iter().filter(|name| !ran.clean.contains(name)).collect();
    assert_eq!(missed, Vec::<String>::new(), "{}", ran.summary);
    assert_eq!(scored("2026-07-28").len(), 37);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wire_layer_alone_passes_what_it_offers_of_the_old_era() {
    /// Needs what is not offered: logging, sampling, elicitation over HTTP, subscriptions.
    const LEFT_OUT: [&str; 8] = [
        "logging-set-level",
        "tools-call-with-logging",
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "resources-subscribe",
        "resources-unsubscribe",
    ];
    let (scene, server) = (Scene::build().await, SuiteServer::start().await);
    let ran = run(&scene, &server.url, "2025-11-25", None);
    let all = scored("2025-11-25");
    let missed: Vec<_> = all.iter().filter(|name| !ran.clean.contains(*name)).collect();
    assert!(
        missed.iter().all(|name| LEFT_OUT.contains(&name.as_str())),
        "{missed:?}: {}",
        ran.summary
    );
    assert_eq!(all.len(), 30);
}
