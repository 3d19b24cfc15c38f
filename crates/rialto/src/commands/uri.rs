//! Builds URL paths and queries with escaped names.

use std::fmt::Write as _;

/// Escapes a name as one path segment or query value.
pub fn encode_part(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => out.push(char::from(byte)),
            false => write!(out, "%{byte:02X}").expect("memory can be written to"),
        }
    }
    out
}

/// A path with the query values that are present.
pub fn with_query<'a>(
    path: &str,
    values: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> String {
    let given = values.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let pairs: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", encode_part(&value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_kind_stay_one_part() {
        assert_eq!(encode_part("did:key:z/é?&="), "did%3Akey%3Az%2F%C3%A9%3F%26%3D");
        let all = [("q", Some("a b".to_owned())), ("skill", None), ("limit", Some("5".to_owned()))];
        assert_eq!(with_query("/v1/agents", all), "/v1/agents?q=a%20b&limit=5");
        assert_eq!(with_query("/v1/agents", [("q", None)]), "/v1/agents");
    }
}
