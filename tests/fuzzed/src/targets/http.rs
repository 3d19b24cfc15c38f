//! Whole requests, byte by byte as they come over a socket, to a hub in this process.
//!
//! Whatever is sent, the hub answers in HTTP or hangs up, and goes on answering others. Where an
//! input says `{key}`, the key of an agent of that hub stands in what is sent.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown as Half, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use rialto_hub::app::{Hub, Options};
use rialto_hub::config::{Loaded, Posture};
use rialto_hub::shutdown::Shutdown;

const MARK: &[u8] = b"{key}";
/// How long an answer is waited for before the sending side is closed.
const MOMENT: Duration = Duration::from_millis(20);
/// No wait of the hub's own for somebody who has gone is as long.
const FOR_EVER: Duration = Duration::from_secs(60);

/// A hub with one agent in it, in memory, for as long as this process lives.
struct Door {
    address: SocketAddr,
    key: String,
}

/// Checks the door of the hub.
pub fn http(bytes: &[u8]) {
    let door = door();
    let answer = said(door.address, &signed(bytes, &door.key));
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "that is no HTTP");
    let status = answer.get(9..12).unwrap_or_default();
    assert_ne!(status, b"500", "a request broke the hub");
    let alive = alive(door.address);
    assert!(
        alive.starts_with(b"HTTP/1.1 200"),
        "nobody is served any more: {}",
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

/// What the hub says before it hangs up.
fn said(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("the hub listens");
    let (mut answer, mut first) = (Vec::new(), [0; 4096]);
    // A hub that has heard enough hangs up while we still talk.
    let _ = stream.write_all(bytes);
    // Whoever stops talking at once is taken for gone, and half a request waits for its other half:
    // so the answer is given a moment, and then there is nothing more to wait for.
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
    assert!(!waits, "the hub does not hang up; it said {}", answer.escape_ascii());
    answer
}

/// What is said to somebody who waits for the answer.
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
    // Where its secret is; gone with the hub.
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
    let loaded = Loaded::load(Posture::Dev, None, std::iter::empty(), &flags);
    let config = loaded.expect("good settings").config;
    let (_trigger, shutdown) = Shutdown::manual();
    let hub = Hub::start(&config, Options::default(), shutdown.clone()).await.expect("a hub");
    tell.send(hub.address).expect("somebody waits");
    hub.run(&shutdown).await.expect("a hub that goes on");
}

/// Announces an agent and says its key.
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
