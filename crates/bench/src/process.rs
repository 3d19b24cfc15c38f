//! Servers that are measured, each in a process of its own: hubs, the echo and the peers.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Time limit for a clean stop; then the process is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// A running server; it is killed when this is dropped.
pub struct ServerProcess {
    child: Child,
    /// Lines of its output; shared so that a server can be used from several threads.
    lines: Mutex<Receiver<String>>,
}

impl ServerProcess {
    /// Starts a server. Its standard input stays open until it ends, and its standard output is read.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| io::Error::other(format!("cannot start {command:?}: {error}")))?;
        let (sender, lines) = mpsc::channel();
        let output = child.stdout.take();
        // Reads to the end even if the lines are not used: a full pipe would stop the server.
        thread::spawn(move || {
            let lines = output.map(BufReader::new).into_iter().flat_map(BufRead::lines);
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Ok(Self { child, lines: Mutex::new(lines) })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of its output; `None` if it does not come in time or the process has ended.
    pub fn next_line(&self, timeout: Duration) -> Option<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.recv_timeout(timeout).ok()
    }

    /// Waits until `is_ready`, and fails if the process ends or the time is over.
    pub fn wait_until(
        &mut self,
        timeout: Duration,
        mut is_ready: impl FnMut() -> bool,
    ) -> io::Result<()> {
        let began = Instant::now();
        while !is_ready() {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("the server ended at its start: {status}")));
            }
            if began.elapsed() > timeout {
                return Err(io::Error::other("the server did not become ready in time"));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Sends it a signal, for example `TERM`.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        let status =
            Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status()?;
        if !status.success() {
            return Err(io::Error::other(format!("the server got no signal {name}")));
        }
        Ok(())
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Stops it cleanly, as an operator would.
    pub fn stop(self) -> io::Result<()> {
        self.signal("TERM")?;
        self.wait_for_end()
    }

    /// Waits until it has ended.
    pub fn wait_for_end(mut self) -> io::Result<()> {
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            if began.elapsed() > STOP_TIMEOUT {
                return Err(io::Error::other("the server did not stop in time"));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory for a server's data, removed when this is dropped.
pub fn temporary_dir() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("rialto-bench-").tempdir()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_server_is_read_and_ends_with_its_handle() {
        let mut server = ServerProcess::spawn(&mut Command::new("cat")).unwrap();
        server.wait_until(LONG, || true).unwrap();
        server.stop().unwrap();
        let echo = ServerProcess::spawn(Command::new("echo").arg("ready")).unwrap();
        assert_eq!(echo.next_line(LONG).as_deref(), Some("ready"));
        assert_eq!(echo.next_line(LONG), None);
    }

    #[test]
    fn a_server_that_ends_or_does_not_exist_is_an_error() {
        let mut ended = ServerProcess::spawn(&mut Command::new("false")).unwrap();
        assert!(ended.wait_until(LONG, || false).unwrap_err().to_string().contains("ended"));
        let missing = ServerProcess::spawn(&mut Command::new("no-such-server"));
        assert!(missing.err().unwrap().to_string().contains("no-such-server"));
    }
}
