//! A server that is a child process: messages are lines on its standard input and output, and its
//! standard error is its log.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;

use super::message::{self, Incoming, MESSAGE_BYTES_MAX, McpError, Request, ServerError};
use super::news::note_change;
use crate::worker::lock_ignoring_poison;

/// Variables with this prefix may hold keys of a hub. No server gets any of them.
const OWN_VARIABLES: &str = "RIALTO_";
/// How long a server has to end after its input was closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// Lines of the log that are kept to explain why a server ended.
const TAIL_LINES: usize = 12;
/// Maximum length of a log line in bytes; the rest becomes a line of its own.
const LOG_LINE_MAX: usize = 8 << 10;
/// How long the log may go on after the server has ended: a child of its own may hold it open.
const LOG_TIME: Duration = Duration::from_millis(300);
/// How many bytes of this client's own messages may wait for a server that does not read them.
const UNREAD_BYTES_MAX: usize = 128 << 20;
/// The same for answers to the server's requests: it chooses how many there are.
const UNREAD_ANSWER_BYTES_MAX: usize = 1 << 20;
/// How many reports of progress may wait for a caller. More are dropped: it wants the latest.
const PROGRESS_MAX: usize = 64;
/// A longer report of progress counts as a sign of life alone.
const PROGRESS_BYTES_MAX: usize = 64 << 10;

/// Gets each line of a server's log.
pub type ServerLog = Arc<dyn Fn(&str) + Send + Sync>;

/// The command of a server, and how it is run.
#[derive(Clone)]
pub struct ServerCommand {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The working directory.
    pub directory: PathBuf,
    /// Gets its log.
    pub log: ServerLog,
}

/// A running server. It is killed when this is dropped; [`StdioServer::close`] lets it end by itself.
pub struct StdioServer {
    lines: mpsc::UnboundedSender<InputLine>,
    shared: Arc<Shared>,
    next_id: AtomicI64,
    ended: watch::Receiver<Option<String>>,
    group: Option<Pid>,
}

struct Shared {
    pending: Mutex<Pending>,
    /// Counts the news that the tools have changed.
    changes: watch::Sender<u64>,
    tail: Mutex<VecDeque<String>>,
    /// Room for what the server has not read yet, in bytes.
    room: Arc<Semaphore>,
    answer_room: Arc<Semaphore>,
    /// Whether there was too little of it, so that the server has to be ended.
    is_overrun: watch::Sender<bool>,
}

/// A line on its way to the server.
struct InputLine {
    text: String,
    /// Given back once the line is written.
    _room: Option<OwnedSemaphorePermit>,
}

/// Requests without a response. `None` once the server has ended.
type Pending = Option<HashMap<i64, PendingRequest>>;

struct PendingRequest {
    reply: oneshot::Sender<Result<String, McpError>>,
    progress: mpsc::Sender<String>,
}

/// A request that was written. Dropping it before its response tells the server, if it is to know.
pub(super) struct StdioCall<'a> {
    server: &'a StdioServer,
    id: i64,
    is_cancellable: bool,
    reply: oneshot::Receiver<Result<String, McpError>>,
    /// Parameters of the progress notifications about it.
    progress: mpsc::Receiver<String>,
}

impl StdioServer {
    /// Starts a server. `changes` counts the news that its tools have changed.
    pub fn start(command: &ServerCommand, changes: watch::Sender<u64>) -> Result<Self, McpError> {
        let own = |(name, _): &(OsString, OsString)| {
            !name.to_str().is_some_and(|name| name.starts_with(OWN_VARIABLES))
        };
        let started = Command::new(&command.program)
            .args(&command.arguments)
            .env_clear()
            .envs(std::env::vars_os().filter(own))
            .current_dir(&command.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let program = &command.program;
        let mut child = started
            .map_err(|error| McpError::NotSent(format!("{program} cannot be started: {error}")))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(McpError::NotSent(format!("{program} cannot be started: no pipes")));
        };
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let shared = Arc::new(Shared {
            pending: Mutex::new(Some(HashMap::new())),
            changes,
            tail: Mutex::default(),
            room: Arc::new(Semaphore::new(UNREAD_BYTES_MAX)),
            answer_room: Arc::new(Semaphore::new(UNREAD_ANSWER_BYTES_MAX)),
            is_overrun: watch::Sender::new(false),
        });
        let (lines, queued) = mpsc::unbounded_channel();
        let (told, ended) = watch::channel(None);
        let weak = lines.downgrade();
        tokio::spawn(write(stdin, queued));
        let logged = tokio::spawn(read_log(stderr, Arc::clone(&shared), command.log.clone()));
        tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                let mut overrun = shared.is_overrun.subscribe();
                tokio::select! {
                    () = read(stdout, &shared, &weak) => {}
                    _ = overrun.wait_for(|is_overrun| *is_overrun) => {}
                }
                // From here on the server gets no more requests.
                let waiting = lock_ignoring_poison(&shared.pending).take();
                let status = wait(&mut child, group).await;
                let _ = timeout(LOG_TIME, logged).await;
                let why = shared.describe_end(status);
                told.send_replace(Some(why.clone()));
                for (_, request) in waiting.into_iter().flatten() {
                    let _ = request.reply.send(Err(McpError::Lost(why.clone())));
                }
            }
        });
        Ok(Self { lines, shared, next_id: AtomicI64::new(1), ended, group })
    }

    /// Writes a request whose parameters may depend on its id.
    pub(super) fn begin(
        &self,
        request: &Request,
        params: impl FnOnce(i64) -> Option<String>,
    ) -> Result<StdioCall<'_>, McpError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let request = Request { params: params(id), ..request.clone() };
        let (answer, reply) = oneshot::channel();
        let (sender, progress) = mpsc::channel(PROGRESS_MAX);
        let has_ended = || McpError::NotSent("the server has ended".to_owned());
        match &mut *lock_ignoring_poison(&self.shared.pending) {
            Some(pending) => {
                pending.insert(id, PendingRequest { reply: answer, progress: sender });
            }
            None => return Err(has_ended()),
        }
        if !self.shared.queue(&self.lines, &self.shared.room, request.write(id)) {
            return Err(has_ended());
        }
        Ok(StdioCall { server: self, id, is_cancellable: request.is_cancellable, reply, progress })
    }

    /// Writes a notification.
    pub(super) fn notify(&self, method: &str, params: Option<&str>) {
        self.shared.queue(&self.lines, &self.shared.room, message::notification(method, params));
    }

    /// Waits until the server has ended, and returns how.
    pub async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            Err(_) => "the server has ended".to_owned(),
        }
    }

    /// Ends the server: its input is closed; after 2 seconds it gets SIGTERM, and after 2 more SIGKILL.
    pub async fn close(&self) {
        // An empty line ends the writer, and with it the input.
        let _ = self.lines.send(InputLine { text: String::new(), _room: None });
        for signal in [Signal::TERM, Signal::KILL] {
            if timeout(GRACE, self.ended()).await.is_ok() {
                break;
            }
            self.signal(signal);
        }
        let _ = timeout(GRACE, self.ended()).await;
        // What the server itself has started must not outlive it.
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that the group is already gone.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for StdioServer {
    fn drop(&mut self) {
        if self.ended.borrow().is_none() {
            self.signal(Signal::KILL);
        }
    }
}

impl StdioCall<'_> {
    /// Waits for the response. What was reported before it goes to `on_progress` first.
    pub(super) async fn response(
        mut self,
        mut on_progress: impl FnMut(&str),
    ) -> Result<String, McpError> {
        loop {
            tokio::select! {
                biased;
                Some(params) = self.progress.recv() => on_progress(&params),
                reply = &mut self.reply => {
                    let ended = || Err(McpError::Lost("the server has ended".to_owned()));
                    return reply.unwrap_or_else(|_| ended());
                }
            }
        }
    }
}

impl Drop for StdioCall<'_> {
    fn drop(&mut self) {
        let mut pending = lock_ignoring_poison(&self.server.shared.pending);
        let was_pending = pending.as_mut().is_some_and(|all| all.remove(&self.id).is_some());
        if was_pending && self.is_cancellable {
            let StdioServer { lines, shared, .. } = self.server;
            shared.queue(lines, &shared.room, message::cancelled(self.id));
        }
    }
}

impl Shared {
    /// Queues a line. A server that leaves too much unread is ended. Returns whether the line may
    /// reach it.
    fn queue(
        &self,
        lines: &mpsc::UnboundedSender<InputLine>,
        room: &Arc<Semaphore>,
        text: String,
    ) -> bool {
        let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        match Arc::clone(room).try_acquire_many_owned(bytes) {
            Ok(held) => lines.send(InputLine { text, _room: Some(held) }).is_ok(),
            Err(_) => {
                self.is_overrun.send_replace(true);
                false
            }
        }
    }

    fn resolve(&self, id: i64, result: Result<String, ServerError>) {
        let request = lock_ignoring_poison(&self.pending).as_mut().and_then(|all| all.remove(&id));
        if let Some(request) = request {
            // Fails if the caller no longer waits.
            let _ = request.reply.send(result.map_err(McpError::Server));
        }
    }

    fn notify(&self, method: &str, params: String) {
        if method != "notifications/progress" {
            return note_change(method, &self.changes);
        }
        let token = progress_token(&params);
        let params = if params.len() > PROGRESS_BYTES_MAX { "{}".to_owned() } else { params };
        if let Some(pending) = &*lock_ignoring_poison(&self.pending)
            && let Some(request) = token.and_then(|token| pending.get(&token))
        {
            let _ = request.progress.try_send(params);
        }
    }

    /// Fails the requests of a line that cannot be read: one of them was answered with it.
    fn fail_waiting(&self, why: &str) {
        let all = lock_ignoring_poison(&self.pending).as_mut().map(std::mem::take);
        for (_, request) in all.into_iter().flatten() {
            let _ = request.reply.send(Err(McpError::Unreadable(why.to_owned())));
        }
    }

    fn describe_end(&self, status: Option<ExitStatus>) -> String {
        let how = match status {
            _ if *self.is_overrun.borrow() => {
                "the server was ended, because it does not read what it is sent".to_owned()
            }
            Some(status) => format!("the server has ended ({status})"),
            None => "the server has ended".to_owned(),
        };
        let tail = lock_ignoring_poison(&self.tail);
        let last: Vec<&str> = tail.iter().map(String::as_str).collect();
        if last.is_empty() { how } else { format!("{how}:\n{}", last.join("\n")) }
    }
}

/// The request that a progress notification is about: its id is the token.
pub(super) fn progress_token(params: &str) -> Option<i64> {
    #[derive(serde::Deserialize)]
    struct Params {
        #[serde(rename = "progressToken")]
        token: i64,
    }
    serde_json::from_str::<Params>(params).ok().map(|params| params.token)
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<InputLine>) {
    while let Some(mut line) = lines.recv().await {
        if line.text.is_empty() {
            return;
        }
        line.text.push('\n');
        let written = stdin.write_all(line.text.as_bytes()).await;
        if written.is_err() || stdin.flush().await.is_err() {
            // The end of the process is noticed by the reader.
            return;
        }
    }
}

/// Reads messages until the output ends, or the server does not read the answers to its requests.
async fn read(
    stdout: impl AsyncRead + Unpin,
    shared: &Shared,
    lines: &mpsc::WeakUnboundedSender<InputLine>,
) {
    let mut from = BoundedLines::new(stdout, MESSAGE_BYTES_MAX);
    while let Some(line) = from.next().await {
        let Some(line) = line else {
            shared.fail_waiting(&format!("a message has more than {MESSAGE_BYTES_MAX} bytes"));
            continue;
        };
        match Incoming::read(&String::from_utf8_lossy(&line)) {
            Some(Incoming::Response { id, result }) => {
                id.into_iter().for_each(|id| shared.resolve(id, result.clone()));
            }
            Some(Incoming::Notification { method, params }) => shared.notify(&method, params),
            Some(Incoming::Request { id, method }) => {
                if let Some(lines) = lines.upgrade() {
                    let answer = message::response_to(&id, &method);
                    if !shared.queue(&lines, &shared.answer_room, answer) {
                        return;
                    }
                }
            }
            // Some servers write their log to standard output.
            None => {}
        }
    }
}

/// Waits for the process. A server that closed its output has ended, whatever it still does.
async fn wait(child: &mut Child, group: Option<Pid>) -> Option<ExitStatus> {
    for signal in [Signal::TERM, Signal::KILL] {
        if let Ok(status) = timeout(GRACE, child.wait()).await {
            return status.ok();
        }
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
    }
    child.wait().await.ok()
}

async fn read_log(stderr: impl AsyncRead + Unpin, shared: Arc<Shared>, log: ServerLog) {
    let mut from = BoundedLines::new(stderr, LOG_LINE_MAX);
    while let Some(line) = from.next().await {
        let line = line.unwrap_or_else(|| b"(a line that is too long)".to_vec());
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        log(&line);
        let mut tail = lock_ignoring_poison(&shared.tail);
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
}

/// Lines of at most this many bytes.
struct BoundedLines<R> {
    from: BufReader<R>,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    fn new(from: R, bytes_max: usize) -> Self {
        Self { from: BufReader::new(from), bytes_max }
    }

    /// The next line without its line break; `Some(None)` for one that is too long.
    async fn next(&mut self) -> Option<Option<Vec<u8>>> {
        let (mut line, mut is_too_long) = (Vec::new(), false);
        loop {
            // A read error counts as the end.
            let bytes = self.from.fill_buf().await.unwrap_or_default();
            if bytes.is_empty() {
                let has_rest = !line.is_empty() || is_too_long;
                return has_rest.then(|| (!is_too_long).then_some(line));
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            is_too_long |= line.len() + piece.len() > self.bytes_max;
            if is_too_long {
                line = Vec::new();
            } else {
                line.extend_from_slice(piece);
            }
            let used = end.map_or(bytes.len(), |end| end + 1);
            self.from.consume(used);
            if end.is_some() {
                return Some((!is_too_long).then_some(line));
            }
        }
    }
}
