//! A hub in its own process, for what can only be measured from outside.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::memory;

/// Time limit for a start.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A hub that is ready; it stops when this is dropped.
pub struct HubProcess {
    pub address: SocketAddr,
    child: Child,
}

impl HubProcess {
    /// Starts the hub and waits until it accepts writes.
    pub fn start(dir: &Path, settings: &[(&str, &str)]) -> io::Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let began = Instant::now();
        let child = Command::new(hub_binary()?)
            .args(["serve", "--listen", &address.to_string()])
            .args(
                settings.iter().flat_map(|(key, value)| ["--set".into(), format!("{key}={value}")]),
            )
            .arg("--data")
            .arg(dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut hub = Self { address, child };
        while !is_ready(address) {
            if began.elapsed() > START_TIMEOUT || hub.child.try_wait()?.is_some() {
                return Err(io::Error::other("the hub did not become ready in time"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(hub)
    }

    /// Its memory, where the system reports it.
    pub fn rss_bytes(&self) -> Option<u64> {
        memory::rss_bytes(self.child.id())
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The `rialto` that was built beside this program.
fn hub_binary() -> io::Result<PathBuf> {
    let name = format!("rialto{}", std::env::consts::EXE_SUFFIX);
    let binary = std::env::current_exe()?.with_file_name(name);
    if binary.exists() {
        return Ok(binary);
    }
    Err(io::Error::other(format!("{} not found; build it first", binary.display())))
}

/// Whether the hub reports that it accepts writes.
fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(50)) else {
        return false;
    };
    let mut answer = [0; 12];
    let asked = write!(stream, "GET /readyz HTTP/1.1\r\nhost: {address}\r\n\r\n");
    asked.is_ok() && stream.read_exact(&mut answer).is_ok() && answer.ends_with(b"200")
}
