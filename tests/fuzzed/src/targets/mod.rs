//! The fuzz targets, one file per parser.

mod a2a;
mod agora;
mod ans104;
mod base64url;
mod clara;
mod convert;
mod did_key;
mod egress_url;
mod encoding;
mod headers;
mod http;
mod ijson;
mod jcs;
mod key;
mod log_record;
mod money;
mod openclaw;
mod program;
mod query;
mod registry;
mod relay;
mod resume;
mod schema;
mod settings;
mod sse;
mod stamp;
mod stored_row;
mod webhook;

use crate::target::{Cost, Target};

pub use a2a::{a2a_card, a2a_parts, a2a_rpc};
pub use agora::agora;
pub use ans104::ans104;
pub use base64url::base64url;
pub use clara::{clara_item, clara_order, clara_record};
pub use convert::convert;
pub use did_key::did_key;
pub use egress_url::egress_url;
pub use encoding::encoding;
pub use headers::headers;
pub use http::http;
pub use ijson::ijson;
pub use jcs::jcs;
pub use key::key;
pub use log_record::log_record;
pub use money::money;
pub use openclaw::openclaw;
pub use program::program;
pub use query::query;
pub use registry::registry;
pub use relay::{relay, relay_address};
pub use resume::resume;
pub use schema::schema;
pub use settings::settings;
pub use sse::sse;
pub use stamp::stamp;
pub use stored_row::stored_row;
pub use webhook::webhook;

/// Every target.
pub const ALL: &[Target] = &[
    Target { name: "a2a_card", check: a2a_card, words: words::A2A, cost: Cost::PLAIN.share(50) },
    Target { name: "a2a_parts", check: a2a_parts, words: words::A2A, cost: Cost::PLAIN.share(50) },
    Target {
        name: "a2a_rpc",
        check: a2a_rpc,
        words: words::A2A,
        // Parameters are read as those of every method in both versions.
        cost: Cost::PLAIN.times(4).share(50),
    },
    Target { name: "agora", check: agora, words: words::AGORA, cost: Cost::PLAIN.share(25) },
    Target {
        name: "ans104",
        check: ans104,
        words: words::ANS104,
        cost: Cost::PLAIN.times(4).share(25),
    },
    Target { name: "base64url", check: base64url, words: words::BASE64, cost: Cost::PLAIN },
    Target { name: "clara_item", check: clara_item, words: words::CLARA, cost: Cost::PLAIN },
    Target { name: "clara_order", check: clara_order, words: words::CLARA, cost: Cost::PLAIN },
    Target { name: "clara_record", check: clara_record, words: words::CLARA, cost: Cost::PLAIN },
    Target {
        name: "convert",
        check: convert,
        words: words::WIRES,
        cost: Cost::PLAIN.times(4).share(25),
    },
    Target { name: "did_key", check: did_key, words: words::KEYS, cost: Cost::PLAIN },
    Target { name: "egress_url", check: egress_url, words: words::URLS, cost: Cost::PLAIN },
    Target {
        name: "encoding",
        check: encoding,
        words: words::ROWS,
        // A row reserves up to a megabyte for a list before its first element is read. What is
        // decoded comes from the hub's own log and from nodes that have its secret.
        cost: Cost::PLAIN.times(64).share(50),
    },
    Target { name: "headers", check: headers, words: words::HEADERS, cost: Cost::PLAIN },
    Target {
        name: "http",
        check: http,
        words: words::HTTP,
        cost: Cost::PLAIN.times(4).share(5).elsewhere(),
    },
    Target { name: "ijson", check: ijson, words: words::JSON, cost: Cost::PLAIN },
    Target { name: "jcs", check: jcs, words: words::JSON, cost: Cost::PLAIN.share(50) },
    Target { name: "key", check: key, words: words::KEYS, cost: Cost::PLAIN },
    Target {
        name: "log_record",
        check: log_record,
        words: words::LOG,
        cost: Cost::PLAIN.times(4).share(25),
    },
    Target { name: "money", check: money, words: words::NUMBERS, cost: Cost::PLAIN },
    Target {
        name: "openclaw",
        check: openclaw,
        words: words::OPENCLAW,
        cost: Cost::PLAIN.times(4).share(25),
    },
    Target { name: "program", check: program, words: words::PROGRAM, cost: Cost::PLAIN },
    Target { name: "query", check: query, words: words::QUERY, cost: Cost::PLAIN },
    Target {
        name: "registry",
        check: registry,
        words: words::REGISTRY,
        cost: Cost::PLAIN.share(50),
    },
    Target { name: "relay", check: relay, words: words::RELAY, cost: Cost::PLAIN.share(50) },
    Target {
        name: "relay_address",
        check: relay_address,
        words: words::ADDRESS,
        cost: Cost::PLAIN,
    },
    Target { name: "resume", check: resume, words: words::RESUME, cost: Cost::PLAIN },
    Target { name: "schema", check: schema, words: words::SCHEMA, cost: Cost::SCHEMA },
    Target {
        name: "settings",
        check: settings,
        words: words::SETTINGS,
        cost: Cost::PLAIN.times(4).share(10),
    },
    Target { name: "sse", check: sse, words: words::SSE, cost: Cost::PLAIN.share(25) },
    Target { name: "stamp", check: stamp, words: words::STAMP, cost: Cost::PLAIN },
    Target {
        name: "stored_row",
        check: stored_row,
        words: words::ROWS,
        cost: Cost::PLAIN.share(50),
    },
    Target { name: "webhook", check: webhook, words: words::WEBHOOK, cost: Cost::PLAIN },
];

mod words;

/// The bytes as text, if they are valid UTF-8.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The parts before and after the first line that is only `=`.
fn halves(bytes: &[u8]) -> (&[u8], &[u8]) {
    const MARK: &[u8] = b"\n=\n";
    let at = bytes.windows(MARK.len()).position(|window| window == MARK);
    at.map_or((bytes, &[]), |at| (&bytes[..at], &bytes[at + MARK.len()..]))
}
