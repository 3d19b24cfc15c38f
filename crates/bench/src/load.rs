//! The load client: keep-alive connections that send as fast as they are answered, or at a fixed
//! rate.
//!
//! It speaks HTTP/1.1 over bare connections ([`crate::connection`]), without a pool
//! or redirects, because on one machine the client takes CPU time from the server. The caller
//! supplies the requests and decides which answers are good; `report` evaluates the figures.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName};
use hyper::http::HeaderValue;
use hyper::{HeaderMap, Method, StatusCode};
use tokio::net::TcpStream;

use crate::connection::{BenchConnection, BenchRequest};
use crate::measurement::{Measurement, RequestError, Tally};
use crate::scrape::{Counters, growth, read_counters};
use crate::usage::{Usage, UsageSnapshot};

/// Delay before a broken connection is opened again, so that a dead server is not hammered.
const RECONNECT_PAUSE: Duration = Duration::from_millis(10);

/// Time between the last connect and the first request: the threads need it to start.
const START_DELAY: Duration = Duration::from_millis(5);

/// How late a timer may fire by itself. A request sent later than that was delayed by a busy
/// machine, which a real client would notice too.
const TIMER_SLACK: Duration = Duration::from_millis(2);

/// The slowest open loop: one request per 1,000 seconds.
const PER_SECOND_MIN: f64 = 0.001;

/// What to measure, at which load and for how long.
#[derive(Clone, Copy, Debug)]
pub struct LoadPlan {
    /// The server's address.
    pub address: SocketAddr,
    /// The server's process, whose CPU time is measured.
    pub pid: Option<u32>,
    /// The PostgreSQL that the server keeps its data in; the CPU time of both is added up.
    pub database: Option<u32>,
    /// Whether the server's own counters are read as well.
    pub reads_counters: bool,
    /// Whether it is kept when each request was sent and answered.
    pub keeps_spans: bool,
    /// Connections kept open; each has at most one request in flight.
    pub connections: usize,
    /// Threads of the client.
    pub threads: usize,
    /// When the next request is sent.
    pub pace: Pace,
    /// Load before counting starts.
    pub warm_up: Duration,
    /// Time that is measured.
    pub duration: Duration,
    /// Time limit for an answer; then the connection is closed.
    pub answer_timeout: Duration,
}

/// A server to measure.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub address: SocketAddr,
    /// Its process, if it is known.
    pub pid: Option<u32>,
    /// The process of the PostgreSQL it keeps its data in, if it does.
    pub database: Option<u32>,
    /// Whether it reports counters at `/metrics`.
    pub has_counters: bool,
}

impl Target {
    /// A server of which only the address is known.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, pid: None, database: None, has_counters: false }
    }
}

/// When a connection sends its next request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As soon as the answer arrives. This finds the highest rate. But a server that stalls gets
    /// fewer requests meanwhile, so its latencies look better than real clients would find them.
    Closed,
    /// At fixed times, `per_second` over all connections together. If the connection is still busy
    /// when a request is due, the request is sent late and its latency counts from the due time. So
    /// a stall shows in every request that was due during it.
    ///
    /// The timer is accurate to a millisecond: use enough connections that each has a few
    /// milliseconds between two requests.
    Open {
        /// Requests per second, over all connections together.
        per_second: f64,
    },
}

/// One request, without headers that belong to the connection (`Host`, `Content-Length`).
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Path and query, starting with `/`.
    pub path: String,
    /// Further headers.
    pub headers: HeaderMap,
    /// The body; may be empty.
    pub body: Bytes,
}

impl LoadPlan {
    /// A closed loop over 64 connections: one second of warm-up, five seconds measured.
    ///
    /// The client gets one thread per core. If the client were the bottleneck, a slow server would
    /// look nearly as good as a fast one.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            pid: None,
            database: None,
            reads_counters: false,
            keeps_spans: false,
            connections: 64,
            threads: thread::available_parallelism().map_or(1, usize::from),
            pace: Pace::Closed,
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(30),
        }
    }

    /// The server that the plan is for.
    pub fn target(&self) -> Target {
        let Self { address, pid, database, reads_counters: has_counters, .. } = *self;
        Target { address, pid, database, has_counters }
    }

    fn check(&self) -> io::Result<()> {
        let invalid = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if self.connections == 0 || self.threads == 0 {
            return invalid("the load needs at least one connection and one thread");
        }
        if self.duration.is_zero() {
            return invalid("the load duration must be above zero");
        }
        match self.pace {
            Pace::Open { per_second }
                if !(per_second.is_finite() && per_second >= PER_SECOND_MIN) =>
            {
                invalid("an open loop needs a rate of at least 0.001 per second")
            }
            _ => Ok(()),
        }
    }
}

impl Request {
    /// A GET request for `path`.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    /// A POST request to `path` with a JSON `body`.
    pub fn post(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let request = Self { method: Method::POST, body: body.into(), ..Self::get(path) };
        request.with_header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    /// Adds a header.
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

/// Puts the server under load and returns the measurement.
///
/// `request_for` builds the `n`th request of a connection. `n` keeps counting from the warm-up into the
/// measured time, so a pair of connection and `n` is unique in a run. `check` decides whether an
/// answer is good. The others count as errors, and their latencies are left out, since refusals are
/// fast.
///
/// Blocks the calling thread until the last answer has arrived. Fails only if the plan is invalid
/// or the server cannot be reached at all; later errors are part of the result.
pub(super) fn run<A, C, R>(plan: &LoadPlan, request_for: A, check: C) -> io::Result<Measurement>
where
    A: Fn(usize, u64) -> R + Send + Sync + 'static,
    C: Fn(StatusCode, &[u8]) -> bool + Send + Sync + 'static,
    R: BenchRequest,
{
    run_timed(plan, request_for, check).map(|run| run.measured)
}

/// A run of the load client.
pub(super) struct LoadRun {
    pub measured: Measurement,
    /// When the measured time began and ended.
    pub window: Range<Instant>,
    /// When each good answer's request was sent and answered, if the plan asks for it.
    pub spans: Vec<Range<Instant>>,
}

/// Like [`run`], and also returns when everything happened.
pub(super) fn run_timed<A, C, R>(plan: &LoadPlan, request_for: A, check: C) -> io::Result<LoadRun>
where
    A: Fn(usize, u64) -> R + Send + Sync + 'static,
    C: Fn(StatusCode, &[u8]) -> bool + Send + Sync + 'static,
    R: BenchRequest,
{
    run_spread(plan, &[plan.target()], request_for, check)
}

/// Like [`run_timed`], with the connections spread over several servers in turns.
pub(super) fn run_spread<A, C, R>(
    plan: &LoadPlan,
    targets: &[Target],
    request_for: A,
    check: C,
) -> io::Result<LoadRun>
where
    A: Fn(usize, u64) -> R + Send + Sync + 'static,
    C: Fn(StatusCode, &[u8]) -> bool + Send + Sync + 'static,
    R: BenchRequest,
{
    plan.check()?;
    let scenario = Arc::new(Scenario { plan: *plan, request_for, check });
    // Connects before the clock starts and on this thread, so that a missing server is reported at
    // once.
    let threads = plan.threads.min(plan.connections);
    let mut streams: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
    for connection in 0..plan.connections {
        let address = targets[connection % targets.len()].address;
        streams[connection % threads].push((connection, address, connect(address)?));
    }
    let phases = Phases::starting_soon(plan);
    let workers: Vec<_> = streams
        .into_iter()
        .map(|streams| {
            let scenario = Arc::clone(&scenario);
            thread::spawn(move || run_thread(scenario, phases, streams))
        })
        .collect();
    let window = phases.measured_from..phases.until;
    let (usage, counters) = watch_servers(plan, targets, &window);
    let mut tally = Tally::default();
    for worker in workers {
        let done = worker.join().map_err(|_| io::Error::other("a client thread panicked"))?;
        tally.add(done?);
    }
    let spans = std::mem::take(&mut tally.spans);
    let measured = Measurement { usage, counters, ..tally.into_measurement(plan) };
    Ok(LoadRun { measured, window, spans })
}

/// Waits until the measured time is over, and returns what the servers used in it.
fn watch_servers(
    plan: &LoadPlan,
    targets: &[Target],
    window: &Range<Instant>,
) -> (Option<Usage>, Counters) {
    let counters = || {
        let mut sum = Counters::new();
        for target in targets.iter().filter(|target| plan.reads_counters && target.has_counters) {
            for (name, value) in read_counters(target.address) {
                *sum.entry(name).or_default() += value;
            }
        }
        sum
    };
    let usage = || {
        let processes = targets.iter().filter_map(|target| target.pid);
        let database = targets.iter().find_map(|target| target.database);
        UsageSnapshot::take(processes, database)
    };
    sleep_until(window.start);
    let (counted, used) = (counters(), usage());
    sleep_until(window.end);
    let used = usage().zip(used).map(|(after, before)| after.since(&before));
    (used, growth(&counted, &counters()))
}

fn sleep_until(at: Instant) {
    thread::sleep(at.saturating_duration_since(Instant::now()));
}

fn connect(address: SocketAddr) -> io::Result<std::net::TcpStream> {
    let stream = std::net::TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// When each part of a run begins and ends.
#[derive(Clone, Copy, Debug)]
struct Phases {
    start: Instant,
    measured_from: Instant,
    until: Instant,
}

impl Phases {
    fn starting_soon(plan: &LoadPlan) -> Self {
        let start = Instant::now() + START_DELAY;
        let measured_from = start + plan.warm_up;
        Self { start, measured_from, until: measured_from + plan.duration }
    }
}

/// What all connections of a run share.
struct Scenario<A, C> {
    plan: LoadPlan,
    request_for: A,
    check: C,
}

/// One thread of the client, with its own runtime, so that a connection never changes threads.
fn run_thread<A, C, R>(
    scenario: Arc<Scenario<A, C>>,
    phases: Phases,
    streams: Vec<(usize, SocketAddr, std::net::TcpStream)>,
) -> io::Result<Tally>
where
    A: Fn(usize, u64) -> R + Send + Sync + 'static,
    C: Fn(StatusCode, &[u8]) -> bool + Send + Sync + 'static,
    R: BenchRequest,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Shared only by tasks of one thread, so the lock is never contended.
    let tally = Arc::new(Mutex::new(Tally::default()));
    runtime.block_on(async {
        let mut tasks = Vec::with_capacity(streams.len());
        for (connection, address, stream) in streams {
            let stream = TcpStream::from_std(stream)?;
            let connection = LoadConnection {
                scenario: Arc::clone(&scenario),
                phases,
                connection,
                address,
                tally: Arc::clone(&tally),
            };
            tasks.push(tokio::spawn(connection.run(stream)));
        }
        for task in tasks {
            task.await.map_err(io::Error::other)?;
        }
        Ok::<(), io::Error>(())
    })?;
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *tally))
}

/// Permission to send the next request.
#[derive(Clone, Copy, Debug)]
struct SendSlot {
    /// Latency counts from sending, but from this time at the latest.
    latest: Option<Instant>,
    /// Whether the connection was still busy when the request was due.
    queued: bool,
}

/// One connection of the load client, and the requests it sends.
struct LoadConnection<A, C> {
    scenario: Arc<Scenario<A, C>>,
    phases: Phases,
    connection: usize,
    address: SocketAddr,
    tally: Arc<Mutex<Tally>>,
}

impl<A, C, R> LoadConnection<A, C>
where
    A: Fn(usize, u64) -> R,
    C: Fn(StatusCode, &[u8]) -> bool,
    R: BenchRequest,
{
    async fn run(self, stream: TcpStream) {
        let mut open = R::Connection::from_stream(stream).await.ok();
        for n in 0.. {
            let Some(slot) = self.next_slot(n).await else { break };
            // Building the request and checking the answer is the client's time, not the server's.
            let request = (self.scenario.request_for)(self.connection, n);
            let now = Instant::now();
            let began = slot.latest.map_or(now, |latest| now.min(latest));
            let answer = self.exchange(&mut open, request).await;
            let ended = Instant::now();
            let outcome = answer.and_then(|(status, body)| self.check_answer(status, &body));
            let must_reconnect =
                matches!(outcome, Err(RequestError::ConnectionFailed(_) | RequestError::TimedOut));
            self.record(slot, began, ended, outcome);
            if must_reconnect {
                open = None;
                tokio::time::sleep(RECONNECT_PAUSE).await;
            }
        }
    }

    /// Waits until the `n`th request may be sent; `None` when the run is over.
    async fn next_slot(&self, n: u64) -> Option<SendSlot> {
        let now = Instant::now();
        let Pace::Open { per_second } = self.scenario.plan.pace else {
            return (now < self.phases.until).then_some(SendSlot { latest: None, queued: false });
        };
        let due = self.due(n, per_second);
        if due >= self.phases.until {
            return None;
        }
        if now >= self.phases.until {
            let waiting = (n..).take_while(|n| self.due(*n, per_second) < self.phases.until);
            self.with_tally(|tally| tally.unsent += waiting.count() as u64);
            return None;
        }
        if now >= due {
            return Some(SendSlot { latest: Some(due), queued: true });
        }
        tokio::time::sleep_until(due.into()).await;
        Some(SendSlot { latest: Some(due + TIMER_SLACK), queued: false })
    }

    /// The connections alternate, so that together they send at equal intervals.
    fn due(&self, n: u64, per_second: f64) -> Instant {
        let place = n * self.scenario.plan.connections as u64 + self.connection as u64;
        self.phases.start + Duration::from_secs_f64(place as f64 / per_second)
    }

    async fn exchange(
        &self,
        open: &mut Option<R::Connection>,
        request: R,
    ) -> Result<(StatusCode, Bytes), RequestError> {
        let (address, timeout) = (self.address, self.scenario.plan.answer_timeout);
        let exchanged = tokio::time::timeout(timeout, async {
            // A server may close a connection between two requests; that is not an error.
            if let Some(connection) = open
                && connection.is_open().await
            {
                return connection.exchange(request).await;
            }
            open.insert(R::Connection::connect(address).await?).exchange(request).await
        });
        exchanged.await.unwrap_or(Err(RequestError::TimedOut))
    }

    fn check_answer(&self, status: StatusCode, body: &[u8]) -> Result<(), RequestError> {
        if (self.scenario.check)(status, body) {
            Ok(())
        } else {
            Err(RequestError::unexpected_answer(status, body))
        }
    }

    fn record(
        &self,
        slot: SendSlot,
        began: Instant,
        ended: Instant,
        outcome: Result<(), RequestError>,
    ) {
        let Phases { measured_from, until, .. } = self.phases;
        let began_inside = began >= measured_from;
        let ended_inside = ended >= measured_from && ended <= until;
        self.with_tally(|tally| match outcome {
            Ok(()) => {
                // The rate counts requests that ended in the measured time. The latencies are those
                // of requests that began in it: leaving out the ones still waiting would hide the
                // slowest.
                tally.good += u64::from(ended_inside);
                if began_inside {
                    tally.queued += u64::from(slot.queued);
                    tally.record_latency(ended.duration_since(began));
                    if self.scenario.plan.keeps_spans {
                        tally.spans.push(began..ended);
                    }
                }
            }
            Err(error) if began_inside || ended_inside => tally.record_error(error),
            Err(_) => {}
        });
    }

    fn with_tally(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
