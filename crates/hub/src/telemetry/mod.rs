//! Telemetry for the operator: logs and metrics.
//!
//! Neither contains a query string, header, body, name or key of a caller: routes are shown as
//! templates, agents and owners as the hub's own numbers.

mod engine_collector;
mod logs;
mod metrics;
mod process;
mod request;
mod request_scope;

pub use engine_collector::EngineCollector;
pub use logs::{FILTER_VARIABLE, LogFilterError, set_log_level, start_logging};
#[cfg(test)]
pub(crate) use logs::{LogCapture, keep_callsites_enabled};
pub use metrics::{CONTENT_TYPE, McpRequestLabels, Metrics, ScrapedValue};
pub use process::ProcessCollector;
pub use request::{CompletedRequest, MethodLabel, RouteSeries};
pub use request_scope::RequestScope;
