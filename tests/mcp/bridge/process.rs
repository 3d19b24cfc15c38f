//! A client of `rialto mcp`, which writes and reads exactly the lines it wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a message may take.
const MESSAGE_TIME_MAX: Duration = Duration::from_secs(60);

/// The bridge and its pipes. It is killed when dropped.
pub struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Arc<Mutex<String>>,
    reading_errors: Option<JoinHandle<()>>,
    last_id: u64,
}

/// A program that runs as a client starts it: with a home of its own, and no variable of this machine.
pub fn isolated(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("RIALTO_") {
            command.env_remove(name);
        }
    }
    command.env("RIALTO_HOME", home);
    command
}

impl Bridge {
    /// `rialto mcp` for a hub, with these arguments and variables.
    pub fn start(hub: &str, home: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = isolated(home);
        command.arg("mcp").args(arguments).env("RIALTO_HUB", hub).envs(env.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let input = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let errors = Arc::<Mutex<String>>::default();
        let (kept, mut stderr) = (errors.clone(), child.stderr.take().expect("a pipe"));
        let reading_errors = std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut part) {
                kept.lock().expect("no panic").push_str(&String::from_utf8_lossy(&part[..length]));
            }
        });
        Self { child, input, lines, errors, reading_errors: Some(reading_errors), last_id: 0 }
    }

    /// The bridge of an agent with this key.
    pub fn with_key(hub: &str, home: &Path, key: &str) -> Self {
        Self::start(hub, home, &[], &[("RIALTO_KEY", key)])
    }

    /// Writes a line as it stands.
    pub fn write(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(format!("{line}\n").as_bytes()).expect("it reads");
    }

    pub fn send(&mut self, message: &Value) {
        self.write(&message.to_string());
    }

    /// Writes a request with the next number as its id, and returns the id.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// The next line.
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(MESSAGE_TIME_MAX) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no message; it said {}", self.errors()),
            Err(RecvTimeoutError::Disconnected) => panic!("it ended; it said {}", self.errors()),
        }
    }

    /// The next message. Every line of standard output is one.
    pub fn next(&mut self) -> Value {
        let line = self.line();
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// The next message, unless none comes in this time.
    pub fn next_within(&mut self, time: Duration) -> Option<Value> {
        let line = self.lines.recv_timeout(time).ok()?;
        Some(serde_json::from_str(&line).expect("JSON"))
    }

    /// Messages up to the response with this id, which is the last one.
    pub fn messages(&mut self, id: u64) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.next();
            let is_response = message["id"] == id && message.get("method").is_none();
            messages.push(message);
            if is_response {
                return messages;
            }
        }
    }

    pub fn response(&mut self, id: u64) -> Value {
        self.messages(id).pop().expect("the response")
    }

    /// The result of a request that succeeds.
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let mut response = self.response(id);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].take()
    }

    /// The code of an error.
    pub fn error(&mut self, method: &str, params: Value) -> (i64, Value) {
        let id = self.request(method, params);
        let mut response = self.response(id);
        let code = response["error"]["code"].as_i64();
        (code.unwrap_or_else(|| panic!("{method}: {response}")), response["error"].take())
    }

    /// Opens the session as a client of the old era.
    pub fn open(&mut self, version: &str, capabilities: Value) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client});
        let opened = self.result("initialize", params);
        self.notify("notifications/initialized", json!({}));
        opened
    }

    /// The result of a tool.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The structured content of a tool that succeeds.
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        result["structuredContent"].take()
    }

    /// The text of a tool that fails with this code.
    pub fn fail(&mut self, tool: &str, arguments: Value, code: &str) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert_eq!(result["_meta"]["rialto/error"]["code"], code, "{result}");
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Closes standard input.
    pub fn close(&mut self) {
        self.input = None;
    }

    #[cfg(unix)]
    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    }

    /// The exit status, and how long it took to come.
    pub fn ended(&mut self) -> (ExitStatus, Duration) {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return (status, begun.elapsed());
            }
            assert!(begun.elapsed() < MESSAGE_TIME_MAX, "it does not end: {}", self.errors());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What it wrote on standard error so far.
    pub fn errors(&self) -> String {
        self.errors.lock().expect("no panic").clone()
    }

    /// All of standard error, once it ended.
    pub fn all_errors(&mut self) -> String {
        self.close();
        self.ended();
        if let Some(reading) = self.reading_errors.take() {
            reading.join().expect("no panic");
        }
        self.errors()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
