//! Subscriptions of an old client, over one stream of the hub.
//!
//! The stream is opened again when the client changes what it wants, and when it is lost. After a loss
//! the client is told that everything may have changed, because nothing else would tell it.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rialto_client::RetryPolicy;
use rialto_hub::mcp::SUBJECTS_MAX;
use rialto_protocols::kit::object::{ObjectWriter, string_array};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::hub::{Headers, Replies, SPOKEN};
use super::message::{Members, notification};
use super::old_era::new_message;
use super::session::Connection;

const METHOD: &str = "subscriptions/listen";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// How long a subscription waits for the hub's acknowledgement.
const ACKNOWLEDGED_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an old stream is read for what came before the new one was open.
const DRAIN_TIME: Duration = Duration::from_millis(20);
/// The pauses between attempts to open the stream.
const RETRY: RetryPolicy = RetryPolicy {
    max_attempts: u32::MAX,
    initial_delay: Duration::from_millis(250),
    max_delay: Duration::from_secs(15),
};

/// What the client wants to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    uris: BTreeSet<String>,
    tools: bool,
    /// Counts the changes.
    version: u64,
}

/// What the hub made of it.
#[derive(Clone, Debug, Default)]
struct Honoured {
    /// That of what was wanted.
    version: u64,
    /// `None` if the hub did not answer.
    uris: Option<BTreeSet<String>>,
}

/// What became of a wish to be told of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    Yes,
    /// The hub has no such resource with updates.
    NotFound,
    /// There are as many as the hub takes on one stream.
    Full,
}

/// All subscriptions of one client.
pub struct Subscriptions {
    connection: Arc<Connection>,
    wanted: watch::Sender<Wanted>,
    honoured: watch::Sender<Honoured>,
    /// The task that reads the stream, once there is one.
    task: Mutex<Option<AbortHandle>>,
}

impl Subscriptions {
    pub fn new(connection: Arc<Connection>) -> Self {
        let (wanted, honoured) = (watch::Sender::default(), watch::Sender::default());
        Self { connection, wanted, honoured, task: Mutex::default() }
    }

    /// Tells the client when its list of tools changes.
    pub fn watch_tools(&self) {
        self.change(|wanted| !std::mem::replace(&mut wanted.tools, true));
    }

    /// Tells the client when this resource changes. A hub that does not answer is asked again later.
    pub async fn add(&self, uri: &str) -> Added {
        let mut honoured = self.honoured.subscribe();
        let changed = self.change(|wanted| {
            let has_room = wanted.uris.len() < SUBJECTS_MAX || wanted.uris.contains(uri);
            if has_room {
                wanted.uris.insert(uri.to_owned());
            }
            has_room
        });
        let Some(version) = changed else { return Added::Full };
        let answered = honoured.wait_for(|honoured| honoured.version >= version);
        let Ok(Ok(honoured)) = timeout(ACKNOWLEDGED_TIME_MAX, answered).await else {
            return Added::Yes;
        };
        let is_refused = honoured.uris.as_ref().is_some_and(|uris| !uris.contains(uri));
        drop(honoured);
        if is_refused {
            self.remove(uri);
            return Added::NotFound;
        }
        Added::Yes
    }

    pub fn remove(&self, uri: &str) {
        self.change(|wanted| wanted.uris.remove(uri));
    }

    /// Ends the stream.
    pub fn stop(&self) {
        if let Some(task) = self.task().take() {
            task.abort();
        }
    }

    /// Changes what is wanted, starts the stream if there is none, and returns the new version; `None`
    /// if nothing was changed.
    fn change(&self, change: impl FnOnce(&mut Wanted) -> bool) -> Option<u64> {
        let mut version = None;
        self.wanted.send_if_modified(|wanted| {
            let is_changed = change(wanted);
            if is_changed {
                wanted.version += 1;
                version = Some(wanted.version);
            }
            is_changed
        });
        version?;
        self.task().get_or_insert_with(|| {
            let listener = Listener {
                connection: self.connection.clone(),
                wanted: self.wanted.subscribe(),
                honoured: self.honoured.clone(),
            };
            tokio::spawn(listener.run()).abort_handle()
        });
        version
    }

    fn task(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hub did not answer, or refused to open a stream: it may have too many of this key.
struct NotOpened;

/// Keeps the stream open.
struct Listener {
    connection: Arc<Connection>,
    wanted: watch::Receiver<Wanted>,
    honoured: watch::Sender<Honoured>,
}

impl Listener {
    async fn run(mut self) {
        let mut stream: Option<Replies> = None;
        let (mut is_lost, mut failures) = (false, 0);
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            if wanted.uris.is_empty() && !wanted.tools {
                (stream, is_lost) = (None, false);
                self.tell_honoured(&wanted, Some(BTreeSet::new()));
                if self.wanted.changed().await.is_err() {
                    return;
                }
                continue;
            }
            match self.open(&wanted).await {
                Ok((replies, uris)) => {
                    if let Some(old) = stream.replace(replies) {
                        self.drain(old).await;
                    }
                    if std::mem::take(&mut is_lost) {
                        self.tell_all_changed(&uris, wanted.tools).await;
                    }
                    failures = 0;
                    self.tell_honoured(&wanted, Some(uris));
                }
                Err(NotOpened) => {
                    self.tell_honoured(&wanted, None);
                    is_lost = true;
                    failures += 1;
                    let pause = sleep(RETRY.delay(failures));
                    // What was wanted before is still told on the stream before.
                    if let Some(before) = &mut stream {
                        let end = self.connection.forward(before, &mut self.wanted, pause).await;
                        if end == StreamEnd::Lost {
                            stream = None;
                        }
                        continue;
                    }
                    tokio::select! {
                        () = pause => {}
                        changed = self.wanted.changed() => if changed.is_err() { return },
                    }
                    continue;
                }
            }
            let Some(replies) = &mut stream else { continue };
            let end = self.connection.forward(replies, &mut self.wanted, pending()).await;
            if end == StreamEnd::Lost {
                (stream, is_lost) = (None, true);
                // A hub that ends every stream at once is not asked again at once.
                sleep(RETRY.delay(1)).await;
            }
        }
    }

    fn tell_honoured(&self, wanted: &Wanted, uris: Option<BTreeSet<String>>) {
        self.honoured.send_replace(Honoured { version: wanted.version, uris });
    }

    /// Opens the stream; returns it with the resources that the hub tells about.
    async fn open(&self, wanted: &Wanted) -> Result<(Replies, BTreeSet<String>), NotOpened> {
        let uris = string_array(wanted.uris.iter().map(String::as_str));
        let mut filter = ObjectWriter::new();
        if wanted.tools {
            filter = filter.flag("toolsListChanged", true);
        }
        if !wanted.uris.is_empty() {
            filter = filter.raw("resourceSubscriptions", &uris);
        }
        let params = ObjectWriter::new().raw("notifications", &filter.finish()).finish();
        let id = format!("\"rialto-listen-{}\"", wanted.version);
        let info = ObjectWriter::new().text("name", "rialto-mcp");
        let info = info.text("version", env!("CARGO_PKG_VERSION")).finish();
        let text = new_message(&id, METHOD, &params, &[], &info, "{}");
        let headers = Headers { method: METHOD, name: None, version: SPOKEN };
        let replies = self.connection.hub.post(&text, headers, true).await;
        let mut replies = replies.map_err(|_| NotOpened)?;
        let first = replies.next().await.map_err(|_| NotOpened)?;
        let first = Members::read(&first).unwrap_or_default();
        if first.text("method").as_deref() != Some("notifications/subscriptions/acknowledged") {
            return Err(NotOpened);
        }
        let granted = first.members("params").and_then(|params| params.members("notifications"));
        let uris = granted.and_then(|granted| granted.get("resourceSubscriptions"));
        let uris = uris.and_then(|uris| serde_json::from_str(uris).ok()).unwrap_or_default();
        Ok((replies, uris))
    }

    /// Passes on what came on a stream before the next one was open.
    async fn drain(&self, mut old: Replies) {
        while let Ok(Ok(message)) = timeout(DRAIN_TIME, old.next()).await {
            self.connection.forward_one(&message).await;
        }
    }

    async fn tell_all_changed(&self, uris: &BTreeSet<String>, tools: bool) {
        if tools {
            self.connection.output.send(notification(TOOLS_CHANGED, "{}")).await;
        }
        for uri in uris {
            let params = ObjectWriter::new().text("uri", uri).finish();
            self.connection.output.send(notification(RESOURCE_UPDATED, &params)).await;
        }
    }
}

/// Why a stream is no longer read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamEnd {
    /// Another is to be opened.
    Due,
    Lost,
}

impl Connection {
    /// Passes on what the stream says until it ends, something else is wanted, or the pause is over.
    async fn forward(
        &self,
        replies: &mut Replies,
        wanted: &mut watch::Receiver<Wanted>,
        pause: impl Future<Output = ()>,
    ) -> StreamEnd {
        tokio::pin!(pause);
        loop {
            tokio::select! {
                _ = wanted.changed() => return StreamEnd::Due,
                () = &mut pause => return StreamEnd::Due,
                message = replies.next() => match message {
                    Ok(message) if self.forward_one(&message).await => {}
                    _ => return StreamEnd::Lost,
                }
            }
        }
    }

    /// Passes a notification on, without what only the new era has. `false` for a response, which ends
    /// the stream.
    async fn forward_one(&self, message: &str) -> bool {
        let members = Members::read(message).unwrap_or_default();
        let Some(method) = members.text("method") else { return false };
        if method == TOOLS_CHANGED || method == RESOURCE_UPDATED {
            let params = members.members("params").unwrap_or_default().without(&["_meta"]);
            self.output.send(notification(&method, &params.begin().finish())).await;
        }
        true
    }
}
