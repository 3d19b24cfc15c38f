//! A complete response.

use serde_json::Value;

/// Status, headers and body of a response.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Reply {
    pub async fn of(answer: reqwest::Response) -> Self {
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let path = answer.url().path().to_owned();
        let text = answer.text().await.unwrap_or_default();
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
