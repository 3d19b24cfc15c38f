//! Telemetry for the operator: logs and metrics.
//!
//! Neither contains a query string, header, body, name or key of a caller: routes are shown as
//! templates, agents and owners as the hub's own numbers.

mod engine_collector;
mod logs;
mod metrics;
mod process;
mod request;

pub use engine_collector::Counting;
pub use logs::{BadFilter, FILTER_VARIABLE, set_level, start};
#[cfg(test)]
pub(crate) use logs::{Page, write_no_line_off};
pub use metrics::{CONTENT_TYPE, Extra, Metrics};
pub use process::Process;
pub use request::{Answered, Route, Verb};
