//! W3C Trace Context: the trace of a request, from its `traceparent` header.

use http::{HeaderMap, HeaderName};

/// The header.
pub const HEADER: HeaderName = HeaderName::from_static("traceparent");

/// A caller's position in a trace. Handlers find it in the extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: u128,
    pub parent_id: u64,
    pub sampled: bool,
}

impl TraceParent {
    /// `None` if there is no header, or one that the specification says to ignore.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(HEADER).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return None;
        };
        Self::parse(value.to_str().ok()?)
    }

    /// Reads the value of the header.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version = hex(parts.next()?, 2)?;
        let trace_id = hex(parts.next()?, 32)?;
        let parent_id = u64::try_from(hex(parts.next()?, 16)?).ok()?;
        let flags = hex(parts.next()?, 2)?;
        // Later versions may append parts; version 0 has none, and 255 is invalid.
        let rest = parts.next().is_some();
        if version == 0xff || (version == 0 && rest) || trace_id == 0 || parent_id == 0 {
            return None;
        }
        Some(Self { trace_id, parent_id, sampled: flags & 1 == 1 })
    }
}

fn hex(text: &str, digits: usize) -> Option<u128> {
    let lower = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let fits = text.len() == digits && text.bytes().all(lower);
    fits.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[test]
    fn the_example_of_the_specification_is_read() {
        let parent = TraceParent::parse(&format!("00-{TRACE}-{PARENT}-01"));
        let expected = TraceParent {
            trace_id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            parent_id: 0x00f0_67aa_0ba9_02b7,
            sampled: true,
        };
        assert_eq!(parent, Some(expected));
        let later = TraceParent::parse(&format!("cc-{TRACE}-{PARENT}-01-what-will-be"));
        assert_eq!(later, Some(expected));
    }

    #[test]
    fn what_the_specification_forbids_is_ignored() {
        let zeros = "0".repeat(32);
        for text in [
            String::new(),
            format!("ff-{TRACE}-{PARENT}-01"),
            format!("00-{TRACE}-{PARENT}-01-more"),
            format!("00-{}-{PARENT}-01", TRACE.to_uppercase()),
            format!("00-{zeros}-{PARENT}-01"),
            format!("00-{TRACE}-{}-01", &zeros[..16]),
            format!("00-{TRACE}-{PARENT}"),
            format!("00-{TRACE}-{PARENT}-1"),
            format!("00-+{}-{PARENT}-01", &TRACE[1..]),
        ] {
            assert_eq!(TraceParent::parse(&text), None, "{text}");
        }
    }
}
