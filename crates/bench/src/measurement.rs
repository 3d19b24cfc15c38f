//! The result of a load run: rates, latencies and errors.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hyper::StatusCode;
use serde::Serialize;

use crate::load::{LoadPlan, Pace};
use crate::scrape::Counters;
use crate::usage::Usage;

/// Latencies are kept to three digits, up to ten minutes.
const DIGITS: u8 = 3;
const LATENCY_NS_MAX: u64 = 600_000_000_000;

/// Characters of an unexpected answer that are kept for the report.
const SAMPLE_CHARS_MAX: usize = 300;

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// Number of connections.
    pub connections: usize,
    /// The requested rate; none in a closed loop.
    pub planned_per_second: Option<f64>,
    /// Measured time in seconds.
    pub seconds: f64,
    /// Good answers in that time.
    pub good: u64,
    /// Good answers per second.
    pub per_second: f64,
    /// Latencies of good answers.
    pub latency: Percentiles,
    /// Errors.
    pub errors: Errors,
    /// Open loop: good answers to requests that had to wait for their connection.
    pub queued: u64,
    /// Open loop: requests that were due and never sent. A few at the very end mean nothing. Many
    /// mean that the rate was too high for the server, and then the latencies are not meaningful.
    pub unsent: u64,
    /// What the server used in the measured time, where its process is known.
    pub usage: Option<Usage>,
    /// How much the server's own counters grew in the measured time, if they were read.
    pub counters: Counters,
}

/// Latencies in microseconds. NaN where nothing was measured, so that it is not mistaken for a fast
/// answer; `null` in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half of the answers took at most this long.
    pub p50_us: f64,
    /// 90 of 100 took at most this long.
    pub p90_us: f64,
    /// 99 of 100 took at most this long.
    pub p99_us: f64,
    /// 999 of 1,000 took at most this long.
    pub p999_us: f64,
    /// The slowest one.
    pub max_us: f64,
}

/// The errors of a run, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Errors {
    /// Unexpected answers, by status.
    pub by_status: BTreeMap<u16, u64>,
    /// Connections that failed to open or closed before the answer.
    pub broken: u64,
    /// Answers that did not arrive in time.
    pub timed_out: u64,
    /// The first error, as text.
    pub first: Option<String>,
}

impl Measurement {
    /// Whether an open loop requested more than the server can handle: more than one request in a
    /// hundred was never sent.
    pub fn is_overrun(&self) -> bool {
        self.unsent > self.good / 100
    }

    /// CPU time of the server per good answer, in microseconds outside and inside the kernel. NaN
    /// where the system does not report it.
    pub fn cpu_us_parts(&self) -> (f64, f64) {
        match &self.usage {
            Some(usage) if self.good > 0 => {
                let (user, system) = usage.cpu_us();
                (user / self.good as f64, system / self.good as f64)
            }
            _ => (f64::NAN, f64::NAN),
        }
    }

    /// CPU time of the server per good answer, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        let (user, system) = self.cpu_us_parts();
        user + system
    }
}

impl Percentiles {
    /// Reads a histogram of nanoseconds.
    pub fn of(nanoseconds: &Histogram<u64>) -> Self {
        let at = |quantile: f64| {
            if nanoseconds.is_empty() {
                return f64::NAN;
            }
            nanoseconds.value_at_quantile(quantile) as f64 / 1_000.0
        };
        Self {
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: at(1.0),
        }
    }
}

impl Errors {
    /// Number of errors.
    pub fn total(&self) -> u64 {
        self.by_status.values().sum::<u64>() + self.broken + self.timed_out
    }

    /// Adds the errors of another run.
    pub fn add(&mut self, other: &Self) {
        for (status, count) in &other.by_status {
            *self.by_status.entry(*status).or_default() += count;
        }
        self.broken += other.broken;
        self.timed_out += other.timed_out;
        self.first = self.first.take().or_else(|| other.first.clone());
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> =
            self.by_status.iter().map(|(status, count)| format!("{count} × {status}")).collect();
        if self.broken > 0 {
            parts.push(format!("{} broken", self.broken));
        }
        if self.timed_out > 0 {
            parts.push(format!("{} timed out", self.timed_out));
        }
        write!(f, "{}", parts.join(", "))?;
        match &self.first {
            Some(first) => write!(f, "; the first: {first}"),
            None => Ok(()),
        }
    }
}

/// Why a request did not get a good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestError {
    /// An answer came, but not the expected one.
    UnexpectedAnswer { status: u16, sample: String },
    /// The connection failed.
    ConnectionFailed(String),
    /// No answer came in time.
    TimedOut,
}

impl RequestError {
    pub(super) fn unexpected_answer(status: StatusCode, body: &[u8]) -> Self {
        let sample = String::from_utf8_lossy(body).chars().take(SAMPLE_CHARS_MAX).collect();
        Self::UnexpectedAnswer { status: status.as_u16(), sample }
    }

    pub(super) fn connection_failed(error: impl fmt::Display) -> Self {
        Self::ConnectionFailed(error.to_string())
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnexpectedAnswer { status, sample } => write!(f, "{status} {sample}"),
            Self::ConnectionFailed(why) => f.write_str(why),
            Self::TimedOut => f.write_str("timed out waiting for the answer"),
        }
    }
}

/// Counts of one client thread so far.
pub(super) struct Tally {
    nanoseconds: Histogram<u64>,
    errors: Errors,
    pub(super) good: u64,
    pub(super) queued: u64,
    pub(super) unsent: u64,
    /// When each good answer's request was sent and answered, if the plan asks for it.
    pub(super) spans: Vec<Range<Instant>>,
}

impl Default for Tally {
    fn default() -> Self {
        let nanoseconds = Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS)
            .expect("the bounds are constants that hdrhistogram allows");
        Self {
            nanoseconds,
            errors: Errors::default(),
            good: 0,
            queued: 0,
            unsent: 0,
            spans: Vec::new(),
        }
    }
}

impl Tally {
    pub(super) fn record_latency(&mut self, took: Duration) {
        // Saturating: longer latencies count as ten minutes.
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.saturating_record(nanoseconds);
    }

    pub(super) fn record_error(&mut self, request_error: RequestError) {
        let text = request_error.to_string();
        match request_error {
            RequestError::UnexpectedAnswer { status, .. } => {
                *self.errors.by_status.entry(status).or_default() += 1
            }
            RequestError::ConnectionFailed(_) => self.errors.broken += 1,
            RequestError::TimedOut => self.errors.timed_out += 1,
        }
        self.errors.first.get_or_insert(text);
    }

    pub(super) fn add(&mut self, other: Self) {
        self.nanoseconds.add(other.nanoseconds).expect("all tallies have the same bounds");
        self.errors.add(&other.errors);
        self.good += other.good;
        self.queued += other.queued;
        self.unsent += other.unsent;
        self.spans.extend(other.spans);
    }

    pub(super) fn into_measurement(self, plan: &LoadPlan) -> Measurement {
        let planned_per_second = match plan.pace {
            Pace::Closed => None,
            Pace::Open { per_second } => Some(per_second),
        };
        let connections = plan.connections;
        Measurement { connections, planned_per_second, ..self.measured_in(plan.duration) }
    }

    /// The measurement of one caller that took `duration`, one request after the other.
    pub(super) fn measured_in(self, duration: Duration) -> Measurement {
        let seconds = duration.as_secs_f64();
        Measurement {
            connections: 1,
            planned_per_second: None,
            seconds,
            good: self.good,
            per_second: self.good as f64 / seconds,
            latency: Percentiles::of(&self.nanoseconds),
            errors: self.errors,
            queued: self.queued,
            unsent: self.unsent,
            usage: None,
            counters: Counters::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::ThreadUsage;

    fn tally_of(micros: impl IntoIterator<Item = u64>) -> Tally {
        let mut tally = Tally::default();
        for micros in micros {
            tally.record_latency(Duration::from_micros(micros));
        }
        tally
    }

    /// Three digits are kept, so a figure may be off by a thousandth.
    fn about(left: f64, right: f64) -> bool {
        (left - right).abs() <= right / 1_000.0
    }

    #[test]
    fn percentiles_are_those_of_the_recorded_latencies() {
        let Percentiles { p50_us, p90_us, p99_us, p999_us, max_us } =
            Percentiles::of(&tally_of(1..=1_000).nanoseconds);
        assert!(about(p50_us, 500.0), "{p50_us}");
        assert!(about(p90_us, 900.0), "{p90_us}");
        assert!(about(p99_us, 990.0), "{p99_us}");
        assert!(about(p999_us, 999.0), "{p999_us}");
        assert!(about(max_us, 1_000.0), "{max_us}");
    }

    #[test]
    fn without_an_answer_there_is_no_latency_rather_than_none_at_all() {
        let nothing = Percentiles::of(&Tally::default().nanoseconds);
        assert!(nothing.p50_us.is_nan() && nothing.max_us.is_nan());
        assert_eq!(serde_json::to_value(nothing).unwrap()["p99_us"], serde_json::Value::Null);
    }

    #[test]
    fn tallies_of_several_threads_add_up() {
        let mut one = tally_of([100, 100, 100]);
        one.good = 3;
        one.record_error(RequestError::unexpected_answer(
            StatusCode::TOO_MANY_REQUESTS,
            b"slow down",
        ));
        let mut two = tally_of([900]);
        two.good = 1;
        two.record_error(RequestError::TimedOut);
        two.record_error(RequestError::unexpected_answer(StatusCode::TOO_MANY_REQUESTS, b"slower"));
        one.add(two);

        let plan = LoadPlan {
            duration: Duration::from_secs(2),
            ..LoadPlan::new(([127, 0, 0, 1], 1).into())
        };
        let measured = one.into_measurement(&plan);
        assert_eq!(measured.good, 4);
        assert_eq!(measured.per_second, 2.0);
        assert!(about(measured.latency.max_us, 900.0));
        assert_eq!(measured.errors.total(), 3);
        assert_eq!(measured.errors.to_string(), "2 × 429, 1 timed out; the first: 429 slow down");
    }

    #[test]
    fn cpu_time_is_divided_by_good_answers_and_unknown_without_them() {
        let mut measured =
            Tally { good: 10, ..Tally::default() }.measured_in(Duration::from_secs(1));
        assert!(measured.cpu_us().is_nan(), "nothing is known about the server");
        let thread = ThreadUsage { user_us: 200.0, system_us: 100.0, written_bytes: 0 };
        measured.usage = Some(Usage([("lane".to_owned(), thread)].into()));
        assert_eq!((measured.cpu_us_parts(), measured.cpu_us()), ((20.0, 10.0), 30.0));
        measured.good = 0;
        assert!(measured.cpu_us().is_nan(), "nothing was answered");
    }

    #[test]
    fn a_latency_beyond_the_scale_counts_as_its_end() {
        let mut tally = Tally::default();
        tally.record_latency(Duration::from_secs(86_400));
        assert!(about(Percentiles::of(&tally.nanoseconds).max_us, LATENCY_NS_MAX as f64 / 1_000.0));
    }
}
