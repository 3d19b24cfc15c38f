//! A hub in a process of its own, for what can only be told from outside.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::memory;

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A hub that is ready; it ends when this is dropped.
pub struct HubProcess {
    pub address: SocketAddr,
    child: Child,
}

impl HubProcess {
    /// Starts this very program as a hub and waits until it takes writes.
    pub fn start(dir: &Path, settings: &[(&str, &str)]) -> io::Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let began = Instant::now();
        let child = Command::new(std::env::current_exe()?)
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
        while !ready(address) {
            if began.elapsed() > PATIENCE || hub.child.try_wait()?.is_some() {
                return Err(io::Error::other("the hub did not become ready"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(hub)
    }

    /// Its memory, where the system tells.
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

/// Whether the hub accepts writes, by its own word.
fn ready(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(50)) else {
        return false;
    };
    let mut answer = [0; 12];
    let asked = write!(stream, "GET /readyz HTTP/1.1\r\nhost: {address}\r\n\r\n");
    asked.is_ok() && stream.read_exact(&mut answer).is_ok() && answer.ends_with(b"200")
}
