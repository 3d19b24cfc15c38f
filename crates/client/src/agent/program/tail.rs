//! Follows the log of a job: its program's standard error, line by line as it is written.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::LOG_MAX;

/// Receives log lines: the job's id and the line.
pub type LogSink = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// How often a log is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes per read, and the maximum line length.
const CHUNK_BYTES: usize = 8 << 10;
/// Maximum number of reads at a time.
const CHUNKS_MAX: usize = 64;

/// A log that is being followed.
pub(super) struct LogTail {
    path: PathBuf,
    at: u64,
    rest: Vec<u8>,
    job: String,
    log: LogSink,
}

impl LogTail {
    /// Follows a file from its start; it need not exist yet.
    pub(super) fn new(path: PathBuf, job: &str, log: LogSink) -> Self {
        Self { path, at: 0, rest: Vec::new(), job: job.to_owned(), log }
    }

    /// Follows the file; never returns.
    pub(super) async fn follow(&mut self) {
        loop {
            self.catch_up();
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Emits what was written so far.
    pub(super) fn catch_up(&mut self) {
        let Ok(mut file) = File::open(&self.path) else { return };
        if file.seek(SeekFrom::Start(self.at)).is_err() {
            return;
        }
        let mut piece = vec![0; CHUNK_BYTES];
        // A log that grows as fast as it is read must not block other tasks.
        for _ in 0..CHUNKS_MAX {
            let Ok(count @ 1..) = file.read(&mut piece) else { return };
            self.at += count as u64;
            self.rest.extend_from_slice(&piece[..count]);
            self.emit_lines();
        }
    }

    /// Emits the rest, including a last line without a line break.
    pub(super) fn finish(mut self) {
        let mut before = None;
        // Remaining child processes may keep writing; reading stops at the maximum log size.
        while before != Some(self.at) && self.at < LOG_MAX {
            before = Some(self.at);
            self.catch_up();
        }
        let rest = std::mem::take(&mut self.rest);
        self.emit(&rest);
    }

    fn emit_lines(&mut self) {
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.emit(&line[..end]);
        }
        if self.rest.len() > CHUNK_BYTES {
            let line = std::mem::take(&mut self.rest);
            self.emit(&line);
        }
    }

    fn emit(&self, line: &[u8]) {
        if !line.is_empty() {
            (self.log)(&self.job, String::from_utf8_lossy(line).trim_end_matches('\r'));
        }
    }
}
