//! The reporter: one thread of a node that shows the others that it is alive, and removes old batches
//! from the log.
//!
//! All of it is written to the database, whose disk may be slow for seconds. So it has a session of
//! its own: looks at the log, which decide whether this node may answer, never wait for a write.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::cluster::state::{ClusterState, Role};
use crate::cluster::{Lease, NodeReport, SharedLog, known_formats};
use crate::store::StoreError;

/// How often a writer that appends nothing shows that it is alive.
const BEAT_INTERVAL: Duration = Duration::from_millis(500);
/// How often a node reports itself to the others.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// How often the writer removes old batches from the log.
const TRUNCATE_INTERVAL: Duration = Duration::from_secs(30);
/// How long all nodes must know a newer format before it is written. A node that is restarted as the
/// old version meanwhile comes back.
const FORMAT_DELAY: Duration = Duration::from_secs(10);
/// Replaces that time, in milliseconds. Only builds with debug assertions read it.
#[cfg(debug_assertions)]
const FORMAT_DELAY_VARIABLE: &str = "RIALTO_TEST_FORMAT_DELAY_MS";
/// How long the thread sleeps.
const PAUSE: Duration = Duration::from_millis(100);

/// A request to the reporter.
pub enum ReporterRequest {
    /// This node has taken this lease, and is about to write.
    Lead(Lease),
    /// This node has stopped: the others need not consider it any more.
    Leave(oneshot::Sender<()>),
}

pub struct Reporter {
    log: Box<dyn SharedLog>,
    state: Arc<ClusterState>,
    version: String,
    lease: Option<Lease>,
    beat_at: Instant,
    reported_at: Option<Instant>,
    truncated_at: Instant,
    /// The newest format that all nodes know, and since when.
    common_format: Option<(u8, Instant)>,
}

impl Reporter {
    pub fn new(log: Box<dyn SharedLog>, state: Arc<ClusterState>, version: String) -> Self {
        let now = Instant::now();
        Self {
            log,
            state,
            version,
            lease: None,
            beat_at: now,
            reported_at: None,
            truncated_at: now,
            common_format: None,
        }
    }

    /// Runs until the node leaves or its coordinator ends.
    pub fn run(mut self, requests: &Receiver<ReporterRequest>) {
        loop {
            if let Err(error) = self.report() {
                tracing::warn!(%error, "this node could not report to the others");
            }
            match requests.recv_timeout(PAUSE) {
                Ok(ReporterRequest::Lead(lease)) => {
                    (self.lease, self.beat_at) = (Some(lease), Instant::now());
                }
                Ok(ReporterRequest::Leave(done)) => {
                    self.leave();
                    let _ = done.send(());
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn report(&mut self) -> Result<(), StoreError> {
        self.beat()?;
        self.report_node()?;
        self.truncate()
    }

    fn is_writer(&self) -> bool {
        self.state.applied.borrow().role == Role::Writer
    }

    /// Shows that this writer is alive. One that cannot read the log is of no use, so it shows none.
    fn beat(&mut self) -> Result<(), StoreError> {
        let is_due =
            self.beat_at.elapsed() >= BEAT_INTERVAL && self.is_writer() && self.state.is_current();
        let Some(lease) = self.lease.as_ref().filter(|_| is_due) else { return Ok(()) };
        self.beat_at = Instant::now();
        self.log.beat(lease).map(drop)
    }

    fn report_node(&mut self) -> Result<(), StoreError> {
        if self.reported_at.is_some_and(|at| at.elapsed() < REPORT_INTERVAL) {
            return Ok(());
        }
        self.reported_at = Some(Instant::now());
        let report = NodeReport {
            node: self.state.node,
            address: self.state.address().to_owned(),
            version: self.version.clone(),
            formats: known_formats(),
            applied: self.state.applied.borrow().number,
        };
        let nodes = self.log.report(&report)?;
        let newest_of_all = nodes.iter().map(|row| row.report.formats.1).min();
        *self.state.nodes.lock() = nodes;
        newest_of_all.map_or(Ok(()), |format| self.raise_format(format))
    }

    /// Lets the writer use a format that all nodes have known for long enough.
    fn raise_format(&mut self, format: u8) -> Result<(), StoreError> {
        let known = self.common_format.filter(|(known, _)| *known == format);
        let (_, since) = *self.common_format.insert(known.unwrap_or((format, Instant::now())));
        if self.is_writer() && since.elapsed() >= format_delay() && self.log.raise_format(format)? {
            tracing::info!(
                format,
                "all nodes read a newer format of batches; it is written from now on"
            );
        }
        Ok(())
    }

    fn truncate(&mut self) -> Result<(), StoreError> {
        if !self.is_writer() || self.truncated_at.elapsed() < TRUNCATE_INTERVAL {
            return Ok(());
        }
        // A long rest is removed in several steps.
        if !self.log.truncate()? {
            self.truncated_at = Instant::now();
        }
        Ok(())
    }

    /// Removes what this node has reported, so that the others neither wait for it to read a newer
    /// format nor share limits with it.
    fn leave(&mut self) {
        if let Err(error) = self.log.remove_report(self.state.node) {
            tracing::warn!(%error, "the other nodes consider this one for some seconds");
        }
    }
}

#[cfg(debug_assertions)]
fn format_delay() -> Duration {
    let text = std::env::var(FORMAT_DELAY_VARIABLE).ok();
    text.and_then(|text| text.parse().ok()).map_or(FORMAT_DELAY, Duration::from_millis)
}

#[cfg(not(debug_assertions))]
const fn format_delay() -> Duration {
    FORMAT_DELAY
}
