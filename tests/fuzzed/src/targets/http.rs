//! Whole requests, sent as raw bytes over a socket to a hub in this process.
//!
//! Whatever is sent, the hub answers in HTTP or closes the connection, and keeps serving others.
//! `{key}` in an input is replaced with the key of an agent of that hub.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown as Half, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use rialto_hub::app::{Hub, Options};
use rialto_hub::config::{LoadedConfig, Profile};
use rialto_hub::shutdown::Shutdown;

const MARK: &[u8] = b"{key}";
/// How long to wait for an answer before the sending side is closed.
const MOMENT: Duration = Duration::from_millis(20);
/// Longer than any timeout of the hub for a client that is gone.
const FOR_EVER: Duration = Duration::from_secs(60);

/// A hub in memory with one agent, for the lifetime of this process.
struct Door {
    address: SocketAddr,
    key: String,
}

/// Checks the HTTP server of the hub.
pub fn http(bytes: &[u8]) {
    let door = door();
    let answer = said(door.address, &signed(bytes, &door.key));
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "the answer is not HTTP");
    let status = answer.get(9..12).unwrap_or_default();
    assert_ne!(status, b"500", "a request caused an internal error");
    let alive = alive(door.address);
    assert!(
        alive.starts_with(b"HTTP/1.1 200"),
        "the hub does not answer any more: {}",
        alive.escape_ascii()
    );
}

fn signed(bytes: &[u8], key: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(key.as_bytes());
        rest = &rest[at + MARK.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// What the hub sends before it closes the connection.
fn said(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("the hub listens");
    let (mut answer, mut first) = (Vec::new(), [0; 4096]);
    // The hub may close the connection while the request is still being sent.
    let _ = stream.write_all(bytes);
    // A client that closes its sending side at once counts as gone, and an incomplete request waits
    // for its rest. So wait a moment for the answer, then close the sending side.
    let _ = stream.set_read_timeout(Some(MOMENT));
    match stream.read(&mut first) {
        Ok(count) => answer.extend_from_slice(&first[..count]),
        Err(_) => drop(stream.shutdown(Half::Write)),
    }
    let _ = stream.set_read_timeout(Some(FOR_EVER));
    if !answer.is_empty() {
        let _ = stream.shutdown(Half::Write);
    }
    let ended = stream.read_to_end(&mut answer);
    let waits = ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(!waits, "the hub does not close the connection; it sent {}", answer.escape_ascii());
    answer
}

/// The answer to a health check.
fn alive(address: SocketAddr) -> Vec<u8> {
    const REQUEST: &[u8] = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut stream = TcpStream::connect(address).expect("the hub listens");
    let mut answer = Vec::new();
    stream.set_read_timeout(Some(FOR_EVER)).expect("a limit");
    stream.write_all(REQUEST).expect("a hub that listens");
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn door() -> &'static Door {
    static DOOR: OnceLock<Door> = OnceLock::new();
    DOOR.get_or_init(|| {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(open(sender));
        });
        let address = receiver.recv().expect("a hub started");
        Door { address, key: enrolled(address) }
    })
}

async fn open(tell: std::sync::mpsc::Sender<SocketAddr>) {
    // Where its secret is; removed with the hub.
    let data = tempfile::tempdir().expect("a directory");
    let flags = [
        ("data.dir", data.path().to_string_lossy().into_owned()),
        ("http.listen", "127.0.0.1:0".to_owned()),
        ("store.backend", "memory".to_owned()),
        ("limits.registrations_per_minute", "0".to_owned()),
        ("limits.writes_per_minute", "0".to_owned()),
        ("limits.read_bytes_per_minute", "0".to_owned()),
        ("limits.wrong_keys_per_minute", "0".to_owned()),
    ];
    let loaded = LoadedConfig::load(Profile::Dev, None, std::iter::empty(), &flags);
    let config = loaded.expect("valid settings").config;
    let (_trigger, shutdown) = Shutdown::manual();
    let hub = Hub::start(&config, Options::default(), shutdown.clone()).await.expect("a hub");
    tell.send(hub.address).expect("the receiver waits");
    hub.run(&shutdown).await.expect("the hub keeps running");
}

/// Registers an agent and returns its key.
fn enrolled(address: SocketAddr) -> String {
    let body = r#"{"agent_id":"fuzzed","agent_card":{"card_version":"0.3","user_culture":"en","supported_languages":["en"]}}"#;
    let request = format!(
        "POST /relay/register HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = said(address, request.as_bytes());
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let key = answer.split('"').find(|word| word.starts_with("ca_"));
    key.unwrap_or_else(|| panic!("no key: {answer}")).to_owned()
}
