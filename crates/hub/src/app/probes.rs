//! Probes and metrics: `/livez`, `/readyz`, `/metrics`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use rialto_engine::Engine;
use rialto_engine::cluster::state::Role;
use rialto_protocols::adapter::operation::{ResponseInfo, get, schema};
use rialto_protocols::adapter::{Access, Operation};

use crate::telemetry::{CONTENT_TYPE, Metrics, ScrapedValue};

/// State that the probes read.
#[derive(Clone)]
pub struct ProbeState {
    pub engine: Engine,
    pub metrics: Metrics,
}

/// The operations of the probes. Collecting metrics is work, so that is no health check.
pub fn operations() -> Vec<Operation<ProbeState>> {
    vec![
        get("/livez", Access::Public, alive)
            .summary("Whether the process is alive")
            .about_node()
            .response(text(200, "It is"))
            .health_check(),
        get("/readyz", Access::Public, ready)
            .summary("Whether the hub is ready to accept writes")
            .about_node()
            .response(text(200, "It is"))
            .response(text(503, "It is not"))
            .health_check(),
        get("/metrics", Access::Public, metrics)
            .summary("Metrics in the Prometheus text format")
            .as_is()
            .response(ResponseInfo { content_type: CONTENT_TYPE, ..text(200, "The metrics") }),
    ]
}

fn text(status: u16, description: &'static str) -> ResponseInfo {
    let content_type = "text/plain; charset=utf-8";
    ResponseInfo { status, content_type, schema: Some(schema::<String>), description }
}

async fn alive() -> &'static str {
    "ok\n"
}

async fn ready(State(probes): State<ProbeState>) -> Response {
    let not_ready = |why: &'static str| (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    if !probes.engine.is_writable() {
        not_ready("not ready\n")
    } else if !probes.engine.is_current() {
        not_ready("not ready: this node has not read the hub's log for a second\n")
    } else {
        "ready\n".into_response()
    }
}

async fn metrics(State(probes): State<ProbeState>) -> Response {
    ([(http::header::CONTENT_TYPE, CONTENT_TYPE)], probes.metrics.encode()).into_response()
}

/// Metrics of the hub itself. They contain totals only, never ids or names.
pub fn hub_metrics(engine: &Engine) -> Vec<ScrapedValue> {
    let credits = |amount: rialto_core::money::Credits| amount.micros() as f64 / 1e6;
    let row = |name: &str, help: &str, value: f64| (name.to_owned(), help.to_owned(), value);
    let mut rows = engine.with_world(|world| {
        let issued =
            world.owner(rialto_core::owner::Owner::ISSUANCE).map(|o| -credits(o.available));
        vec![
            row(
                "rialto_agents",
                "Agents registered now",
                world.agents().filter(|a| a.active).count() as f64,
            ),
            row("rialto_agents_online", "Agents online now", world.online_count() as f64),
            row("rialto_owners", "Accounts", world.owners().count() as f64 - 1.0),
            row("rialto_jobs_live", "Jobs that have not ended", world.live_jobs().count() as f64),
            row(
                "rialto_jobs_queued",
                "Jobs waiting for a worker",
                world.queued_jobs().count() as f64,
            ),
            row("rialto_jobs_opened_total", "Jobs ever opened", (world.next.job.0 - 1) as f64),
            row(
                "rialto_pushes_waiting",
                "Webhook deliveries waiting or given up",
                world.deliveries().count() as f64,
            ),
            row("rialto_payments_total", "Payments between owners", world.next.payments as f64),
            row(
                "rialto_payments_credits_total",
                "Sum of payments between owners, in credits",
                credits(world.next.volume),
            ),
            row("rialto_epoch", "Raised at each restore from a backup", world.next.epoch as f64),
            row("rialto_credits_issued", "Credits in circulation", issued.unwrap_or_default()),
            row(
                "rialto_memory_bytes",
                "Memory used by agents, open jobs and accounts, in bytes",
                world.footprint().total() as f64,
            ),
            row(
                "rialto_memory_newcomers_bytes",
                "Bytes of memory used by owners that never had credits",
                world.footprint().new_owners() as f64,
            ),
            row(
                "rialto_memory_limit_bytes",
                "Memory limit for agents, open jobs and accounts, in bytes",
                world.rules.memory.total as f64,
            ),
            row(
                "rialto_store_writable",
                "1 if the hub accepts writes, else 0",
                f64::from(u8::from(engine.is_writable())),
            ),
        ]
    });
    rows.extend(cluster_metrics(engine));
    rows
}

/// Metrics of a node among several; none at a hub of one node.
fn cluster_metrics(engine: &Engine) -> Vec<ScrapedValue> {
    let Some(status) = engine.cluster_status() else { return Vec::new() };
    let row = |name: &str, help: &str, value: f64| (name.to_owned(), help.to_owned(), value);
    let is_writer = status.role == Role::Writer;
    vec![
        row(
            "rialto_cluster_role",
            "1 if this node writes, 0 if it follows",
            f64::from(u8::from(is_writer)),
        ),
        row(
            "rialto_cluster_lag_seconds",
            "Time since this node last looked at the log",
            status.lag_ms as f64 / 1e3,
        ),
        row(
            "rialto_cluster_takeovers_total",
            "How often this node became the writer",
            status.takeovers as f64,
        ),
        row(
            "rialto_cluster_applied_batch",
            "The newest batch of the log that this node has applied",
            status.seq as f64,
        ),
        row("rialto_cluster_nodes", "Nodes that have reported lately", engine.node_count() as f64),
    ]
}
