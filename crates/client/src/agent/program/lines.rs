//! Reads a program's output line by line, with a length limit.

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// Lines of at most this many bytes; the rest of a longer line becomes a line of its own.
pub(super) struct BoundedLines<R> {
    from: BufReader<R>,
    /// The start of a line that is not complete yet.
    partial: Vec<u8>,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    pub(super) fn new(from: R, bytes_max: usize) -> Self {
        Self { from: BufReader::new(from), partial: Vec::new(), bytes_max }
    }

    /// The next line with its line break, which the last line may lack. Cancel-safe: no data is
    /// lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        let room = self.bytes_max.saturating_sub(self.partial.len()) as u64;
        // A read error counts as the end.
        let _ = (&mut self.from).take(room).read_until(b'\n', &mut self.partial).await;
        Some(std::mem::take(&mut self.partial)).filter(|line| !line.is_empty())
    }

    /// Whether a line was cut off at the limit.
    pub(super) fn is_truncated(&self, line: &[u8]) -> bool {
        line.len() >= self.bytes_max && !line.ends_with(b"\n")
    }
}
