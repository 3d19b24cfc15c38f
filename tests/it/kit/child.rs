//! Child processes with a time limit: one that hangs is killed, and its output so far is reported.

use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Enough to install a package on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(240);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(1);

/// Runs a command to its end, as `Command::output` does.
#[track_caller]
pub fn output(command: &mut Command) -> std::io::Result<Output> {
    output_given(command, "")
}

/// The same with this input.
#[track_caller]
pub fn output_given(command: &mut Command, input: &str) -> std::io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (out, err) = (Heard::of(child.stdout.take()), Heard::of(child.stderr.take()));
    let (mut stdin, input) = (child.stdin.take().expect("a pipe"), input.as_bytes().to_vec());
    // A child that does not read its input must not block the test.
    std::thread::spawn(move || stdin.write_all(&input));
    let until = Instant::now() + TIME_LIMIT;
    loop {
        // A grandchild may still hold the pipes.
        let over = out.is_over() && err.is_over();
        if let Some(status) = child.try_wait()?.filter(|_| over) {
            return Ok(Output { status, stdout: out.bytes(), stderr: err.bytes() });
        }
        if Instant::now() >= until {
            let said = [out.bytes(), err.bytes()].concat();
            give_up(&mut child, &String::from_utf8_lossy(&said));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Waits until a process has ended.
#[track_caller]
pub fn ended(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + TIME_LIMIT;
    loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return status;
        }
        if Instant::now() >= until {
            give_up(child, "its output is not captured");
        }
        std::thread::sleep(PAUSE);
    }
}

#[track_caller]
fn give_up(child: &mut Child, said: &str) -> ! {
    let _ = child.kill();
    let _ = child.wait();
    panic!("a process did not end within {TIME_LIMIT:?}: {said}");
}

/// The output of a pipe so far.
struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
    reading: JoinHandle<()>,
}

impl Heard {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let (mut pipe, bytes) = (pipe.expect("a pipe"), Arc::<Mutex<Vec<u8>>>::default());
        let kept = Arc::clone(&bytes);
        let reading = std::thread::spawn(move || {
            let mut part = [0; 8_192];
            while let Ok(length @ 1..) = pipe.read(&mut part) {
                kept.lock().expect("no panic").extend_from_slice(&part[..length]);
            }
        });
        Self { bytes, reading }
    }

    fn is_over(&self) -> bool {
        self.reading.is_finished()
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().expect("no panic").clone()
    }
}
