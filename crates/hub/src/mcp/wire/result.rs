//! Results: one object, with the members that each era adds to it.

use rialto_protocols::kit::ijson::Json;
use rialto_protocols::kit::object::ObjectWriter;

use super::META_PREFIX;
use super::version::Era;

/// How long a client may keep a result, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHint {
    pub ttl_ms: i64,
    /// Whether the result is the same for every caller.
    pub is_public: bool,
}

impl CacheHint {
    /// For what changes with a new version of the hub only.
    pub const CATALOGUE: Self = Self { ttl_ms: 3_600_000, is_public: true };
    /// For the tools of agents.
    pub const AGENT_TOOLS: Self = Self { ttl_ms: 60_000, is_public: true };
    /// For what may change at any time.
    pub const NONE: Self = Self { ttl_ms: 0, is_public: false };
}

/// What a result says of itself in the new era.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultType {
    #[default]
    Complete,
    /// The client has to ask its user, and to call again.
    InputRequired,
    /// The call goes on as a task.
    Task,
}

impl ResultType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::InputRequired => "input_required",
            Self::Task => "task",
        }
    }
}

/// The result of a request.
#[derive(Clone, Debug)]
pub struct ResultObject {
    result_type: ResultType,
    members: Vec<(&'static str, String)>,
    cache: Option<CacheHint>,
    meta: Vec<(&'static str, String)>,
}

impl Default for ResultObject {
    fn default() -> Self {
        Self::new(ResultType::Complete)
    }
}

impl ResultObject {
    pub fn new(result_type: ResultType) -> Self {
        Self { result_type, members: Vec::new(), cache: None, meta: Vec::new() }
    }

    /// Adds JSON text.
    pub fn raw(mut self, name: &'static str, json: impl Into<String>) -> Self {
        self.members.push((name, json.into()));
        self
    }

    /// Adds a string.
    pub fn text(self, name: &'static str, text: &str) -> Self {
        self.raw(name, json_string(text))
    }

    /// Adds `true` or `false`.
    pub fn flag(self, name: &'static str, flag: bool) -> Self {
        self.raw(name, if flag { "true" } else { "false" })
    }

    /// Adds JSON text to `_meta`.
    pub fn meta(mut self, name: &'static str, json: impl Into<String>) -> Self {
        self.meta.push((name, json.into()));
        self
    }

    pub fn cached(self, hint: CacheHint) -> Self {
        Self { cache: Some(hint), ..self }
    }

    /// Whether it has `isError: true`.
    pub fn is_error(&self) -> bool {
        self.members.iter().any(|(name, value)| *name == "isError" && value == "true")
    }

    pub fn result_type(&self) -> ResultType {
        self.result_type
    }

    /// The object alone, as it stands inside another result.
    pub fn write_inner(&self) -> String {
        self.write_members(ObjectWriter::new(), None)
    }

    /// The whole message of the response. `server` is the JSON text of the server's name and version.
    pub fn write(&self, id: &str, era: Era, server: &str) -> String {
        let result = match era {
            Era::Old => self.write_members(ObjectWriter::new(), None),
            Era::New => {
                let begun = ObjectWriter::new().text("resultType", self.result_type.as_str());
                self.write_members(begun, Some(server))
            }
        };
        ObjectWriter::new().text("jsonrpc", "2.0").raw("id", id).raw("result", &result).finish()
    }

    fn write_members(&self, begun: ObjectWriter, server: Option<&str>) -> String {
        let mut result =
            self.members.iter().fold(begun, |result, (name, value)| result.raw(name, value));
        if let (Some(cache), Some(_)) = (self.cache, server) {
            let scope = if cache.is_public { "public" } else { "private" };
            result = result.integer("ttlMs", cache.ttl_ms).text("cacheScope", scope);
        }
        if !self.meta.is_empty() || server.is_some() {
            let meta = self.meta.iter();
            let meta = meta.fold(ObjectWriter::new(), |meta, (name, value)| meta.raw(name, value));
            let name = format!("{META_PREFIX}serverInfo");
            let meta = server.into_iter().fold(meta, |meta, server| meta.raw(&name, server));
            result = result.raw("_meta", &meta.finish());
        }
        result.finish()
    }
}

/// JSON text of a string.
pub fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// JSON text of an array of JSON texts.
pub fn json_array<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<T> = items.into_iter().collect();
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    format!("[{}]", items.join(","))
}

/// A content block of text.
pub fn text_block(text: &str) -> String {
    ObjectWriter::new().text("type", "text").text("text", text).finish()
}

/// The text of a JSON string.
pub fn as_text<'a>(json: Option<&'a Json<'_>>) -> Option<&'a str> {
    match json?.value() {
        rialto_protocols::kit::ijson::JsonValue::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_new_era_has_result_types_cache_hints_and_the_servers_name() {
        let result = ResultObject::default()
            .raw("tools", "[]")
            .cached(CacheHint::CATALOGUE)
            .meta("rialto/x", "1");
        assert_eq!(
            result.write("7", Era::Old, "{}"),
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[],"_meta":{"rialto/x":1}}}"#
        );
        assert_eq!(
            result.write("\"a\"", Era::New, r#"{"name":"n"}"#),
            concat!(
                r#"{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","tools":[],"#,
                r#""ttlMs":3600000,"cacheScope":"public","_meta":{"rialto/x":1,"#,
                r#""io.modelcontextprotocol/serverInfo":{"name":"n"}}}}"#
            )
        );
        assert_eq!(
            ResultObject::default().write("1", Era::Old, "{}"),
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#
        );
    }
}
