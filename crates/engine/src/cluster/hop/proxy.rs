//! For tests: a proxy between two processes whose link can be cut, made slow, or lose what is sent.
//!
//! It knows nothing of what passes, so it also stands between a node and its database.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How much is passed on at a time.
const PIECE_BYTES: usize = 64 << 10;
/// How long the target may go on after its connection was cut, so that it handles what it has got.
const TARGET_DRAIN: Duration = Duration::from_secs(5);
/// How long a connection to the target may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Which bytes a black hole swallows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToTarget,
    FromTarget,
    Both,
}

/// A TCP proxy on 127.0.0.1 in front of an address. Has a thread of its own; ends when dropped.
#[derive(Debug)]
pub struct LinkProxy {
    address: SocketAddr,
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Control {
    target: Mutex<String>,
    state: watch::Sender<LinkState>,
    stopped: AtomicBool,
}

#[derive(Clone, Debug, Default)]
struct LinkState {
    is_cut: bool,
    swallowed: Option<Direction>,
    delay: Duration,
    /// The link is cut after so many bytes to the target.
    bytes_left: Option<u64>,
    /// The link is cut when the target answers what it gets from now on.
    next_request: Option<RequestState>,
    /// Raised each time all connections are to end.
    generation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    Awaited,
    /// The connection with this number has sent it.
    SentBy(u64),
}

impl LinkState {
    fn cut(&mut self) {
        let generation = self.generation + 1;
        *self = Self { is_cut: true, generation, ..Self::default() };
    }

    fn swallows(&self, direction: Direction) -> bool {
        self.swallowed.is_some_and(|swallowed| [direction, Direction::Both].contains(&swallowed))
    }
}

impl LinkProxy {
    /// Passes connections on to `target` (host and port).
    pub fn start(target: impl Into<String>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let control = Arc::new(Control {
            target: Mutex::new(target.into()),
            state: watch::Sender::new(LinkState::default()),
            stopped: AtomicBool::new(false),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = control.clone();
        let serve = move || runtime.block_on(accept(shared, listener));
        let thread = std::thread::Builder::new().name("link-proxy".into()).spawn(serve)?;
        Ok(Self { address, control, thread: Some(thread) })
    }

    /// Where to connect instead of to the target.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes new connections on to another address, for a target that was started again.
    pub fn set_target(&self, target: impl Into<String>) {
        *self.control.target.lock() = target.into();
    }

    /// Closes all connections, and every new one at once, until the link is healed.
    pub fn cut(&self) {
        self.control.state.send_modify(LinkState::cut);
    }

    /// Whether the link is cut, by hand or by one of the conditions.
    pub fn is_cut(&self) -> bool {
        self.control.state.borrow().is_cut
    }

    /// Waits until the link is cut.
    pub async fn wait_until_cut(&self) {
        let mut state = self.control.state.subscribe();
        // The sender is in `self`, so it is not dropped meanwhile.
        let _ = state.wait_for(|state| state.is_cut).await;
    }

    /// Swallows bytes while connections stay open, also new ones.
    pub fn black_hole(&self, direction: Direction) {
        self.control.state.send_modify(|state| state.swallowed = Some(direction));
    }

    /// Holds every piece of up to 64 KB back for this long, in each direction.
    pub fn delay(&self, delay: Duration) {
        self.control.state.send_modify(|state| state.delay = delay);
    }

    /// Cuts the link when so many more bytes were passed on to the target, by all connections.
    pub fn cut_after_bytes(&self, bytes: u64) {
        self.control.state.send_modify(|state| state.bytes_left = Some(bytes));
    }

    /// Cuts the link when the target begins to answer what it is sent from now on. The answer is
    /// lost, and the target handles everything that was passed on to it.
    pub fn cut_after_next_request(&self) {
        self.control.state.send_modify(|state| state.next_request = Some(RequestState::Awaited));
    }

    /// Passes everything on again. Connections that lost bytes are closed.
    pub fn heal(&self) {
        self.control.state.send_modify(|state| {
            let generation = state.generation;
            *state = LinkState { generation, ..LinkState::default() };
        });
    }
}

impl Drop for LinkProxy {
    fn drop(&mut self) {
        self.control.stopped.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the thread if it waits for a connection.
        let _ = std::net::TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(control: Arc<Control>, listener: TcpListener) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let mut links = JoinSet::new();
    let mut number = 0;
    while !control.stopped.load(Ordering::SeqCst) {
        if let Ok((client, _)) = listener.accept().await
            && !control.state.borrow().is_cut
        {
            number += 1;
            links.spawn(pass_on(control.clone(), client, number));
        }
        while links.try_join_next().is_some() {}
    }
}

/// One connection through the proxy, and in which directions it has lost bytes.
struct Link {
    control: Arc<Control>,
    number: u64,
    lost_to_target: AtomicBool,
    lost_from_target: AtomicBool,
}

/// Passes a connection on until either side or the proxy ends it.
async fn pass_on(control: Arc<Control>, client: TcpStream, number: u64) {
    let mut state = control.state.subscribe();
    let generation = state.borrow().generation;
    let address = control.target.lock().clone();
    let Ok(Ok(target)) = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await else {
        return;
    };
    // Pieces are passed on as they come.
    let _ = (client.set_nodelay(true), target.set_nodelay(true));
    let (client_input, client_output) = client.into_split();
    let (mut target_input, mut target_output) = target.into_split();
    let lost = || AtomicBool::new(false);
    let link = Link { control, number, lost_to_target: lost(), lost_from_target: lost() };
    let has_ended = |state: &LinkState| state.generation != generation || link.is_broken(state);
    tokio::select! {
        _ = async {
            tokio::try_join!(
                link.pump(Direction::ToTarget, client_input, &mut target_output),
                link.pump(Direction::FromTarget, &mut target_input, client_output),
            )
        } => return,
        _ = state.wait_for(has_ended) => {}
    }
    // A socket that is closed with unread input is reset, and then the target could lose what it has
    // got but not read. So only one direction ends, and the answers are dropped.
    let _ = target_output.shutdown().await;
    let mut piece = vec![0; PIECE_BYTES];
    let drain = async { while target_input.read(&mut piece).await.is_ok_and(|n| n > 0) {} };
    let _ = timeout(TARGET_DRAIN, drain).await;
}

impl Link {
    fn lost(&self, direction: Direction) -> &AtomicBool {
        match direction {
            Direction::FromTarget => &self.lost_from_target,
            Direction::ToTarget | Direction::Both => &self.lost_to_target,
        }
    }

    /// Whether bytes would be passed on after some were lost.
    fn is_broken(&self, state: &LinkState) -> bool {
        [Direction::ToTarget, Direction::FromTarget].into_iter().any(|direction| {
            self.lost(direction).load(Ordering::SeqCst) && !state.swallows(direction)
        })
    }

    /// Passes one direction on until it ends.
    async fn pump(
        &self,
        direction: Direction,
        mut input: impl AsyncRead + Unpin,
        mut output: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = input.read(&mut piece).await;
            let delay = self.control.state.borrow().delay;
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            if self.control.state.borrow().swallows(direction) {
                self.lost(direction).store(true, Ordering::SeqCst);
                match read {
                    Ok(1..) => continue,
                    // The end is swallowed, too.
                    Ok(0) | Err(_) => std::future::pending().await,
                }
            }
            let length = read?;
            if length == 0 {
                return output.shutdown().await;
            }
            let (allowed, then_cut) = self.admit(direction, length);
            output.write_all(&piece[..allowed]).await?;
            if then_cut {
                self.control.state.send_modify(LinkState::cut);
                std::future::pending::<()>().await;
            }
        }
    }

    /// How many of these bytes are passed on, and whether the link is cut then.
    fn admit(&self, direction: Direction, length: usize) -> (usize, bool) {
        let (mut allowed, mut then_cut) = (length, false);
        self.control.state.send_if_modified(|state| {
            if direction == Direction::FromTarget {
                if state.next_request == Some(RequestState::SentBy(self.number)) {
                    (allowed, then_cut) = (0, true);
                }
                return false;
            }
            if state.next_request == Some(RequestState::Awaited) {
                state.next_request = Some(RequestState::SentBy(self.number));
            }
            if let Some(left) = &mut state.bytes_left {
                allowed = length.min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= allowed as u64;
                then_cut = *left == 0;
            }
            false
        });
        (allowed, then_cut)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    /// Answers every line with the line, and reports all that it reads.
    fn echo() -> (SocketAddr, std::sync::mpsc::Receiver<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, received) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for mut socket in listener.incoming().flatten() {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    let (mut line, mut byte) = (Vec::new(), [0]);
                    while let Ok(1) = socket.read(&mut byte) {
                        line.push(byte[0]);
                        if byte == *b"\n" {
                            let _ = sender.send(line.clone());
                            let _ = socket.write_all(&line);
                            line.clear();
                        }
                    }
                    let _ = sender.send(line);
                });
            }
        });
        (address, received)
    }

    fn connect(proxy: &LinkProxy) -> TcpStream {
        let socket = TcpStream::connect(proxy.address()).expect("the proxy listens");
        socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout can be set");
        socket
    }

    fn exchange(socket: &mut TcpStream, line: &[u8]) -> io::Result<Vec<u8>> {
        socket.write_all(line)?;
        let mut answer = vec![0; line.len()];
        socket.read_exact(&mut answer).map(|()| answer)
    }

    fn is_timeout(result: &io::Result<Vec<u8>>) -> bool {
        let kinds = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        result.as_ref().is_err_and(|error| kinds.contains(&error.kind()))
    }

    #[test]
    fn a_cut_link_closes_all_connections_and_a_healed_one_takes_new_ones() {
        let (address, _received) = echo();
        let proxy = LinkProxy::start(address.to_string()).expect("it starts");
        let mut socket = connect(&proxy);
        assert_eq!(exchange(&mut socket, b"one\n").expect("an answer"), b"one\n");
        proxy.cut();
        let after = exchange(&mut socket, b"two\n");
        assert!(after.is_err() && !is_timeout(&after), "{after:?}");
        let while_cut = exchange(&mut connect(&proxy), b"three\n");
        assert!(while_cut.is_err() && !is_timeout(&while_cut), "{while_cut:?}");
        proxy.heal();
        assert_eq!(exchange(&mut connect(&proxy), b"four\n").expect("an answer"), b"four\n");
    }

    #[test]
    fn a_black_hole_swallows_one_direction_or_both_and_keeps_connections_open() {
        for direction in [Direction::ToTarget, Direction::FromTarget, Direction::Both] {
            let (address, received) = echo();
            let proxy = LinkProxy::start(address.to_string()).expect("it starts");
            let mut socket = connect(&proxy);
            assert_eq!(exchange(&mut socket, b"one\n").expect("an answer"), b"one\n");
            proxy.black_hole(direction);
            assert!(is_timeout(&exchange(&mut socket, b"two\n")), "{direction:?}");
            assert!(is_timeout(&exchange(&mut connect(&proxy), b"three\n")), "{direction:?}");
            let arrived = received.try_iter().filter(|line| line.len() > 3).count();
            assert_eq!(arrived, if direction == Direction::FromTarget { 3 } else { 1 });
            proxy.heal();
            let after = exchange(&mut socket, b"four\n");
            assert!(after.is_err() && !is_timeout(&after), "it has lost bytes: {after:?}");
            assert!(exchange(&mut connect(&proxy), b"five\n").is_ok());
        }
    }

    #[test]
    fn a_slow_link_delays_both_directions() {
        let (address, _received) = echo();
        let proxy = LinkProxy::start(address.to_string()).expect("it starts");
        proxy.delay(Duration::from_millis(40));
        let began = std::time::Instant::now();
        assert!(exchange(&mut connect(&proxy), b"one\n").is_ok());
        assert!(began.elapsed() >= Duration::from_millis(80));
    }

    #[test]
    fn a_link_is_cut_after_the_given_bytes() {
        let (address, received) = echo();
        let proxy = LinkProxy::start(address.to_string()).expect("it starts");
        proxy.cut_after_bytes(6);
        assert!(exchange(&mut connect(&proxy), b"one\ntwo\n").is_err());
        let wait = Duration::from_secs(5);
        assert_eq!(received.recv_timeout(wait).expect("the first line"), b"one\n");
        assert_eq!(received.recv_timeout(wait).expect("a part"), b"tw");
        assert!(proxy.is_cut());
    }

    #[test]
    fn a_request_arrives_whose_answer_is_cut() {
        let (address, received) = echo();
        let proxy = LinkProxy::start(address.to_string()).expect("it starts");
        let (mut socket, mut other) = (connect(&proxy), connect(&proxy));
        assert!(exchange(&mut socket, b"one\n").is_ok());
        assert!(exchange(&mut other, b"two\n").is_ok());
        proxy.cut_after_next_request();
        let lost = exchange(&mut socket, b"three\n");
        assert!(lost.is_err() && !is_timeout(&lost), "{lost:?}");
        assert!(proxy.is_cut());
        assert!(exchange(&mut other, b"four\n").is_err());
        let wait = Duration::from_secs(5);
        for line in [&b"one\n"[..], b"two\n", b"three\n"] {
            assert_eq!(received.recv_timeout(wait).expect("a line"), line);
        }
    }
}
