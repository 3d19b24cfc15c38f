//! Translates between a client of the old era and the hub, which is called in the new one.

use std::sync::{Arc, OnceLock};

use rialto_hub::mcp::SUBJECTS_MAX;
use rialto_hub::mcp::wire::error::{INVALID_PARAMS, RpcError};
use rialto_hub::mcp::wire::method::Method;
use rialto_hub::mcp::wire::version::{self, Era};
use rialto_protocols::kit::object::ObjectWriter;

use super::client_requests::ClientRequests;
use super::hub::SPOKEN;
use super::message::{Members, Request, meta_name, response};
use super::session::{Connection, HubRequest};
use super::subscriptions::{Added, Subscriptions};

/// How often one call may ask the user.
const QUESTIONS_MAX: usize = 8;
/// Members of results that only the new era has.
const NEW_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];
/// What a user answers who closes the question.
const CANCELLED: &str = r#"{"action":"cancel"}"#;

/// What the client said of itself in `initialize`.
struct OldClient {
    /// JSON text.
    info: String,
    /// Whether it can show its user a form.
    has_forms: bool,
}

impl OldClient {
    fn read(params: &str) -> Self {
        let params = Members::read(params).unwrap_or_default();
        let elicitation = params
            .members("capabilities")
            .and_then(|capabilities| capabilities.members("elicitation"));
        // An object without modes means forms, as it did before there were modes.
        let has_forms =
            elicitation.is_some_and(|modes| modes.is_empty() || modes.get("form").is_some());
        let info = params.get("clientInfo").map_or_else(own_info, str::to_owned);
        Self { info, has_forms }
    }
}

/// The bridge as it names itself for clients that do not.
fn own_info() -> String {
    let name = ObjectWriter::new().text("name", "rialto-mcp");
    name.text("version", env!("CARGO_PKG_VERSION")).finish()
}

/// A client of the old era.
pub struct OldEra {
    connection: Arc<Connection>,
    client: OnceLock<OldClient>,
    questions: ClientRequests,
    subscriptions: Subscriptions,
}

impl OldEra {
    pub fn new(connection: Arc<Connection>) -> Self {
        let questions = ClientRequests::new(connection.output.clone());
        let subscriptions = Subscriptions::new(connection.clone());
        Self { connection, client: OnceLock::new(), questions, subscriptions }
    }

    /// Remembers what the client says of itself.
    pub fn open(&self, params: &str) {
        self.client.get_or_init(|| OldClient::read(params));
    }

    /// The client answered a question.
    pub fn answered(&self, id: &str, result: Option<String>) {
        self.questions.answer(id, result);
    }

    /// Ends all subscriptions.
    pub fn stop(&self) {
        self.subscriptions.stop();
    }

    fn has_forms(&self) -> bool {
        self.client.get().is_some_and(|client| client.has_forms)
    }

    /// The whole message of the response.
    pub async fn respond(&self, request: &Request) -> String {
        let Request { id, method, params, .. } = request;
        match method.as_str() {
            "initialize" => self.initialize(id, params).await,
            "ping" => response(id, "{}"),
            "resources/subscribe" | "resources/unsubscribe" => self.subscribe(request).await,
            _ if Method::parse(method, Era::Old).is_none() => {
                RpcError::unknown_method(method).write(Some(id))
            }
            _ => self.call(request).await,
        }
    }

    /// Answers with what the hub says in `server/discover`.
    async fn initialize(&self, id: &str, params: &str) -> String {
        let text = self.message(id, "server/discover", "{}", &[]);
        let request =
            HubRequest { id, method: "server/discover", name: None, version: SPOKEN, text: &text };
        let discovered = self.connection.call(request).await;
        let discovered = Members::read(&discovered).unwrap_or_default();
        let Some(result) = discovered.members("result") else {
            return discovered.begin().finish();
        };
        let asked = Members::read(params).and_then(|params| params.text("protocolVersion"));
        let asked = asked.filter(|asked| version::is_offered_old(asked));
        let capabilities = result.members("capabilities").unwrap_or_default();
        let meta = result.members("_meta").unwrap_or_default();
        let opened = ObjectWriter::new()
            .text("protocolVersion", asked.as_deref().unwrap_or(version::NEWEST_OLD))
            .raw("capabilities", &capabilities.without(&["extensions"]).begin().finish())
            .maybe_raw("serverInfo", meta.get(&meta_name("serverInfo")))
            .maybe_raw("instructions", result.get("instructions"));
        if self.connection.hub.is_for_agents() {
            self.subscriptions.watch_tools();
        }
        response(id, &opened.finish())
    }

    async fn subscribe(&self, request: &Request) -> String {
        let Request { id, method, params, .. } = request;
        let Some(uri) = Members::read(params).and_then(|params| params.text("uri")) else {
            let error = RpcError::invalid_params("Invalid params: uri must be a string");
            return error.write(Some(id));
        };
        if method == "resources/unsubscribe" {
            self.subscriptions.remove(&uri);
            return response(id, "{}");
        }
        match self.subscriptions.add(&uri).await {
            Added::Yes => response(id, "{}"),
            Added::NotFound => RpcError::resource_not_found(&uri, Era::Old).write(Some(id)),
            Added::Full => {
                let what = format!(
                    "Invalid params: there are {SUBJECTS_MAX} subscriptions, which is the most; \
                     unsubscribe from another resource first"
                );
                RpcError::invalid_params(what).write(Some(id))
            }
        }
    }

    /// Calls the hub, and asks the user as often as it wants to know something.
    async fn call(&self, request: &Request) -> String {
        let Request { id, method, params, name, .. } = request;
        let mut more: Vec<(&str, String)> = Vec::new();
        for _ in 0..QUESTIONS_MAX {
            let text = self.message(id, method, params, &more);
            let hub_request =
                HubRequest { id, method, name: name.as_deref(), version: SPOKEN, text: &text };
            let answer = self.connection.call(hub_request).await;
            let members = Members::read(&answer).unwrap_or_default();
            let Some(result) = members.members("result") else {
                return for_old_client(id, method, &members);
            };
            if result.text("resultType").as_deref() != Some("input_required") {
                return response(id, &old_result(result));
            }
            let answers = self.ask(&result.members("inputRequests").unwrap_or_default()).await;
            more = vec![("inputResponses", answers)];
            more.extend(result.get("requestState").map(|state| ("requestState", state.to_owned())));
        }
        RpcError::invalid_params("the hub asks too many questions").write(Some(id))
    }

    /// Asks the client's user, and returns the answers by the names of the questions.
    async fn ask(&self, requests: &Members<'_>) -> String {
        let mut answers = ObjectWriter::new();
        for (name, request) in requests.iter() {
            let request = Members::read(request).unwrap_or_default();
            let answer = match request.text("method").as_deref() {
                Some("elicitation/create") if self.has_forms() => {
                    // The first versions with questions know no modes: a form is what they have.
                    let params = request.members("params").unwrap_or_default().without(&["mode"]);
                    self.questions.ask("elicitation/create", &params.begin().finish()).await
                }
                _ => None,
            };
            answers = answers.raw(name, answer.as_deref().unwrap_or(CANCELLED));
        }
        answers.finish()
    }

    /// A request of the new era with the client's parameters and more.
    fn message(&self, id: &str, method: &str, params: &str, more: &[(&str, String)]) -> String {
        let client = self.client.get();
        let info = client.map_or_else(own_info, |client| client.info.clone());
        let capabilities = if self.has_forms() { r#"{"elicitation":{"form":{}}}"# } else { "{}" };
        new_message(id, method, params, more, &info, capabilities)
    }
}

/// A request of the new era.
pub fn new_message(
    id: &str,
    method: &str,
    params: &str,
    more: &[(&str, String)],
    info: &str,
    capabilities: &str,
) -> String {
    let own = ["protocolVersion", "clientInfo", "clientCapabilities"].map(meta_name);
    let params = Members::read(params).unwrap_or_default();
    let meta = params.members("_meta").unwrap_or_default();
    let meta = meta.without(&own.each_ref().map(String::as_str)).begin();
    let meta = meta.text(&own[0], SPOKEN).raw(&own[1], info).raw(&own[2], capabilities).finish();
    let mut names: Vec<&str> = more.iter().map(|(name, _)| *name).collect();
    names.push("_meta");
    let params = params.without(&names).begin();
    let params = more.iter().fold(params, |params, (name, value)| params.raw(name, value));
    ObjectWriter::new()
        .text("jsonrpc", "2.0")
        .raw("id", id)
        .text("method", method)
        .raw("params", &params.raw("_meta", &meta).finish())
        .finish()
}

/// An error, with the code that it has in the old era.
fn for_old_client(id: &str, method: &str, message: &Members<'_>) -> String {
    let error = message.members("error").unwrap_or_default();
    let uri = error.members("data").and_then(|data| data.text("uri"));
    let is_bad_parameter = error.get("code") == Some(&INVALID_PARAMS.to_string());
    match uri {
        Some(uri) if method == "resources/read" && is_bad_parameter => {
            RpcError::resource_not_found(&uri, Era::Old).write(Some(id))
        }
        _ => message.begin().finish(),
    }
}

/// A result without what only the new era has.
fn old_result(result: Members<'_>) -> String {
    let meta = result.members("_meta");
    let meta = meta.map(|meta| meta.without(&[&meta_name("serverInfo")]));
    match meta {
        None => result.without(&NEW_MEMBERS).begin().finish(),
        Some(meta) => {
            let rest = result.without(&NEW_MEMBERS).without(&["_meta"]).begin();
            let meta = (!meta.is_empty()).then(|| meta.begin().finish());
            rest.maybe_raw("_meta", meta.as_deref()).finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_lose_what_only_the_new_era_has() {
        let old = |text: &str| old_result(Members::read(text).expect("an object"));
        assert_eq!(
            old(concat!(
                r#"{"resultType":"complete","tools":[{"ttlMs":1}],"ttlMs":5,"cacheScope":"public","#,
                r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"rialto"}}}"#
            )),
            r#"{"tools":[{"ttlMs":1}]}"#
        );
        assert_eq!(
            old(concat!(
                r#"{"resultType":"complete","structuredContent":{"n":1.50e0},"#,
                r#""_meta":{"rialto/job":{"paid":"0.05"},"io.modelcontextprotocol/serverInfo":{}}}"#
            )),
            r#"{"structuredContent":{"n":1.50e0},"_meta":{"rialto/job":{"paid":"0.05"}}}"#
        );
        assert_eq!(old(r#"{"a":1}"#), r#"{"a":1}"#);
    }

    #[test]
    fn requests_keep_their_parameters_and_say_what_the_client_can_do() {
        let message = new_message(
            "\"a\"",
            "tools/call",
            r#"{"name":"hire","arguments":{"n":0.10},"_meta":{"progressToken":3,"traceparent":"00-1"}}"#,
            &[("requestState", "\"s\"".to_owned())],
            r#"{"name":"c"}"#,
            "{}",
        );
        assert_eq!(
            message,
            concat!(
                r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"hire","#,
                r#""arguments":{"n":0.10},"requestState":"s","_meta":{"progressToken":3,"#,
                r#""traceparent":"00-1","io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientInfo":{"name":"c"},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#
            )
        );
    }

    #[test]
    fn a_client_has_forms_if_it_says_so_in_any_version() {
        let has = |capabilities: &str| {
            let params = format!(r#"{{"capabilities":{capabilities}}}"#);
            OldClient::read(&params).has_forms
        };
        for yes in [r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{},"url":{}}}"#] {
            assert!(has(yes), "{yes}");
        }
        for no in ["{}", r#"{"elicitation":{"url":{}}}"#, r#"{"elicitation":null}"#, "7"] {
            assert!(!has(no), "{no}");
        }
    }

    #[test]
    fn a_resource_that_does_not_exist_has_the_code_of_the_old_era() {
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Resource not found","data":{"uri":"rialto://x"}}}"#;
        let error = Members::read(error).expect("an object");
        assert!(for_old_client("1", "resources/read", &error).contains("-32002"));
        assert!(for_old_client("1", "tools/call", &error).contains("-32602"));
    }
}
