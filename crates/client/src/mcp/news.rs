//! The news of a server that its tools have changed: a notification anywhere on a pipe, a subscription in
//! the new era, and a stream of its own over HTTP in the old one.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::connection::{Note, Transport};
use super::era::Era;
use super::http::{HttpCall, HttpMessage, HttpServer};
use super::message::{McpError, Request};

/// How long to wait before a stream of news is opened again.
const NEWS_PAUSE: Duration = Duration::from_millis(500);
const NEWS_PAUSE_MAX: Duration = Duration::from_secs(30);
const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Counts the news that the tools have changed.
pub(super) fn note_change(method: &str, changed: &watch::Sender<u64>) {
    if method == LIST_CHANGED {
        changed.send_modify(|count| *count += 1);
    }
}

/// Asks a server of the new era for the news of its tools, again and again.
pub(super) async fn listen(
    transport: Transport,
    changed: watch::Sender<u64>,
    lost: watch::Sender<bool>,
) {
    let params = r#"{"notifications":{"toolsListChanged":true}}"#;
    let request = Request::new("subscriptions/listen", params);
    let mut pause = NEWS_PAUSE;
    loop {
        let mut was_opened = false;
        let mut on_note = |note: Note<'_>| {
            was_opened = true;
            note_change(note.method, &changed);
        };
        let ended = transport.exchange(&request, Era::New, &mut on_note).await;
        if matches!(ended, Err(McpError::NotSent(_))) {
            lost.send_replace(true);
        }
        let is_refused = matches!(ended, Err(McpError::Server(_) | McpError::Unreadable(_)));
        if is_refused && !was_opened {
            return;
        }
        pause = if was_opened { NEWS_PAUSE } else { (pause * 2).min(NEWS_PAUSE_MAX) };
        sleep(pause).await;
        // What changed in between was not told.
        changed.send_modify(|count| *count += 1);
    }
}

/// Reads the stream of a server of the old era for the news of its tools.
pub(super) async fn read_stream(
    server: HttpServer,
    changed: watch::Sender<u64>,
    lost: watch::Sender<bool>,
) {
    let (mut pause, mut was_opened) = (NEWS_PAUSE, false);
    loop {
        match server.open_stream().await {
            Ok(None) if !was_opened => return,
            // The session is over; the next call opens another.
            Ok(None) => pause = (pause * 2).min(NEWS_PAUSE_MAX),
            Ok(Some(mut stream)) => {
                (pause, was_opened) = (NEWS_PAUSE, true);
                read_news(&mut stream, &changed).await;
            }
            Err(error) => {
                if matches!(error, McpError::NotSent(_)) {
                    lost.send_replace(true);
                }
                pause = (pause * 2).min(NEWS_PAUSE_MAX);
            }
        }
        sleep(pause).await;
        changed.send_modify(|count| *count += 1);
    }
}

async fn read_news(stream: &mut HttpCall, changed: &watch::Sender<u64>) {
    while let Ok(message) = stream.next().await {
        if let HttpMessage::Notification { method, .. } = message {
            note_change(&method, changed);
        }
    }
}
