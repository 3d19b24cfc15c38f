//! Lines of standard input and output, in threads of their own: reading one cannot be interrupted, so
//! nothing waits for it when the process ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

use tokio::sync::mpsc::error::{SendTimeoutError, TrySendError};
use tokio::sync::{mpsc, oneshot};

/// The longest line that is read.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// How many lines may wait, in each direction.
const QUEUED_MAX: usize = 64;
/// How long the process waits for a client that does not read what is left.
const FLUSH_TIME_MAX: Duration = Duration::from_millis(300);

/// One line of the client.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Bytes(Vec<u8>),
    TooLong,
}

/// Reads lines until the input ends. Empty lines are left out.
pub fn read_lines(input: impl Read + Send + 'static) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(QUEUED_MAX);
    std::thread::spawn(move || {
        let mut input = BufReader::new(input);
        while let Some(line) = next_line(&mut input) {
            if line != Line::Bytes(Vec::new()) && sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// The next line without its end; `None` at the end of the input, also where reading fails.
fn next_line(input: &mut impl BufRead) -> Option<Line> {
    let (mut line, mut is_too_long, mut is_begun) = (Vec::new(), false, false);
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return None,
        };
        if bytes.is_empty() {
            break;
        }
        is_begun = true;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        is_too_long |= line.len() + piece.len() > LINE_BYTES_MAX;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(piece);
        }
        let read = piece.len() + usize::from(end.is_some());
        input.consume(read);
        if end.is_some() {
            break;
        }
    }
    match (is_begun, is_too_long) {
        (false, _) => None,
        (true, true) => Some(Line::TooLong),
        (true, false) => {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            Some(Line::Bytes(line))
        }
    }
}

/// Where messages to the client are sent.
#[derive(Clone, Debug)]
pub struct Output(mpsc::Sender<String>);

impl Output {
    /// Sends a message once the client has read enough of those before. Messages to a client that has
    /// closed its end are dropped.
    pub async fn send(&self, message: String) {
        let _ = self.0.send(message).await;
    }

    /// Sends a message, unless the client has not read enough of those before after this time: then it
    /// is dropped. Returns whether it was sent.
    pub async fn send_within(&self, message: String, time: Duration) -> bool {
        !matches!(self.0.send_timeout(message, time).await, Err(SendTimeoutError::Timeout(_)))
    }

    /// Sends a message unless the client reads too slowly for it. Returns whether it was sent.
    pub fn try_send(&self, message: String) -> bool {
        !matches!(self.0.try_send(message), Err(TrySendError::Full(_)))
    }

    /// Waits until the client closes its end.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Tells when everything is written.
#[derive(Debug)]
pub struct Written(oneshot::Receiver<()>);

impl Written {
    /// Waits until everything is written, for a short time at most. All outputs must be dropped.
    pub async fn wait(self) {
        let _ = tokio::time::timeout(FLUSH_TIME_MAX, self.0).await;
    }
}

/// Writes messages until the last output is dropped or the client closes its end.
pub fn write_lines(mut to: impl Write + Send + 'static) -> (Output, Written) {
    let (sender, mut receiver) = mpsc::channel::<String>(QUEUED_MAX);
    let (finished, written) = oneshot::channel();
    std::thread::spawn(move || {
        while let Some(message) = receiver.blocking_recv() {
            let mut line = message.into_bytes();
            line.push(b'\n');
            if to.write_all(&line).and_then(|()| to.flush()).is_err() {
                break;
            }
        }
        let _ = finished.send(());
    });
    (Output(sender), Written(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Line> {
        let mut input = BufReader::with_capacity(16, text);
        std::iter::from_fn(|| next_line(&mut input)).collect()
    }

    #[test]
    fn lines_end_with_line_feeds_or_the_input() {
        let line = |text: &str| Line::Bytes(text.as_bytes().to_vec());
        assert_eq!(lines(b""), []);
        assert_eq!(lines(b"\n\r\n"), [line(""), line("")]);
        let long = "x".repeat(40);
        assert_eq!(
            lines(format!("a\r\n{long}\nb").as_bytes()),
            [line("a"), line(&long), line("b")]
        );
    }

    #[test]
    fn a_line_of_4_mib_is_read_and_a_longer_one_skipped() {
        let mut text = vec![b'a'; LINE_BYTES_MAX];
        text.push(b'\n');
        text.extend(vec![b'b'; LINE_BYTES_MAX + 1]);
        text.extend(b"\nnext\n");
        let found = lines(&text);
        assert_eq!(found.len(), 3);
        assert!(matches!(&found[0], Line::Bytes(bytes) if bytes.len() == LINE_BYTES_MAX));
        assert_eq!(found[1..], [Line::TooLong, Line::Bytes(b"next".to_vec())]);
    }
}
