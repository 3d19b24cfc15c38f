//! `rialto demo`: agents of all six protocols do one paid job together, then the demo ends.
//!
//! A Reader hires an Editor, which hires all the others it needs. The hub is real, the agents are real
//! (`agents`, `requesters`), and they talk to it over HTTP. The `scenario` shows what the agents report.
//! The `report` has that and what the hub has recorded. `check` compares both with the `plan`.

mod agents;
mod check;
mod plan;
mod report;
mod requesters;
mod scenario;

#[cfg(test)]
mod tests;

use std::path::Path;

use rialto_client::Hub as Caller;
use rialto_engine::Engine;
use rialto_engine::audit::audit_dir;
use rialto_hub::app::{Hub, Options};
use rialto_hub::config::{LoadedConfig, Profile};
use rialto_hub::shutdown::{Shutdown, ShutdownTrigger};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::{CliError, CliResult, Exit, V1, output, print_error, runtime};
use check::Check;
use report::DemoReport;
use scenario::{DisplayMode, LiveDisplay};

#[derive(clap::Args)]
pub struct Args {
    /// Exit 1 if a check fails, and list the failed checks
    #[arg(long)]
    check: bool,
    /// Print one line per event, also on a terminal
    #[arg(long)]
    plain: bool,
    /// Print one JSON document at the end
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Exit {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return print_error(error),
    };
    let shown = runtime.block_on(run_and_print(args));
    // Agents that still listen need not be waited for.
    runtime.shutdown_background();
    shown.unwrap_or_else(|cli_error| cli_error.report(args.json))
}

async fn run_and_print(args: &Args) -> CliResult {
    let shutdown = Shutdown::on_signals().map_err(setup_error)?;
    let report = run_to_end(DisplayMode::detect(args.json, args.plain), &shutdown).await?;
    let checks = check::run_all(&report);
    let document = report.to_json(&checks)?;
    output::print(args.json, document, || report.describe());
    Ok(if args.check { report_checks(&checks, args.json) } else { Exit::Ok })
}

/// The whole demo, from the start of the hub to the audit of its data.
async fn run_to_end(mode: DisplayMode, shutdown: &Shutdown) -> CliResult<DemoReport> {
    let hub = DemoHub::start().await?;
    let mut display = LiveDisplay::new(mode);
    let report = tokio::select! {
        report = scenario::run_scenario(&hub, &mut display) => report,
        () = shutdown.wait() => Err(CliError::plain("the demo was interrupted")),
    };
    // However the demo ended, the hub is stopped properly and its data removed.
    let breaches = hub.stop_and_audit().await;
    report.and_then(|report| Ok(DemoReport { breaches: breaches?, ..report }))
}

/// Whether all checks hold; prints those that do not.
fn report_checks(checks: &[Check], as_json: bool) -> Exit {
    let failed: Vec<&Check> = checks.iter().filter(|check| !check.holds).collect();
    // The JSON document already contains them.
    if !as_json {
        for check in &failed {
            let found = output::escape_line(check.found.as_deref().unwrap_or_default());
            output::print_stderr(&format!("rialto: check failed: {}; found {found}", check.name));
        }
        let result = match failed.len() {
            0 => format!("all {} checks passed", checks.len()),
            count => format!("{count} of {} checks failed", checks.len()),
        };
        // A closed pipe is not an error.
        output::print_data(format!("\ndemo: {result}"));
    }
    if failed.is_empty() { Exit::Ok } else { Exit::Failed }
}

/// A real hub in this process, on a free port, with temporary data. Keys are required, as in
/// production; the operator key is known only here.
struct DemoHub {
    url: String,
    /// A client with the operator key.
    operator: V1,
    engine: Engine,
    data: TempDir,
    trigger: ShutdownTrigger,
    task: JoinHandle<Result<(), String>>,
}

impl DemoHub {
    /// Starts a hub. It ignores the environment and files in this directory, so that the demo is
    /// the same everywhere.
    async fn start() -> CliResult<Self> {
        let data =
            tempfile::Builder::new().prefix("rialto-demo-").tempdir().map_err(setup_error)?;
        let loaded = load_config(data.path()).map_err(setup_error)?;
        let (trigger, shutdown) = Shutdown::manual();
        let hub = Hub::start(&loaded.config, Options::default(), shutdown.clone()).await;
        let hub = hub.map_err(setup_error)?;
        let url = format!("http://{}", hub.address);
        let key = hub.new_operator_key.clone().unwrap_or_default();
        let operator = V1(Caller::new(&url)?.with_key(&key));
        let engine = hub.engine.clone();
        let task = tokio::spawn(async move { hub.run(&shutdown).await });
        Ok(Self { url, operator, engine, data, trigger, task })
    }

    /// Stops the hub and audits its data directory; returns the breaches.
    async fn stop_and_audit(self) -> CliResult<Vec<String>> {
        self.trigger.trigger();
        drop(self.engine);
        self.task.await.map_err(setup_error)?.map_err(setup_error)?;
        let audit = audit_dir(&self.data.path().join("data")).map_err(setup_error)?;
        let breaches = audit.checks.iter().filter(|check| check.breaches_total > 0);
        Ok(breaches.map(|check| format!("{}: {:?}", check.name, check.breaches)).collect())
    }
}

fn load_config(dir: &Path) -> Result<LoadedConfig, String> {
    // An explicit file, so that no other file is read.
    let file = dir.join("demo.toml");
    std::fs::write(&file, "").map_err(|error| error.to_string())?;
    let flags = [
        ("http.listen", "127.0.0.1:0".to_owned()),
        ("data.dir", dir.join("data").display().to_string()),
        // An auction closes when all agents have answered, however slow the machine is.
        ("jobs.auction_window", "20s".to_owned()),
        // The requester is told quickly that the job is still pending.
        ("registry.sync_wait", "50ms".to_owned()),
    ];
    LoadedConfig::load(Profile::Serve, Some(&file), std::iter::empty(), &flags)
        .map_err(|problem| problem.to_string())
}

/// The error for a problem on this machine.
fn setup_error(error: impl std::fmt::Display) -> CliError {
    let next = "check that the temporary directory is writable; TMPDIR sets another";
    CliError::failed(error.to_string(), next)
}
