//! The demo's hub: a real hub in this process, on a free port, with temporary data.

use std::path::Path;

use rialto_client::{CallError, Hub as Caller, Method};
use rialto_core::money::Credits;
use rialto_engine::Engine;
use rialto_hub::app::{Hub, Options};
use rialto_hub::config::{LoadedConfig, Profile};
use rialto_hub::shutdown::{Shutdown, ShutdownTrigger};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::balance;
use crate::commands::error::CliError;
use crate::exit::Exit;

/// A running hub. Keys are required, as in production; the operator key is known only here.
pub struct DemoHub {
    pub url: String,
    /// A client with the operator key.
    pub operator: Caller,
    pub engine: Engine,
    data: TempDir,
    trigger: ShutdownTrigger,
    running: JoinHandle<Result<(), String>>,
}

impl DemoHub {
    /// Starts a hub. It ignores the environment and files in this directory, so that the demo is
    /// the same everywhere.
    pub async fn start() -> Result<Self, CliError> {
        let data =
            tempfile::Builder::new().prefix("rialto-demo-").tempdir().map_err(setup_error)?;
        let loaded = load(data.path()).map_err(setup_error)?;
        let (trigger, shutdown) = Shutdown::manual();
        let hub = Hub::start(&loaded.config, Options::default(), shutdown.clone()).await;
        let hub = hub.map_err(setup_error)?;
        let url = format!("http://{}", hub.address);
        let key = hub.new_operator_key.clone().unwrap_or_default();
        let operator = Caller::new(&url)?.with_key(&key);
        let engine = hub.engine.clone();
        let running = tokio::spawn(async move { hub.run(&shutdown).await });
        Ok(Self { url, operator, engine, data, trigger, running })
    }

    /// Grants credits to an owner, with the operator key.
    pub async fn grant(&self, owner: &str, amount: Credits) -> Result<(), CallError> {
        if amount.is_zero() {
            return Ok(());
        }
        // Built as text, so that the amount never passes through a float.
        let (owner, amount) = (json!(owner), balance::format_amount(amount));
        let body = format!(r#"{{"owner":{owner},"amount":{amount},"create":true}}"#);
        let path = "/v1/operator/grants";
        self.operator.call_text(Method::POST, path, Some(body)).await.map(drop)
    }

    /// Stops the hub and audits its data directory; returns the breaches found.
    pub async fn stop_and_audit(self) -> Result<Vec<String>, CliError> {
        self.trigger.trigger();
        drop(self.engine);
        self.running.await.map_err(setup_error)?.map_err(setup_error)?;
        let report =
            rialto_engine::audit::audit_dir(&self.data.path().join("data")).map_err(setup_error)?;
        let breaches = report.checks.iter().filter(|check| check.breaches_total > 0);
        Ok(breaches.map(|check| format!("{}: {:?}", check.name, check.breaches)).collect())
    }
}

fn load(dir: &Path) -> Result<LoadedConfig, String> {
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
pub fn setup_error(error: impl std::fmt::Display) -> CliError {
    let next =
        Some("check that the temporary directory is writable; TMPDIR sets another".to_owned());
    CliError { exit: Exit::Failed, code: None, message: error.to_string(), next }
}
