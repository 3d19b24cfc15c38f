//! Shared parsers and writers for all protocols.
//!
//! Nothing here knows a protocol. Bytes become [`ijson::Json`], members become values or a
//! [`fields::Malformed`] that names the field, and amounts, scores and times become exact text. The
//! protocol folders define what the values mean and which status a `Malformed` gets.

pub mod ans104;
pub mod api_doc;
pub mod base64url;
pub mod budget;
pub mod canonical;
pub mod confusables;
pub mod ed25519;
pub mod fields;
pub mod ijson;
pub mod jcs;
pub mod jws;
pub mod last_event_id;
pub mod media_type;
pub mod name;
pub mod object;
pub mod query;
pub mod raw_json;
pub mod rfc3339;
pub mod schema;
pub mod sse;
