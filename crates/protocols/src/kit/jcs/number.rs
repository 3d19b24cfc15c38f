//! Numbers as ECMAScript prints their double (RFC 8785 section 3.2.2.3).

/// The largest integer whose double stands for no other integer: 2^53 − 1.
pub const SAFE_MAX: i64 = 9_007_199_254_740_991;

/// Why a number has no canonical text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadNumber {
    /// Written as an integer, but its double stands for other integers as well: two texts would
    /// have one signature.
    #[error("is an integer beyond 9007199254740991")]
    UnsafeInteger,
    /// It has no finite double.
    #[error("is not a finite double")]
    NotFinite,
}

/// The canonical text of a double. A double that is not finite becomes `null`, as in ECMAScript's
/// own JSON.
pub fn format_double(value: f64) -> String {
    if value.is_finite() {
        ryu_js::Buffer::new().format_finite(value).to_owned()
    } else {
        "null".to_owned()
    }
}

/// The canonical text of a JSON number, given as written.
pub fn canonical_number(digits: &str) -> Result<String, BadNumber> {
    let mut out = String::with_capacity(digits.len());
    push_number(&mut out, digits)?;
    Ok(out)
}

pub(super) fn push_number(out: &mut String, digits: &str) -> Result<(), BadNumber> {
    if !digits.contains(['.', 'e', 'E']) {
        let safe = digits.parse::<i64>().ok().filter(|n| n.unsigned_abs() <= SAFE_MAX as u64);
        // JSON has no leading zeros, so a safe integer other than -0 is canonical as written.
        match safe {
            Some(0) => out.push('0'),
            Some(_) => out.push_str(digits),
            None => return Err(BadNumber::UnsafeInteger),
        }
        return Ok(());
    }
    match digits.parse::<f64>() {
        Ok(value) if value.is_finite() => {
            out.push_str(ryu_js::Buffer::new().format_finite(value));
            Ok(())
        }
        _ => Err(BadNumber::NotFinite),
    }
}
