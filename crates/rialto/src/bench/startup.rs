//! Starting and idling, of the real process on a small store.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::memory::rss_bytes;
use super::report::Goal;
use super::rounds::median;

/// Ready within this many milliseconds.
const READY_MS: f64 = 150.0;
/// Idle memory of at most this many megabytes.
const IDLE_MB: f64 = 60.0;

/// Starts the hub several times on the same small store.
pub fn measure(rounds: usize) -> io::Result<Vec<Goal>> {
    let dir = tempfile::Builder::new().prefix("rialto-bench-").tempdir()?;
    // The first start makes the store; it is not what is measured.
    one(dir.path())?;
    let mut times = Vec::new();
    let mut sizes = Vec::new();
    for _ in 0..rounds.max(3) {
        let (time, size) = one(dir.path())?;
        times.push(time);
        sizes.push(size);
    }
    Ok(vec![
        Goal::at_most("start on a small store until ready", median(times), READY_MS, "ms"),
        Goal::at_most("memory of an idle hub", median(sizes), IDLE_MB, "MB"),
    ])
}

fn one(dir: &std::path::Path) -> io::Result<(f64, f64)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let began = Instant::now();
    let child = Command::new(std::env::current_exe()?)
        .args(["serve", "--listen", &address.to_string(), "--data"])
        .arg(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut child = Ended(child);
    while !ready(address) {
        if began.elapsed() > Duration::from_secs(20) || child.0.try_wait()?.is_some() {
            return Err(io::Error::other("the hub did not become ready"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let time = began.elapsed().as_secs_f64() * 1_000.0;
    std::thread::sleep(Duration::from_millis(500));
    let size = rss_bytes(child.0.id()).map_or(f64::NAN, |bytes| bytes as f64 / 1e6);
    Ok((time, size))
}

/// Whether the hub takes writes, by its own word.
fn ready(address: SocketAddr) -> bool {
    use std::io::{Read, Write};
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(50)) else {
        return false;
    };
    let mut answer = [0; 12];
    let asked = write!(stream, "GET /readyz HTTP/1.1\r\nhost: {address}\r\n\r\n");
    asked.is_ok() && stream.read_exact(&mut answer).is_ok() && answer.ends_with(b"200")
}

/// A child that does not outlive its measurement.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
