//! Media types in headers. Upper and lower case mean the same.

/// Whether a `Content-Type` is one of JSON.
pub fn is_json(content_type: &str) -> bool {
    content_type.to_ascii_lowercase().contains("json")
}

/// Whether an `Accept` names a media type, and not only to say that it is not wanted.
pub fn names(accept: &str, media_type: &str) -> bool {
    accept.split(',').any(|range| {
        let mut pieces = range.split(';').map(str::trim);
        let is_named = pieces.next().is_some_and(|name| name.eq_ignore_ascii_case(media_type));
        is_named && !pieces.any(is_unwanted)
    })
}

/// Whether a parameter is the weight zero.
fn is_unwanted(parameter: &str) -> bool {
    let weight = parameter.split_once('=').filter(|(name, _)| name.eq_ignore_ascii_case("q"));
    weight.and_then(|(_, value)| value.parse().ok()).is_some_and(|weight: f32| weight == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_of_json_is_one_in_any_case_and_with_parameters() {
        for kind in ["application/json", "APPLICATION/JSON; charset=utf-8", "Application/X+Json"] {
            assert!(is_json(kind), "{kind}");
        }
        assert!(!is_json("text/plain"));
    }

    #[test]
    fn an_accepted_type_is_named_unless_its_weight_is_zero() {
        let wanted = "application/x+json";
        for accept in [
            "application/x+json",
            "text/plain, APPLICATION/X+JSON;q=0.001",
            "application/x+json ; v=1",
            "application/x+json;q=much",
            "application/x+json;q=0, application/x+json",
        ] {
            assert!(names(accept, wanted), "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "application/json",
            "application/x+json5",
            "application/x+json;q=0",
            "application/x+json; v=1; Q=0.000, */*",
        ] {
            assert!(!names(accept, wanted), "{accept}");
        }
    }
}
