//! Names the request that a log line belongs to.
//!
//! A span of `tracing` would be built for every request, although nearly no request logs anything.
//! So a thread only knows which request it works on, and a line looks it up when it is written.

use std::cell::RefCell;
use std::fmt::{self, Write};

use http::HeaderValue;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

thread_local! {
    /// The request that this thread works on.
    static CURRENT: RefCell<Option<LoggedRequest>> = const { RefCell::new(None) };
}

/// What log lines say of their request.
#[derive(Debug)]
struct LoggedRequest {
    request_id: HeaderValue,
    trace_id: Option<u128>,
}

/// The request of all lines that are logged during its work.
#[derive(Debug)]
pub struct RequestScope(Option<LoggedRequest>);

impl RequestScope {
    pub fn new(request_id: HeaderValue, trace_id: Option<u128>) -> Self {
        Self(Some(LoggedRequest { request_id, trace_id }))
    }

    /// Does some of the work.
    pub fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let outer = CURRENT.replace(self.0.take());
        let done = work();
        self.0 = CURRENT.replace(outer);
        done
    }
}

impl LoggedRequest {
    fn id(&self) -> &str {
        self.request_id.to_str().unwrap_or("unknown")
    }

    /// As a member of a JSON object, in the form of a span.
    fn write_json(&self, line: &mut String) -> fmt::Result {
        let id = serde_json::Value::from(self.id());
        write!(line, r#","span":{{"request_id":{id}"#)?;
        if let Some(trace_id) = self.trace_id {
            write!(line, r#","trace_id":"{trace_id:032x}""#)?;
        }
        line.write_str(r#","name":"request"}"#)
    }

    /// As fields.
    fn write_text(&self, line: &mut String) -> fmt::Result {
        write!(line, " request_id={}", self.id())?;
        self.trace_id.map_or(Ok(()), |trace_id| write!(line, " trace_id={trace_id:032x}"))
    }
}

/// How a line ends, and so where its request is inserted.
#[derive(Clone, Copy, Debug)]
pub enum LineEnd {
    Json,
    Text,
}

/// Lines in another format, with their request.
pub struct WithRequest<F> {
    pub lines: F,
    pub end: LineEnd,
}

impl<S, N, F> FormatEvent<S, N> for WithRequest<F>
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        CURRENT.with_borrow(|request| {
            // A line shows its innermost span, and a span of a library is inside the request.
            let Some(request) = request.as_ref().filter(|_| context.lookup_current().is_none())
            else {
                return self.lines.format_event(context, writer, event);
            };
            let mut line = String::new();
            self.lines.format_event(context, Writer::new(&mut line), event)?;
            match self.end {
                LineEnd::Json => {
                    line.truncate(line.trim_end().len().saturating_sub("}".len()));
                    request.write_json(&mut line)?;
                    line.push('}');
                }
                LineEnd::Text => {
                    line.truncate(line.trim_end().len());
                    request.write_text(&mut line)?;
                }
            }
            writeln!(writer, "{line}")
        })
    }
}
