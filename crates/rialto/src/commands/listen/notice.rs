//! A forwarded notice, and its output line.

use rialto_client::Notice;
use serde_json::{Value, json};

use super::super::output::escape_line;

/// One notice and what is printed about it.
pub struct ForwardedNotice {
    pub position: u64,
    pub kind: String,
    /// The JSON text as it was received.
    pub data: String,
    at: String,
    job: Option<String>,
}

impl From<Notice> for ForwardedNotice {
    fn from(notice: Notice) -> Self {
        let Notice { position, kind, data } = notice;
        let members: Value = serde_json::from_str(&data).unwrap_or_default();
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        Self { position, kind, at: text("at").unwrap_or_default(), job: text("job"), data }
    }
}

impl ForwardedNotice {
    /// Time, kind and status. Without a status, it is a notice that endpoints do not get.
    pub fn line(&self, status: Option<u16>, as_json: bool) -> String {
        let Self { position, kind, at, job, .. } = self;
        if as_json {
            let document =
                json!({"position": position, "kind": kind, "at": at, "job": job, "status": status});
            return document.to_string();
        }
        let job = job.as_ref().map(|job| format!("  {job}")).unwrap_or_default();
        let status = status.map_or("not sent".to_owned(), |status| status.to_string());
        escape_line(&format!("{at}  {kind}  {status}{job}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_one_line_or_one_document() {
        let data = r#"{"position":4,"kind":"ended","at":"2026-01-01T00:00:00Z","job":"j"}"#;
        let notice = Notice { position: 4, kind: "ended".to_owned(), data: data.to_owned() };
        let told = ForwardedNotice::from(notice);
        assert_eq!(told.line(Some(204), false), "2026-01-01T00:00:00Z  ended  204  j");
        let document: Value = serde_json::from_str(&told.line(Some(204), true)).expect("JSON");
        assert_eq!((&document["position"], &document["status"]), (&json!(4), &json!(204)));
        assert_eq!(told.line(None, false), "2026-01-01T00:00:00Z  ended  not sent  j");
        assert_eq!(told.data, data);
    }
}
