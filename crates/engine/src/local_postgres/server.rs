//! One PostgreSQL server as a process, with its own data directory.
//!
//! A shell supervises it and reads orders from a pipe. The pipe closes when our process ends in any
//! way; then the shell stops the server and, if they are temporary, removes its files.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::folders::give_to;
use super::{Folders, LocalPostgresError, Programs, command};

/// The superuser of every server.
pub const USER: &str = "rialto";
/// How long a server may take until it accepts connections, with recovery after a crash, on a busy
/// machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How often that is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// How much of the log an error shows.
const LOG_LINES_MAX: usize = 30;
/// The port of a server that is reached by its socket only; it is just a part of the socket's name.
const SOCKET_PORT: u16 = 5432;

/// Prints the process id of the server after each start. A line on standard input is the signal
/// to stop it with, the next line starts it again. Ignored signals: only the end of our process
/// ends this. A stopped (paused) process gets no other signal before `CONT`. At the end, folders
/// that are not temporary get time for a clean stop.
const SUPERVISOR: &str = r#"
trap '' HUP INT TERM PIPE
temporary=$1 data=$2 sockets=$3 log=$4
shift 4
while :; do
    "$@" </dev/null >>"$log" 2>&1 &
    server=$!
    echo "$server"
    read -r signal || break
    kill -"$signal" "$server"
    kill -CONT "$server"
    wait "$server"
    server=
    echo stopped
    read -r start || break
done
if [ -n "$server" ]; then
    if [ "$temporary" = yes ]; then kill -QUIT "$server"; else kill -INT "$server"; fi
    kill -CONT "$server"
    wait "$server"
fi
if [ "$temporary" = yes ]; then rm -rf "$data" "$sockets"; fi
"#;

/// Where a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// On a Unix socket.
    Socket,
    /// Also on loopback, at this port.
    Loopback(u16),
}

/// A server. Dropping it stops it, and removes its files if they are temporary.
#[derive(Debug)]
pub struct Server {
    pub programs: Programs,
    folders: Folders,
    listen: Listen,
    pub password: String,
    /// More environment of the server's processes.
    pub env: Vec<(String, String)>,
    is_temporary: bool,
    supervisor: Mutex<Option<Supervisor>>,
}

#[derive(Debug)]
struct Supervisor {
    shell: Child,
    orders: ChildStdin,
    replies: BufReader<ChildStdout>,
    /// The process of the server while it runs.
    server: Option<u32>,
}

impl Server {
    /// A server that does not run yet. Temporary ones are removed when they stop, and do not sync
    /// the files of an empty database.
    pub fn new(
        programs: Programs,
        folders: Folders,
        listen: Listen,
        password: String,
        is_temporary: bool,
    ) -> Self {
        let supervisor = Mutex::new(None);
        Self { programs, folders, listen, password, env: Vec::new(), is_temporary, supervisor }
    }

    /// Whether the data directory has a database.
    pub fn is_initialized(&self) -> bool {
        self.data().join("PG_VERSION").exists()
    }

    /// Creates an empty database with these settings.
    pub fn initialize(
        &self,
        settings: &[(impl AsRef<str>, impl AsRef<str>)],
    ) -> Result<(), LocalPostgresError> {
        let password_file = self.folders.server.join("password");
        fs::write(&password_file, &self.password).map_err(io_error_at(&password_file))?;
        give_to(self.programs.account, &password_file)?;
        let mut initdb = self.programs.command("initdb");
        initdb.arg("--pgdata").arg(self.data()).arg("--pwfile").arg(&password_file);
        initdb.args(["--username", USER, "--encoding=UTF8", "--locale=C", "--data-checksums"]);
        if self.is_temporary {
            initdb.arg("--no-sync");
        }
        run(initdb.args(["--auth-local=trust", "--auth-host=scram-sha-256"]))?;
        let text: String = settings
            .iter()
            .map(|(name, value)| format!("{} = {}\n", name.as_ref(), quoted(value.as_ref())))
            .collect();
        let path = self.data().join("postgresql.conf");
        let file = OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(io_error_at(&path))
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.folders.server.join("data")
    }

    /// The folder of the Unix socket.
    pub fn sockets(&self) -> &Path {
        &self.folders.sockets
    }

    /// Part of the socket's name too.
    pub fn port(&self) -> u16 {
        match self.listen {
            Listen::Socket => SOCKET_PORT,
            Listen::Loopback(port) => port,
        }
    }

    /// The URL of the Unix socket.
    pub fn url(&self) -> String {
        let (sockets, port) = (self.sockets().display(), self.port());
        format!("postgresql:///postgres?host={sockets}&port={port}&user={USER}")
    }

    /// Whether the process of the server has ended without being stopped.
    pub fn has_ended(&self) -> bool {
        // The shell waits for it only when it is told to.
        self.process().and_then(process_entry).is_some_and(|entry| entry.state == 'Z')
    }

    /// The process of the server, if it was started and not stopped.
    pub fn process(&self) -> Option<u32> {
        self.supervisor.lock().as_ref().and_then(|supervisor| supervisor.server)
    }

    /// Starts the server unless it runs, and waits until it accepts connections.
    pub fn start(&self) -> Result<(), LocalPostgresError> {
        let process = {
            let mut slot = self.supervisor.lock();
            let supervisor = match &mut *slot {
                Some(supervisor) => supervisor,
                none => none.insert(self.supervise()?),
            };
            if let Some(process) = supervisor.server {
                process
            } else {
                supervisor.send("start")?;
                let process = supervisor.read_process()?;
                *supervisor.server.insert(process)
            }
        };
        self.wait_until_ready(process)
    }

    /// Stops the server with a signal and waits until it has ended. Does nothing if it has.
    pub fn stop(&self, signal: &str) -> Result<(), LocalPostgresError> {
        if let Some(supervisor) = self.supervisor.lock().as_mut()
            && supervisor.server.take().is_some()
        {
            supervisor.send(signal)?;
            supervisor.reply()?;
        }
        Ok(())
    }

    fn supervise(&self) -> Result<Supervisor, LocalPostgresError> {
        let listen = match self.listen {
            Listen::Socket => "",
            Listen::Loopback(_) => "127.0.0.1",
        };
        let mut shell = self.programs.as_account(command("sh"));
        shell.args(["-c", SUPERVISOR, "sh", if self.is_temporary { "yes" } else { "no" }]);
        shell.arg(&self.folders.server).arg(self.sockets()).arg(self.log());
        // On the command line, so that a standby does not inherit them with the settings.
        shell.arg(self.programs.path("postgres")).arg("-D").arg(self.data());
        shell.arg("-k").arg(self.sockets()).args(["-p", &self.port().to_string()]);
        shell.args(["-c", &format!("listen_addresses={listen}")]);
        shell.envs(self.env.iter().map(|(name, value)| (name, value)));
        // Ctrl-C ends our process; the shell then stops the server in its own way.
        shell.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = shell.spawn().map_err(io_error_at(Path::new("sh")))?;
        let orders = shell.stdin.take().expect("it is piped");
        let replies = BufReader::new(shell.stdout.take().expect("it is piped"));
        let mut supervisor = Supervisor { shell, orders, replies, server: None };
        supervisor.server = Some(supervisor.read_process()?);
        Ok(supervisor)
    }

    fn log(&self) -> PathBuf {
        self.folders.server.join("log")
    }

    fn wait_until_ready(&self, process: u32) -> Result<(), LocalPostgresError> {
        let deadline = Instant::now() + START_TIMEOUT;
        while !self.is_ready(process) {
            let has_ended = process_entry(process).is_some_and(|entry| entry.state == 'Z');
            if has_ended || Instant::now() > deadline {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let end = &lines[lines.len().saturating_sub(LOG_LINES_MAX)..];
                return Err(LocalPostgresError::NotStarted(end.join("\n")));
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
        Ok(())
    }

    /// Reads what `pg_ctl` reads: the first line is the process, the eighth its status.
    fn is_ready(&self, process: u32) -> bool {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let mut lines = file.lines();
        lines.next() == Some(&process.to_string())
            && lines.nth(6).is_some_and(|status| status.trim() == "ready")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match self.supervisor.get_mut().take() {
            Some(Supervisor { mut shell, orders, .. }) => {
                drop(orders);
                let _ = shell.wait();
            }
            // It never ran: `initdb` failed.
            None if self.is_temporary => self.folders.remove(),
            None => {}
        }
    }
}

impl Supervisor {
    fn send(&mut self, order: &str) -> Result<(), LocalPostgresError> {
        writeln!(self.orders, "{order}").map_err(io_error_at(Path::new("sh")))
    }

    fn reply(&mut self) -> Result<String, LocalPostgresError> {
        let mut line = String::new();
        self.replies.read_line(&mut line).map_err(io_error_at(Path::new("sh")))?;
        Ok(line.trim_end().to_owned())
    }

    fn read_process(&mut self) -> Result<u32, LocalPostgresError> {
        let reply = self.reply()?;
        reply.parse().map_err(|_| LocalPostgresError::Program {
            program: "sh".to_owned(),
            message: format!("{reply:?} is not a process"),
        })
    }
}

fn io_error_at(path: &Path) -> impl FnOnce(io::Error) -> LocalPostgresError {
    let path = path.to_owned();
    move |source| LocalPostgresError::Io { path, source }
}

/// A line of the process table.
#[derive(Debug)]
pub struct ProcessEntry {
    /// As in `/proc`: `Z` has ended, `T` is stopped.
    pub state: char,
    pub parent: u32,
}

/// The entry of a process, where `/proc` exists.
pub fn process_entry(process: u32) -> Option<ProcessEntry> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in parentheses and may contain anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some(ProcessEntry {
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
    })
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Result<(), LocalPostgresError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(io_error_at(Path::new(&program)))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LocalPostgresError::Program { program, message })
}

/// A string as SQL and the settings file have it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
