//! A name server with configurable answers that expire at once.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;
/// Flags of an authoritative answer without an error.
const ANSWERED: u16 = 0x8580;

/// The records of a name.
#[derive(Clone, Debug, Default)]
pub struct Meaning {
    /// Its addresses, one list per query, the last one for ever. A name with IPv6 addresses must
    /// not change, since a resolver asks for both kinds at once.
    pub turns: Vec<Vec<IpAddr>>,
    /// Set if it is only an alias of that name.
    pub canonical: Option<String>,
}

struct Zone {
    /// The records of every unknown name.
    otherwise: Meaning,
    names: HashMap<String, Meaning>,
    asked: HashMap<String, usize>,
    questions: usize,
}

/// The server.
pub struct Dns(Arc<Mutex<Zone>>);

impl Dns {
    /// Starts to answer at the port that resolvers use.
    pub async fn start(otherwise: Meaning) -> Self {
        let (names, asked) = (HashMap::new(), HashMap::new());
        let zone = Zone { otherwise, names, asked, questions: 0 };
        let zone = Arc::new(Mutex::new(zone));
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 53)).await.expect("port 53 of our own");
        let shared = Arc::clone(&zone);
        tokio::spawn(async move {
            let mut packet = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut packet).await {
                let reply = shared.lock().expect("no panic").reply(&packet[..length]);
                if let Some(reply) = reply {
                    let _ = socket.send_to(&reply, from).await;
                }
            }
        });
        Self(zone)
    }

    pub fn teach(&self, name: &str, meaning: Meaning) {
        self.0.lock().expect("no panic").names.insert(name.to_owned(), meaning);
    }

    /// The number of queries so far.
    pub fn questions(&self) -> usize {
        self.0.lock().expect("no panic").questions
    }
}

impl Zone {
    fn reply(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let (name, end) = name_in(packet.get(12..)?)?;
        let end = 12 + end;
        let kind = u16::from_be_bytes(packet.get(end..end + 2)?.try_into().ok()?);
        let question = packet.get(12..end + 4)?;
        let records = self.records(&name, kind);
        let mut reply = packet.get(..2)?.to_vec();
        let count = u16::try_from(records.len()).ok()?;
        for word in [ANSWERED, 1, count, 0, 0] {
            reply.extend(word.to_be_bytes());
        }
        reply.extend(question);
        reply.extend(records.concat());
        Some(reply)
    }

    /// The records of an answer.
    fn records(&mut self, name: &str, kind: u16) -> Vec<Vec<u8>> {
        self.questions += 1;
        let meaning = self.names.get(name).unwrap_or(&self.otherwise);
        let turn = match kind {
            TYPE_A => {
                let asked = self.asked.entry(name.to_owned()).or_default();
                *asked += 1;
                *asked - 1
            }
            _ => 0,
        };
        let found = meaning.turns.get(turn).or(meaning.turns.last());
        let mut records = Vec::new();
        let mut owner = name.to_owned();
        if let Some(canonical) = &meaning.canonical {
            records.push(record(name, TYPE_CNAME, &encoded(canonical)));
            owner.clone_from(canonical);
        }
        for address in found.into_iter().flatten() {
            match address {
                IpAddr::V4(ip) if kind == TYPE_A => {
                    records.push(record(&owner, TYPE_A, &ip.octets()));
                }
                IpAddr::V6(ip) if kind == TYPE_AAAA => {
                    records.push(record(&owner, TYPE_AAAA, &ip.octets()));
                }
                _ => {}
            }
        }
        records
    }
}

/// A record with a lifetime of zero.
fn record(name: &str, kind: u16, data: &[u8]) -> Vec<u8> {
    let mut record = encoded(name);
    record.extend(kind.to_be_bytes());
    record.extend(1_u16.to_be_bytes());
    record.extend(0_u32.to_be_bytes());
    record.extend(u16::try_from(data.len()).expect("short data").to_be_bytes());
    record.extend(data);
    record
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).expect("a short label"));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

/// The name at the start of these bytes, in lower case, and where it ends.
fn name_in(bytes: &[u8]) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        let label = std::str::from_utf8(bytes.get(at..at + length)?).ok()?;
        labels.push(label.to_ascii_lowercase());
        at += length;
    }
}
