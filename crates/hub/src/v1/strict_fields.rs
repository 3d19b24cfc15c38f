//! Rejects unknown members of a body. A misspelt member would be ignored silently, and a job
//! without its deadline is a different job.

use rialto_config::suggest::nearest_key;
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::ijson::{Json, JsonValue};

/// The members of a body; an unknown one is an error.
pub fn parse_fields<'a, 'b>(
    json: &'b Json<'a>,
    known: &[&'static str],
) -> Result<Fields<'a, 'b>, Malformed> {
    let fields = Fields::read(json, "")?;
    let JsonValue::Object(members) = json.value() else { return Ok(fields) };
    match members.iter().find(|(name, _)| !known.contains(&name.as_ref())) {
        None => Ok(fields),
        Some((name, _)) => {
            let help = match nearest_key(name, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("known fields are {}", known.join(", ")),
            };
            Err(fields.malformed(name, format!("is an unknown field: {help}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rialto_protocols::kit::ijson;

    #[test]
    fn an_unknown_member_is_refused_with_the_closest_known_one() {
        let refused = |body: &str| {
            let json = ijson::read(body.as_bytes()).expect("JSON");
            parse_fields(&json, &["skill", "deadline"]).map(drop).expect_err(body)
        };
        let wrong = refused(r#"{"skill":"sum","dedline":null}"#);
        assert_eq!(wrong.field, "/dedline");
        assert_eq!(wrong.message, "dedline is an unknown field: did you mean deadline?");
        let far = refused(r#"{"price":1}"#);
        assert_eq!(far.message, "price is an unknown field: known fields are skill, deadline");
        let json = ijson::read(br#"{"deadline":1}"#).expect("JSON");
        assert!(parse_fields(&json, &["skill", "deadline"]).is_ok());
    }
}
