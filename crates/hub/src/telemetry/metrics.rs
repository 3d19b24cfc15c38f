//! Metrics in the Prometheus text format.
//!
//! HTTP metrics are counted here; all others are collected from their sources at each scrape.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder, text,
};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry as MetricSet;

use super::request::{CompletedRequest, MethodLabel, RequestSeries, RouteLabel};

/// The content type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of the duration buckets: most responses wait for one fsync, some for another agent.
const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// A value that is collected at each scrape: name, help, value. A name that ends in `_total` is a
/// counter, any other a gauge.
pub type ScrapedValue = (String, String, f64);

/// All metrics of one hub. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<MetricsInner>);

#[derive(Debug)]
struct MetricsInner {
    metrics: MetricSet,
    requests: Family<RequestLabels, Counter>,
    durations: Family<DurationLabels, Histogram, fn() -> Histogram>,
    connections: Gauge,
    mcp_requests: Family<McpRequestLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: MethodLabel,
    route: RouteLabel,
    status: u16,
}

/// What a request of a model was, and what became of it. Nothing says whose it was.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct McpRequestLabels {
    pub method: &'static str,
    pub era: &'static str,
    /// One of the hub's own tools, `skill` for a tool of an agent, or `none`.
    pub tool: &'static str,
    pub outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    method: MethodLabel,
    route: RouteLabel,
}

struct ScrapeCollector<F>(F);

impl Metrics {
    /// `extra` returns the other values at each scrape; their names must be unique.
    #[cfg(test)]
    pub fn new(extra: impl Fn() -> Vec<ScrapedValue> + Send + Sync + 'static) -> Self {
        Self::with_collectors(extra, Vec::new())
    }

    /// The same, with collectors of metrics that have labels or buckets.
    pub fn with_collectors(
        extra: impl Fn() -> Vec<ScrapedValue> + Send + Sync + 'static,
        collectors: Vec<Box<dyn Collector>>,
    ) -> Self {
        let mut metrics = MetricSet::default();
        let requests = Family::default();
        let durations: Family<DurationLabels, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(SECONDS));
        let connections = Gauge::default();
        let build: Family<[(&'static str, &'static str); 1], Gauge> = Family::default();
        build.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]).set(1);

        metrics.register("rialto_http_requests", "Requests answered", requests.clone());
        let name = "rialto_http_request_duration_seconds";
        metrics.register(name, "Time until the response head was ready", durations.clone());
        metrics.register("rialto_http_connections", "Connections open now", connections.clone());
        metrics.register("rialto_build_info", "The running version", build);
        let mcp_requests = Family::default();
        metrics.register("rialto_mcp_requests", "MCP requests answered", mcp_requests.clone());
        metrics.register_collector(Box::new(ScrapeCollector(extra)));
        for collector in collectors {
            metrics.register_collector(collector);
        }
        Self(Arc::new(MetricsInner { metrics, requests, durations, connections, mcp_requests }))
    }

    /// Counts one completed request.
    pub fn record(&self, completed: &CompletedRequest<'_>) {
        let CompletedRequest { method, route, status, took } = *completed;
        let create = || self.series(method, route.label(), status);
        route.with_series((method, status), create, |series| {
            series.duration.observe(took.as_secs_f64());
            series.count.inc();
        });
    }

    /// Counts one MCP request.
    pub fn record_mcp_request(&self, labels: &McpRequestLabels) {
        self.0.mcp_requests.get_or_create(labels).inc();
    }

    fn series(&self, method: MethodLabel, route: &RouteLabel, status: StatusCode) -> RequestSeries {
        let labels = DurationLabels { method, route: route.clone() };
        let duration = self.0.durations.get_or_create(&labels).clone();
        let DurationLabels { method, route } = labels;
        let labels = RequestLabels { method, route, status: status.as_u16() };
        let count = self.0.requests.get_or_create(&labels).clone();
        RequestSeries { method, status, duration, count }
    }

    /// The number of open connections; the edge updates it.
    pub fn connection_gauge(&self) -> &Gauge {
        &self.0.connections
    }

    /// All metrics in the Prometheus text format; see [`CONTENT_TYPE`].
    pub fn encode(&self) -> String {
        let mut open = String::new();
        // Writing to a string cannot fail, and partial metrics are better than none.
        let _ = text::encode_registry(&mut open, &self.0.metrics);
        to_prometheus_text(&open)
    }
}

impl<F: Fn() -> Vec<ScrapedValue> + Send + Sync + 'static> Collector for ScrapeCollector<F> {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (name, help, value) in (self.0)() {
            let total = name.strip_suffix("_total");
            let metric: Box<dyn EncodeMetric> = match total {
                Some(_) => Box::new(ConstCounter::new(value)),
                None => Box::new(ConstGauge::new(value)),
            };
            let name = total.unwrap_or(&name);
            let kind = metric.metric_type();
            metric.encode(encoder.encode_descriptor(name, &help, None, kind)?)?;
        }
        Ok(())
    }
}

impl<F> fmt::Debug for ScrapeCollector<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}

impl EncodeLabelValue for MethodLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        self.as_str().encode(encoder)
    }
}

impl EncodeLabelValue for RouteLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        self.as_str().encode(encoder)
    }
}

/// OpenMetrics omits `_total` in a counter's description and adds it to its samples. The older text
/// format, which every scraper and `curl | grep` reads, uses one name.
fn to_prometheus_text(open: &str) -> String {
    let mut text = String::with_capacity(open.len() + 64);
    let mut help = None;
    for line in open.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ');
            continue;
        }
        let described = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '));
        let (Some((name, kind)), Some((_, about))) = (described, help) else {
            text.extend([line, "\n"]);
            continue;
        };
        let total = if kind == "counter" { "_total" } else { "" };
        text.extend(["# HELP ", name, total, " ", about, "\n"]);
        text.extend(["# TYPE ", name, total, " ", kind, "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Method;

    use super::*;
    use crate::telemetry::RouteSeries;

    fn completed(route: &RouteSeries, status: StatusCode) -> CompletedRequest<'_> {
        let (method, took) = (MethodLabel::from(&Method::GET), Duration::from_millis(3));
        CompletedRequest { method, route, status, took }
    }

    #[test]
    fn an_answered_request_is_counted_and_timed() {
        let metrics = Metrics::new(Vec::new);
        let (unknown, jobs) = (RouteSeries::new(None), RouteSeries::new(Some("/jobs")));
        metrics.record(&completed(&unknown, StatusCode::OK));
        metrics.record(&completed(&unknown, StatusCode::OK));
        metrics.record(&completed(&unknown, StatusCode::NOT_FOUND));
        metrics.record(&completed(&jobs, StatusCode::OK));
        metrics.connection_gauge().inc();
        let text = metrics.encode();
        for line in [
            "# TYPE rialto_http_requests_total counter",
            "rialto_http_requests_total{method=\"GET\",route=\"none\",status=\"200\"} 2",
            "# TYPE rialto_http_request_duration_seconds histogram",
            "rialto_http_requests_total{method=\"GET\",route=\"none\",status=\"404\"} 1",
            "rialto_http_requests_total{method=\"GET\",route=\"/jobs\",status=\"200\"} 1",
            "rialto_http_request_duration_seconds_count{method=\"GET\",route=\"none\"} 3",
            "rialto_http_connections 1",
            concat!("rialto_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        let bucket = "rialto_http_request_duration_seconds_bucket{le=\"0.005\"";
        assert!(text.contains(bucket), "{text}");
    }

    #[test]
    fn extra_numbers_are_asked_for_at_each_scrape() {
        use std::sync::atomic::{AtomicU32, Ordering};

        let scrapes = AtomicU32::new(0);
        let metrics = Metrics::new(move || {
            let scrape = f64::from(scrapes.fetch_add(1, Ordering::Relaxed) + 1);
            let scraped = "rialto_scrapes_total".to_owned();
            let agents = "rialto_agents".to_owned();
            vec![(scraped, "Scrapes".to_owned(), scrape), (agents, "Agents".to_owned(), 2.5)]
        });
        metrics.encode();
        let text = metrics.encode();
        let lines = [
            "# HELP rialto_scrapes_total Scrapes",
            "# TYPE rialto_scrapes_total counter",
            "rialto_scrapes_total 2.0",
            "# HELP rialto_agents Agents",
            "# TYPE rialto_agents gauge",
            "rialto_agents 2.5",
        ];
        assert!(text.contains(&lines.join("\n")), "{text}");
    }
}
