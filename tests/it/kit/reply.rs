//! A complete response.

use std::sync::LazyLock;

use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use super::api_doc::{ApiDoc, ReceivedAnswer};

/// The API document of the hub under test.
pub static API_DOC: LazyLock<ApiDoc> =
    LazyLock::new(|| ApiDoc::new(&rialto_hub::app::openapi::openapi_document()));

/// Status, headers and body of a response.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Reply {
    /// Sends a request.
    pub async fn to(request: reqwest::RequestBuilder) -> Self {
        let (client, request) = request.build_split();
        let request = request.expect("a request");
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let sent = request.body().and_then(|body| body.as_bytes()).map(<[u8]>::to_vec);
        let answer = client.execute(request).await.expect("an answer");
        let reply = Self::read(Some(method.as_str()), answer).await;
        if let Some(sent) = sent {
            // JSON-RPC refuses with 200.
            let is_refused =
                reply.text.starts_with(r#"{"jsonrpc""#) && reply.json()["error"].is_object();
            let status = if is_refused { 400 } else { reply.status };
            API_DOC.check_request(method.as_str(), &path, status, &sent);
        }
        reply
    }

    pub async fn of(answer: reqwest::Response) -> Self {
        Self::read(None, answer).await
    }

    async fn read(method: Option<&str>, answer: reqwest::Response) -> Self {
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let path = answer.url().path().to_owned();
        let text = answer.text().await;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let received = ReceivedAnswer {
            method,
            path: &path,
            status,
            content_type: content_type.unwrap_or_default(),
            body: text.as_deref().ok().filter(|_| method != Some("HEAD")),
        };
        API_DOC.check_answer(received);
        let text = text.unwrap_or_default();
        super::schemas::check_answer(&path, &text);
        Self { status, headers, text }
    }

    /// The body as JSON; `null` if it is not valid JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// A value by its JSON pointer.
    #[track_caller]
    pub fn at(&self, pointer: &str) -> Value {
        let found = self.json().pointer(pointer).cloned();
        found.unwrap_or_else(|| panic!("no {pointer} in HTTP {} {}", self.status, self.text))
    }

    /// A string by its JSON pointer.
    #[track_caller]
    pub fn str(&self, pointer: &str) -> String {
        self.at(pointer)
            .as_str()
            .unwrap_or_else(|| panic!("{pointer} is not a string: {}", self.text))
            .to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The same reply, if it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}
