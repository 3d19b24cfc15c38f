//! One node: a real `rialto serve` process at addresses that it keeps over restarts.

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rialto_core::encoding::BATCH_VERSION;
use rialto_engine::random::{OsRandom, RandomSource};
use rustix::process::{Pid, Signal, kill_process};

/// Environment variable: another hub binary than the one that was built with the tests.
const BINARY: &str = "RIALTO_CLUSTER_BINARY";
/// Ports that the system gives to nobody who asks for any port, so that they stay free while a node
/// is down.
const PORTS: std::ops::Range<u64> = 11_000..24_000;
/// How long a node may take to stop, however busy the machine is.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// How much of a log is shown.
const LOG_TAIL_BYTES: usize = 12_000;

/// How a node is started.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub arguments: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// A node that can be killed, paused, stopped and started again.
#[derive(Debug)]
pub struct Node {
    pub number: usize,
    pub url: String,
    options: NodeOptions,
    log: PathBuf,
    child: Mutex<Option<Child>>,
    /// How many versions it is ahead of this program.
    version: AtomicU8,
}

/// A free address on loopback. No client of another test connects from it.
pub fn free_address(host: u8) -> SocketAddr {
    let random = || OsRandom.new_uuid().as_u64_pair().1;
    let address = (0..100).find_map(|_| {
        let port = PORTS.start + random() % (PORTS.end - PORTS.start);
        let address = SocketAddr::from((Ipv4Addr::new(127, 0, 3, host), port as u16));
        TcpListener::bind(address).ok().map(|_| address)
    });
    address.expect("loopback has free ports")
}

/// The hub binary under test.
pub fn binary() -> PathBuf {
    std::env::var_os(BINARY).map_or_else(|| env!("CARGO_BIN_EXE_rialto").into(), PathBuf::from)
}

/// Where the threads of a process are, if there is a debugger.
fn stacks_of(process: u32) -> String {
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-ex", "thread apply all bt 14", "-p", &process.to_string()]);
    let stacks = gdb.stdin(Stdio::null()).output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&stacks).into_owned()
}

impl Node {
    /// A node that is not started yet.
    pub fn new(number: usize, address: SocketAddr, options: NodeOptions, folder: &Path) -> Self {
        let log = folder.join(format!("node-{number}.log"));
        let mut options = options;
        options.arguments.splice(0..0, ["--listen".to_owned(), address.to_string()]);
        let url = format!("http://{address}");
        Self { number, url, options, log, child: Mutex::default(), version: AtomicU8::new(0) }
    }

    /// How many versions the process is ahead of this program, from its next start on.
    pub fn set_version(&self, version: u8) {
        self.version.store(version, Ordering::SeqCst);
    }

    pub fn version(&self) -> u8 {
        self.version.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().expect("no panic while a node is changed")
    }

    /// Starts the process and does not wait for it.
    pub fn start(&self) {
        let mut running = self.lock();
        assert!(running.is_none(), "node {} runs already", self.number);
        let log = OpenOptions::new().create(true).append(true).open(&self.log).expect("a log file");
        let mut command = Command::new(binary());
        command.arg("serve").args(&self.options.arguments);
        // The settings of whoever runs the tests are not those of the node.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("RIALTO_") && name != "RIALTO_TEST_ALLOW_FSYNC_OFF" {
                command.env_remove(name);
            }
        }
        command.envs(self.options.env.iter().map(|(name, value)| (name, value)));
        command.env("RIALTO_TEST_NEXT_FORMAT", self.version().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        *running = Some(command.spawn().expect("the binary starts"));
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(&self) {
        if let Some(mut child) = self.lock().take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
        }
    }

    /// Sends SIGTERM and waits for the end; `None` if it does not run. One that does not end is
    /// aborted, so that its log shows the last it did.
    pub fn stop(&self) -> Option<ExitStatus> {
        self.resume();
        let mut child = self.lock().take()?;
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::TERM).expect("it is not waited for yet");
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = child.try_wait().expect("it can be waited for") {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let stacks = stacks_of(child.id());
        let _ = kill_process(pid, Signal::KILL);
        let status = child.wait().expect("it ends");
        println!(
            "node {} did not stop within {STOP_TIMEOUT:?}\n{stacks}\n{}",
            self.number,
            self.log_tail()
        );
        Some(status)
    }

    /// Sends SIGSTOP.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Sends SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(child) = &*self.lock() {
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    pub fn is_running(&self) -> bool {
        self.lock().is_some()
    }

    /// How the process has ended by itself, if it has.
    pub fn take_exit(&self) -> Option<ExitStatus> {
        let mut running = self.lock();
        let status = running.as_mut()?.try_wait().expect("it can be waited for")?;
        *running = None;
        Some(status)
    }

    /// What the process has logged that was started last.
    fn last_log(&self) -> String {
        let log = self.log_text();
        log.rsplit("\"configuration loaded\"").next().unwrap_or_default().to_owned()
    }

    /// Whether the process that was started last has served anything.
    pub fn has_served(&self) -> bool {
        self.last_log().contains("\"hub started\"")
    }

    /// Whether it has not started because the log lacks what it has seen before.
    pub fn refused_place(&self) -> bool {
        self.last_log().contains("before it stopped, and the log has")
    }

    /// Whether the process that was started last has ended because of a format that it does not know,
    /// and has named that and the newest one it knows.
    pub fn refused_format(&self) -> bool {
        let known = BATCH_VERSION + self.version();
        self.last_log().lines().any(|line| {
            let formats = line.split_once("batches have format ").map(|(_, rest)| rest);
            let formats = formats.and_then(|rest| rest.split_once(", and this program knows "));
            formats.is_some_and(|(found, rest)| {
                found.parse().is_ok_and(|found: u8| found > known)
                    && rest.starts_with(&format!("{known}: use a newer rialto"))
            })
        })
    }

    /// Resident memory in KiB; `None` if it does not run.
    pub fn resident_kib(&self) -> Option<u64> {
        let pid = self.lock().as_ref()?.id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// The end of what it has logged.
    pub fn log_tail(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(LOG_TAIL_BYTES)..];
        String::from_utf8_lossy(tail).into_owned()
    }

    /// Everything that it has logged.
    pub fn log_text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Writes a line into its log, to find a moment there.
    pub fn mark_log(&self, text: &str) {
        use std::io::Write;
        let file: Option<File> = OpenOptions::new().append(true).open(&self.log).ok();
        let _ = file.map(|mut file| writeln!(file, "---- {text}"));
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Ok(Some(child)) = self.child.get_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
