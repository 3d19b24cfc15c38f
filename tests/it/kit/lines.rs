//! The output of a process, line by line.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A process that still prints is never silent for this long.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// The lines of a pipe. They are read even when they are no longer used, or the process would block
/// on a full pipe.
pub struct Lines(Receiver<String>);

impl Lines {
    pub fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let pipe = BufReader::new(pipe.expect("a pipe"));
        let (tell, told) = channel();
        std::thread::spawn(move || {
            for line in pipe.split(b'\n').map_while(Result::ok) {
                let _ = tell.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        Self(told)
    }

    /// Reads up to the hub's own address, and returns it with the lines before; `None` if they
    /// ended.
    pub fn address(&mut self) -> (Vec<String>, Option<String>) {
        let mut greeting = Vec::new();
        for line in self {
            let url = line.split_whitespace().find(|word| word.starts_with("http://"));
            let url = url.map(str::to_owned);
            greeting.push(line);
            if url.is_some() {
                return (greeting, url);
            }
        }
        (greeting, None)
    }
}

impl Iterator for Lines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        match self.0.recv_timeout(SILENCE_MAX) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing was printed for {SILENCE_MAX:?}"),
        }
    }
}
