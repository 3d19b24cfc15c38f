//! What a program writes, line by line.

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// Lines of at most so many bytes; what goes on is a line of its own.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R, bytes_max: usize) -> Self {
        Self { from: BufReader::new(from), begun: Vec::new(), bytes_max }
    }

    /// The next line with its end, which the last one may lack. Nothing is lost when this is dropped
    /// while it waits.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        let room = self.bytes_max.saturating_sub(self.begun.len()) as u64;
        // What cannot be read any more has ended.
        let _ = (&mut self.from).take(room).read_until(b'\n', &mut self.begun).await;
        Some(std::mem::take(&mut self.begun)).filter(|line| !line.is_empty())
    }

    /// Whether a line has no end within its limit.
    pub(super) fn is_cut(&self, line: &[u8]) -> bool {
        line.len() >= self.bytes_max && !line.ends_with(b"\n")
    }
}
