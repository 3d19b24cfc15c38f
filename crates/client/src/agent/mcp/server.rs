//! Keeps an MCP server running and its skills registered.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, broadcast, watch};
use tokio::time::{Instant, sleep};

use super::skill::find_obstacle;
use crate::agent::handlers::{Handlers, HandlersBuilder};
use crate::mcp::http::HttpServer;
use crate::mcp::stdio::ServerCommand;
use crate::mcp::{Connection, Era, McpError, Tool};
use crate::worker::lock_ignoring_poison;

/// How long to wait before a server is started again, and how long at most.
const RESTART_DELAY: Duration = Duration::from_secs(1);
const RESTART_DELAY_MAX: Duration = Duration::from_secs(30);
/// A server that ends this often within the window is not started again.
const ENDS_MAX: usize = 5;
const WINDOW: Duration = Duration::from_secs(5 * 60);
/// Several news within this time cause one look at the list.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// Lines of the log that wait to be written to the logs of jobs.
const LOG_LINES_MAX: usize = 1_000;

/// Where a server is.
#[derive(Clone)]
pub enum McpSource {
    /// A command that is started.
    Command(ServerCommand),
    /// A URL.
    Url(HttpServer),
}

/// Something that happened to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// It has ended, or cannot be reached.
    Ended {
        /// How.
        why: String,
        /// How long the agent waits before it tries again. `None` if it gives up.
        retry_in: Option<Duration>,
    },
    /// It is connected again.
    Connected,
    /// Its list of tools cannot be read.
    Unlisted {
        /// Why.
        why: String,
    },
}

/// The tools that a server has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedTools {
    /// Tools that can be skills.
    pub tools: Vec<Tool>,
    /// Why others cannot.
    pub left_out: Vec<String>,
}

/// A server that is kept running. Clones share it.
#[derive(Clone)]
pub struct McpServer(Arc<Inner>);

struct Inner {
    source: McpSource,
    current: watch::Sender<Option<Connection>>,
    offered: Mutex<OfferedTools>,
    /// The lines of its log.
    log_lines: broadcast::Sender<String>,
    /// A call found the connection gone.
    lost: Notify,
    is_closing: watch::Sender<bool>,
    failure: watch::Sender<Option<String>>,
    on_event: Box<dyn Fn(ServerEvent) + Send + Sync>,
}

impl McpSource {
    /// The same source, with its log sent to jobs, too.
    fn log_to(self, lines: broadcast::Sender<String>) -> Self {
        let Self::Command(mut command) = self else { return self };
        let log = command.log;
        command.log = Arc::new(move |line| {
            log(line);
            // Fails if no job is running.
            let _ = lines.send(line.to_owned());
        });
        Self::Command(command)
    }

    async fn open(&self) -> Result<(Connection, OfferedTools), McpError> {
        let connection = match self {
            Self::Command(command) => Connection::start(command).await?,
            Self::Url(server) => Connection::connect(server).await?,
        };
        match list(&connection).await {
            Ok(offered) => Ok((connection, offered)),
            Err(error) => {
                connection.close().await;
                Err(match error {
                    // How its process ended says more.
                    McpError::NotSent(_) if self.is_process() => {
                        McpError::Lost(connection.ended().await)
                    }
                    error => error,
                })
            }
        }
    }

    fn is_process(&self) -> bool {
        matches!(self, Self::Command(_))
    }
}

/// The tools of a server, without those that cannot be skills.
async fn list(connection: &Connection) -> Result<OfferedTools, McpError> {
    let (tools, mut left_out) = connection.list_tools().await?;
    let mut offered = Vec::new();
    for tool in tools {
        match find_obstacle(&tool) {
            None => offered.push(tool),
            Some(why) => left_out.push(format!("tool {}: {why}", tool.name)),
        }
    }
    Ok(OfferedTools { tools: offered, left_out })
}

impl McpServer {
    /// Starts or connects the server. An error means that it gave no answer, or none of use.
    pub async fn open(
        source: McpSource,
        on_event: impl Fn(ServerEvent) + Send + Sync + 'static,
    ) -> Result<Self, McpError> {
        let log_lines = broadcast::Sender::new(LOG_LINES_MAX);
        let source = source.log_to(log_lines.clone());
        let (connection, offered) = source.open().await?;
        Ok(Self(Arc::new(Inner {
            source,
            current: watch::Sender::new(Some(connection)),
            offered: Mutex::new(offered),
            log_lines,
            lost: Notify::new(),
            is_closing: watch::Sender::new(false),
            failure: watch::Sender::new(None),
            on_event: Box::new(on_event),
        })))
    }

    /// The era of the server, and what it calls itself.
    pub fn about(&self) -> Option<(Era, Option<String>)> {
        let connection = self.connection()?;
        Some((connection.era(), connection.server_name().map(str::to_owned)))
    }

    /// The tools that the server has now.
    pub fn offered(&self) -> OfferedTools {
        lock_ignoring_poison(&self.0.offered).clone()
    }

    /// The connection, unless the server is down.
    pub(super) fn connection(&self) -> Option<Connection> {
        self.0.current.borrow().clone()
    }

    /// The lines of its log from now on.
    pub(super) fn log_lines(&self) -> broadcast::Receiver<String> {
        self.0.log_lines.subscribe()
    }

    /// Waits until the server is connected.
    pub(super) async fn connected(&self) -> Connection {
        let mut current = self.0.current.subscribe();
        loop {
            if let Ok(found) = current.wait_for(Option::is_some).await
                && let Some(connection) = &*found
            {
                return connection.clone();
            }
            // The sender lives as long as this value.
            std::future::pending::<()>().await;
        }
    }

    /// A call found this connection gone.
    pub(super) fn report_lost(&self, connection: &Connection) {
        let is_current = self.0.current.send_if_modified(|current| {
            let is_same = current.as_ref().is_some_and(|current| current.is(connection));
            if is_same {
                *current = None;
            }
            is_same
        });
        if is_current {
            self.0.lost.notify_one();
        }
    }

    /// Why the server was given up, if it was.
    pub fn failure(&self) -> Option<String> {
        self.0.failure.borrow().clone()
    }

    /// Waits until the server is given up.
    pub async fn given_up(&self) {
        let mut failure = self.0.failure.subscribe();
        let _ = failure.wait_for(Option::is_some).await;
    }

    /// Ends the server and everything that waits for it.
    pub async fn close(&self) {
        self.0.is_closing.send_replace(true);
        let connection = self.0.current.send_replace(None);
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    /// Keeps the server running, until it is closed or given up. When its tools have changed, the
    /// skills of `handlers` are replaced by those that `choose` makes of them; while the server is
    /// down, the handlers are offline.
    pub async fn supervise(
        &self,
        handlers: &Handlers,
        choose: impl Fn(&OfferedTools) -> HandlersBuilder,
    ) {
        let mut closing = self.0.is_closing.subscribe();
        let work = async {
            let mut ends = VecDeque::new();
            let mut delay = RESTART_DELAY;
            while let Some(connection) = self.connection() {
                let since = Instant::now();
                let why = self.follow(&connection, handlers, &choose).await;
                self.0.current.send_replace(None);
                handlers.set_offline(true);
                // What is left of the process must not meet its successor.
                if self.0.source.is_process() {
                    connection.close().await;
                }
                drop(connection);
                if since.elapsed() >= WINDOW {
                    delay = RESTART_DELAY;
                }
                if !self.restart(why, &mut ends, &mut delay, handlers, &choose).await {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            _ = closing.wait_for(|is_closing| *is_closing) => {}
            () = work => {}
        }
    }

    /// Follows the news of a connection until it is gone, and returns why.
    async fn follow(
        &self,
        connection: &Connection,
        handlers: &Handlers,
        choose: &impl Fn(&OfferedTools) -> HandlersBuilder,
    ) -> String {
        let mut changes = connection.watch_changes();
        loop {
            tokio::select! {
                biased;
                why = connection.ended() => return why,
                () = self.0.lost.notified() => {
                    // A process that has ended says more than the call that noticed it.
                    if self.0.source.is_process() {
                        return connection.ended().await;
                    }
                    return "the connection to the server was lost".to_owned();
                }
                Ok(()) = changes.changed() => {
                    sleep(SETTLE_TIME).await;
                    changes.mark_unchanged();
                    match list(connection).await {
                        Ok(offered) => self.replace(offered, handlers, choose),
                        Err(error) => {
                            let why = error.to_string();
                            (self.0.on_event)(ServerEvent::Unlisted { why });
                        }
                    }
                }
            }
        }
    }

    fn replace(
        &self,
        offered: OfferedTools,
        handlers: &Handlers,
        choose: &impl Fn(&OfferedTools) -> HandlersBuilder,
    ) {
        {
            let mut known = lock_ignoring_poison(&self.0.offered);
            if *known == offered {
                return;
            }
            *known = offered.clone();
        }
        handlers.replace_skills(choose(&offered));
    }

    /// Starts the server again, as often as it takes. Returns whether it runs.
    async fn restart(
        &self,
        mut why: String,
        ends: &mut VecDeque<Instant>,
        delay: &mut Duration,
        handlers: &Handlers,
        choose: &impl Fn(&OfferedTools) -> HandlersBuilder,
    ) -> bool {
        loop {
            if self.0.source.is_process() {
                ends.push_back(Instant::now());
                while ends.front().is_some_and(|end| end.elapsed() > WINDOW) {
                    ends.pop_front();
                }
            }
            if ends.len() >= ENDS_MAX {
                (self.0.on_event)(ServerEvent::Ended { why: why.clone(), retry_in: None });
                self.0.failure.send_replace(Some(why));
                return false;
            }
            (self.0.on_event)(ServerEvent::Ended { why, retry_in: Some(*delay) });
            sleep(*delay).await;
            *delay = (*delay * 2).min(RESTART_DELAY_MAX);
            match self.0.source.open().await {
                Ok((connection, offered)) => {
                    self.replace(offered, handlers, choose);
                    self.0.current.send_replace(Some(connection));
                    handlers.set_offline(false);
                    (self.0.on_event)(ServerEvent::Connected);
                    return true;
                }
                Err(error) => why = error.to_string(),
            }
        }
    }
}
