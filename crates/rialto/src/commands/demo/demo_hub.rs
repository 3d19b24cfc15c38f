//! The demo's hub: a real hub in this process, on a free port, with temporary data.

use std::path::Path;

use rialto_client::{CallError, Hub as Caller, Method};
use rialto_core::money::Credits;
use rialto_engine::Engine;
use rialto_hub::app::{Hub, Options};
use rialto_hub::config::{Loaded, Posture};
use rialto_hub::shutdown::{Shutdown, Trigger};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::balance;
use crate::commands::error::Trouble;
use crate::exit::Exit;

/// A running hub. Keys are required, as in production; the operator key is known only here.
pub struct House {
    pub url: String,
    /// A client with the operator key.
    pub operator: Caller,
    pub engine: Engine,
    data: TempDir,
    trigger: Trigger,
    running: JoinHandle<Result<(), String>>,
}

impl House {
    /// Starts a hub. It ignores the environment and files in this directory, so that the demo is
    /// the same everywhere.
    pub async fn open() -> Result<Self, Trouble> {
        let data = tempfile::Builder::new().prefix("rialto-demo-").tempdir().map_err(failed)?;
        let loaded = load(data.path()).map_err(failed)?;
        let (trigger, shutdown) = Shutdown::manual();
        let hub = Hub::start(&loaded.config, Options::default(), shutdown.clone()).await;
        let hub = hub.map_err(failed)?;
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
        let (owner, amount) = (json!(owner), balance::text(amount));
        let body = format!(r#"{{"owner":{owner},"amount":{amount},"create":true}}"#);
        let path = "/v1/operator/grants";
        self.operator.call_text(Method::POST, path, Some(body)).await.map(drop)
    }

    /// Stops the hub and audits its data directory; returns the breaches found.
    pub async fn close(self) -> Result<Vec<String>, Trouble> {
        self.trigger.ask();
        drop(self.engine);
        self.running.await.map_err(failed)?.map_err(failed)?;
        let report = rialto_engine::audit::audit(&self.data.path().join("data")).map_err(failed)?;
        let breaches = report.checks.iter().filter(|check| check.breaches_total > 0);
        Ok(breaches.map(|check| format!("{}: {:?}", check.name, check.breaches)).collect())
    }
}

fn load(dir: &Path) -> Result<Loaded, String> {
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
    Loaded::load(Posture::Serve, Some(&file), std::iter::empty(), &flags)
        .map_err(|problem| problem.to_string())
}

/// The error for a problem on this machine.
pub fn failed(error: impl std::fmt::Display) -> Trouble {
    let next =
        Some("check that the temporary directory is writable; TMPDIR sets another".to_owned());
    Trouble { exit: Exit::Failed, code: None, message: error.to_string(), next }
}
