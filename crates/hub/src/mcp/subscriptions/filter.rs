//! What a client asks to be told, and what of it is honoured.

use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::kit::object::ObjectWriter;

use crate::mcp::wire::error::RpcError;
use crate::mcp::wire::result::{json_array, json_string};

/// The most URIs of one stream, and the most tasks.
pub const SUBJECTS_MAX: usize = 100;

/// The notifications that a client opts in to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub tools: bool,
    /// Without repetitions.
    pub uris: Vec<String>,
    pub task_ids: Vec<String>,
}

impl Filter {
    /// Reads the parameters of a request: JSON text of an object. Kinds of notifications that are not
    /// known are not honoured.
    pub fn read(params: &str) -> Result<Self, RpcError> {
        let invalid = |text: &str| RpcError::invalid_params(format!("Invalid params: {text}"));
        let params = ijson::read(params.as_bytes()).map_err(|bad| invalid(&bad.to_string()))?;
        let wanted = params.get("notifications");
        let wanted = wanted.filter(|json| matches!(json.value(), JsonValue::Object(_)));
        let wanted = wanted.ok_or_else(|| invalid("notifications must be an object"))?;
        let tools = match wanted.get("toolsListChanged").map(Json::value) {
            None => false,
            Some(JsonValue::Bool(wanted)) => *wanted,
            Some(_) => return Err(invalid("toolsListChanged must be true or false")),
        };
        let list = |name: &str| {
            read_list(wanted.get(name)).map_err(|why| invalid(&format!("{name} {why}")))
        };
        Ok(Self { tools, uris: list("resourceSubscriptions")?, task_ids: list("taskIds")? })
    }

    /// JSON text of it, for the acknowledgement.
    pub fn write(&self) -> String {
        let list = |texts: &[String]| {
            (!texts.is_empty()).then(|| json_array(texts.iter().map(|text| json_string(text))))
        };
        ObjectWriter::new()
            .maybe_raw("toolsListChanged", self.tools.then_some("true"))
            .maybe_raw("resourceSubscriptions", list(&self.uris).as_deref())
            .maybe_raw("taskIds", list(&self.task_ids).as_deref())
            .finish()
    }
}

fn read_list(json: Option<&Json<'_>>) -> Result<Vec<String>, String> {
    let items = match json.map(Json::value) {
        None => return Ok(Vec::new()),
        Some(JsonValue::Array(items)) => items,
        Some(_) => return Err("must be a list of strings".to_owned()),
    };
    let mut texts = Vec::new();
    for item in items {
        let JsonValue::String(text) = item.value() else {
            return Err("must be a list of strings".to_owned());
        };
        if !texts.iter().any(|known| *known == **text) {
            texts.push(text.to_string());
        }
        if texts.len() > SUBJECTS_MAX {
            return Err(format!("has more than {SUBJECTS_MAX} items"));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read_without_repetitions_and_written_back() {
        let asked = r#"{"notifications":{"toolsListChanged":true,"promptsListChanged":true,
            "resourceSubscriptions":["rialto://inbox","rialto://inbox"],"taskIds":[]}}"#;
        let filter = Filter::read(asked).expect("a filter");
        assert_eq!(
            filter.write(),
            r#"{"toolsListChanged":true,"resourceSubscriptions":["rialto://inbox"]}"#
        );
        assert_eq!(Filter::read(r#"{"notifications":{}}"#).expect("a filter").write(), "{}");
    }

    #[test]
    fn a_bad_filter_is_refused_with_what_is_wrong() {
        let many: Vec<String> =
            (0..=SUBJECTS_MAX).map(|n| format!("\"rialto://jobs/{n}\"")).collect();
        let many =
            format!(r#"{{"notifications":{{"resourceSubscriptions":[{}]}}}}"#, many.join(","));
        for (params, why) in [
            ("{}", "notifications must be an object"),
            (r#"{"notifications":[]}"#, "notifications must be an object"),
            (
                r#"{"notifications":{"toolsListChanged":1}}"#,
                "toolsListChanged must be true or false",
            ),
            (r#"{"notifications":{"taskIds":"x"}}"#, "taskIds must be a list of strings"),
            (r#"{"notifications":{"taskIds":[1]}}"#, "taskIds must be a list of strings"),
            (&many, "resourceSubscriptions has more than 100 items"),
        ] {
            let error = Filter::read(params).expect_err(params);
            assert_eq!(error.code, -32602);
            assert!(error.message.contains(why), "{}", error.message);
        }
    }
}
