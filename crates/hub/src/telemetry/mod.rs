//! What the hub tells its operator: log lines and numbers.
//!
//! Neither ever carries a query string, header, body, id or key of a caller: routes are named by
//! their templates.

mod logs;
mod metrics;
mod request;

pub use logs::{BadFilter, FILTER_VARIABLE, start};
#[cfg(test)]
pub(crate) use logs::{Page, write_no_line_off};
pub use metrics::{CONTENT_TYPE, Extra, Metrics};
pub use request::{Answered, Route, Verb};
