//! Log lines: text on a terminal, JSON everywhere else.

use std::io::{self, IsTerminal};
use std::panic;
use std::sync::OnceLock;

use tracing::{Subscriber, error, subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

use super::request_scope::{LineEnd, WithRequest};
use crate::config::{Level, Log, LogFormat};

/// The environment variable that replaces `log.level` with a filter, as in
/// `info,rialto::access=debug`.
pub const FILTER_VARIABLE: &str = "RIALTO_LOG";

/// The filter in the environment is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{FILTER_VARIABLE} is not a log filter: {why}; try `info,rialto::access=debug`")]
pub struct LogFilterError {
    why: String,
}

/// The format of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineFormat {
    Json,
    Text { colours: bool },
}

/// Starts logging to standard error, for the whole process. `filter` is the value of
/// [`FILTER_VARIABLE`]. Later calls change nothing, because tests start many hubs.
pub fn start_logging(log: &Log, filter: Option<&str>) -> Result<(), LogFilterError> {
    let form = line_format(log.format, io::stderr().is_terminal());
    let named = filter.is_some();
    let filter = parse(filter.unwrap_or(default_filter(log.level)))?;
    let (lines, set) = build_subscriber(form, filter, io::stderr);
    if subscriber::set_global_default(lines).is_ok() {
        log_panics();
        // A filter in the environment overrides `log.level`, also when that is reloaded.
        let _ = SET_FILTER.set(if named { Box::new(|_| {}) } else { set });
    }
    Ok(())
}

/// Replaces the active filter.
type SetFilter = Box<dyn Fn(EnvFilter) + Send + Sync>;

/// The filter setter of the process.
static SET_FILTER: OnceLock<SetFilter> = OnceLock::new();

/// Changes the level while the process runs.
pub fn set_log_level(level: Level) {
    let filter = parse(default_filter(level));
    if let (Some(set), Ok(filter)) = (SET_FILTER.get(), filter) {
        set(filter);
    }
}

/// A panic is logged like any other line; otherwise it would break the JSON output. Its text comes
/// from our assertions and `expect`, never from a caller.
fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        error!(at, what = panic.payload_as_str().unwrap_or("unknown"), "panicked");
    }));
}

fn line_format(format: LogFormat, terminal: bool) -> LineFormat {
    match format {
        LogFormat::Json => LineFormat::Json,
        LogFormat::Text => LineFormat::Text { colours: terminal },
        LogFormat::Auto if terminal => LineFormat::Text { colours: true },
        LogFormat::Auto => LineFormat::Json,
    }
}

/// The configured level for our own crates. Other libraries log at most warnings, except at
/// `trace`.
fn default_filter(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "warn,rialto=info",
        Level::Debug => "warn,rialto=debug",
        Level::Trace => "trace",
    }
}

fn parse(filter: &str) -> Result<EnvFilter, LogFilterError> {
    EnvFilter::builder().parse(filter).map_err(|why| LogFilterError { why: why.to_string() })
}

fn build_subscriber<W>(
    form: LineFormat,
    filter: EnvFilter,
    writer: W,
) -> (Box<dyn Subscriber + Send + Sync>, SetFilter)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE)
        .with_writer(writer);
    match form {
        LineFormat::Json => {
            let lines = lines.json().flatten_event(true).with_span_list(false);
            let lines = lines.map_event_format(|lines| WithRequest { lines, end: LineEnd::Json });
            let lines = lines.with_filter_reloading();
            let handle = lines.reload_handle();
            (Box::new(lines.finish()), Box::new(move |filter| drop(handle.reload(filter))))
        }
        LineFormat::Text { colours } => {
            let lines = lines.with_ansi(colours).map_event_format(|lines| {
                let lines = lines.with_ansi(colours);
                WithRequest { lines, end: LineEnd::Text }
            });
            let lines = lines.with_filter_reloading();
            let handle = lines.reload_handle();
            (Box::new(lines.finish()), Box::new(move |filter| drop(handle.reload(filter))))
        }
    }
}

/// Captures log lines for tests.
#[cfg(test)]
#[derive(Clone, Default)]
pub(crate) struct LogCapture(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

#[cfg(test)]
impl LogCapture {
    /// Captures the lines of this thread until the guard is dropped.
    fn start(form: LineFormat, filter: &str) -> (Self, subscriber::DefaultGuard) {
        keep_callsites_enabled();
        let page = Self::default();
        let to = page.clone();
        let filter = parse(filter).expect("the filter is valid");
        let guard = subscriber::set_default(build_subscriber(form, filter, move || to.clone()).0);
        (page, guard)
    }

    pub(crate) fn json(filter: &str) -> (Self, subscriber::DefaultGuard) {
        Self::start(LineFormat::Json, filter)
    }

    pub(crate) fn text(&self) -> String {
        let bytes = self.0.lock().expect("no writer panics").clone();
        String::from_utf8(bytes).expect("lines are text")
    }
}

/// `tracing` caches for all threads whether a callsite is enabled. If that happens while no test
/// listens, it caches "disabled", and a test that starts capturing at that moment misses the line.
/// Tests that capture lines call this before anything is logged.
#[cfg(test)]
pub(crate) fn keep_callsites_enabled() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        subscriber::set_global_default(CallsiteKeeper).expect("no test takes the process's logs");
    });
}

/// A global subscriber that records nothing and keeps every callsite undecided.
#[cfg(test)]
struct CallsiteKeeper;

#[cfg(test)]
impl Subscriber for CallsiteKeeper {
    fn register_callsite(&self, _: &tracing::Metadata<'_>) -> subscriber::Interest {
        subscriber::Interest::sometimes()
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::TRACE)
    }

    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::Id {
        tracing::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::Id, _: &tracing::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, _: &tracing::Id) {}

    fn exit(&self, _: &tracing::Id) {}
}

#[cfg(test)]
impl io::Write for LogCapture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tracing::{debug, info, info_span};

    use super::*;
    use crate::telemetry::RequestScope;

    #[test]
    fn auto_is_text_only_on_a_terminal() {
        assert_eq!(line_format(LogFormat::Auto, true), LineFormat::Text { colours: true });
        assert_eq!(line_format(LogFormat::Auto, false), LineFormat::Json);
        assert_eq!(line_format(LogFormat::Json, true), LineFormat::Json);
        assert_eq!(line_format(LogFormat::Text, false), LineFormat::Text { colours: false });
    }

    #[test]
    fn json_lines_carry_fields_and_the_request_they_belong_to() {
        let (page, _open) = LogCapture::json("info");
        let mut request = RequestScope::new(HeaderValue::from_static("r-1"), None);
        request.during(|| info!(attempt = 2, text = "two\nlines", "retried"));
        let text = page.text();
        for part in [
            "\"level\":\"INFO\"",
            "\"message\":\"retried\"",
            "\"attempt\":2",
            "\"text\":\"two\\nlines\"",
            "\"span\":{\"request_id\":\"r-1\",\"name\":\"request\"}",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(text.lines().count(), 1);
        let line: serde_json::Value = serde_json::from_str(&text).expect("a line is JSON");
        assert_eq!(line["span"]["request_id"], "r-1");
    }

    #[test]
    fn a_line_belongs_to_the_request_that_is_worked_on() {
        for form in [LineFormat::Json, LineFormat::Text { colours: false }] {
            let (page, _open) = LogCapture::start(form, "info");
            let quoted = HeaderValue::from_static(r#"a"b\c"#);
            let mut outer = RequestScope::new(quoted, Some(0xab));
            let mut inner = RequestScope::new(HeaderValue::from_static("r-2"), None);
            outer.during(|| {
                inner.during(|| info!("inside"));
                info!("around");
                info_span!("connecting", to = "peer").in_scope(|| info!("in a span"));
            });
            info!("after");
            outer.during(|| info!("again"));
            let text = page.text();
            let lines: Vec<&str> = text.lines().collect();
            let (id, trace) = match form {
                LineFormat::Json => {
                    (r#""a\"b\\c""#, r#""trace_id":"000000000000000000000000000000ab""#)
                }
                LineFormat::Text { .. } => {
                    (r#"request_id=a"b\c"#, "trace_id=000000000000000000000000000000ab")
                }
            };
            assert!(lines[0].contains("r-2") && !lines[0].contains("trace_id"), "{text}");
            assert!(lines[1].contains(id) && lines[1].contains(trace), "{text}");
            assert!(lines[2].contains("peer") && !lines[2].contains("request_id"), "{text}");
            assert!(!lines[3].contains("request_id"), "{text}");
            assert!(lines[4].contains(id) && lines[4].contains(trace), "{text}");
            assert_eq!(lines.len(), 5, "{text}");
        }
    }

    #[test]
    fn a_level_is_about_our_own_crates() {
        let form = LineFormat::Text { colours: false };
        let (page, _open) = LogCapture::start(form, default_filter(Level::Debug));
        debug!("ours");
        debug!(target: "rialto::access", "access");
        debug!(target: "hyper::proto", "theirs");
        let text = page.text();
        assert!(text.contains("ours") && text.contains("access"), "{text}");
        assert!(!text.contains("theirs"), "{text}");
    }

    #[test]
    fn another_level_is_taken_while_lines_are_written() {
        keep_callsites_enabled();
        let page = LogCapture::default();
        let to = page.clone();
        for form in [LineFormat::Json, LineFormat::Text { colours: false }] {
            let filter = parse(default_filter(Level::Warn)).expect("a valid filter");
            let to = to.clone();
            let (lines, set) = build_subscriber(form, filter, move || to.clone());
            let _open = subscriber::set_default(lines);
            info!("before {form:?}");
            set(parse(default_filter(Level::Info)).expect("a valid filter"));
            info!("after {form:?}");
        }
        let text = page.text();
        assert!(!text.contains("before"), "{text}");
        assert_eq!(text.matches("after").count(), 2, "{text}");
    }

    #[test]
    fn a_bad_filter_is_told_with_a_good_one() {
        let problem = parse("rialto=loud").map(|_| ()).expect_err("loud is not a level");
        assert!(problem.to_string().contains("RIALTO_LOG"), "{problem}");
        assert!(problem.to_string().contains("try `info"), "{problem}");
    }
}
