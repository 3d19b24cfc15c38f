//! The steps of `cargo xtask test`: what each of them runs, and its result.
//!
//! A step that fails does not stop the next one: one run reports everything that is wrong.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::borders;
use crate::tally::{Tally, tells_of_skipped_test};
use crate::watch::{TIME_LIMIT, Watch};
use crate::words;

/// How long standard error of a run that has ended is read on.
const PIPE_TIMEOUT: Duration = Duration::from_secs(2);

/// One part of the whole check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The code is formatted.
    Fmt,
    /// Every crate depends only on what it may.
    Borders,
    /// No identifier uses a retired word.
    Words,
    /// No lint fires.
    Clippy,
    /// All tests.
    Tests,
    /// Millions of simulated operations.
    Sim,
    /// The documentation builds.
    Docs,
}

/// The result of one step.
struct Verdict {
    step: Step,
    good: bool,
    took: Duration,
    tally: Tally,
}

/// The results of all steps. Its text is the end of the output.
pub struct Summary(Vec<Verdict>);

impl Step {
    /// Quick steps come first, so that simple mistakes are reported early.
    pub const ALL: [Self; 7] =
        [Self::Fmt, Self::Borders, Self::Words, Self::Clippy, Self::Tests, Self::Sim, Self::Docs];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Borders => "borders",
            Self::Words => "words",
            Self::Clippy => "clippy",
            Self::Tests => "tests",
            Self::Sim => "sim",
            Self::Docs => "docs",
        }
    }

    /// The step with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }

    fn run(self) -> Verdict {
        println!("\n── {} ──", self.name());
        let started = Instant::now();
        let mut tally = Tally::default();
        let good = match self {
            Self::Fmt => succeeds(cargo().args(["fmt", "--all", "--check"])),
            Self::Borders => borders::check(),
            Self::Words => words::check(),
            Self::Clippy => succeeds(cargo().args([
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ])),
            Self::Tests => {
                let mut tests = cargo();
                at_once(tests.args(["test", "--workspace", "--no-fail-fast"]));
                // The databases of tests need not survive a power cut. The store of a debug build
                // accepts such a database only with this.
                tests.env("RIALTO_TEST_ALLOW_FSYNC_OFF", "1");
                built_and_counted(&tests, &[], &mut tally)
            }
            Self::Sim => built_and_counted(&simulation(), &["--", "--nocapture"], &mut tally),
            Self::Docs => succeeds(
                cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-Dwarnings"),
            ),
        };
        Verdict { step: self, good, took: started.elapsed(), tally }
    }
}

/// Runs `steps` one after the other and passes their output through.
pub fn run_all(steps: &[Step]) -> Summary {
    Summary(steps.iter().map(|step| step.run()).collect())
}

/// The cargo that started this program, so that the toolchain stays the same.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The simulation's own test, with the number of operations that every run promises. Only the
/// crates it spends its time in are optimised, so only those are compiled again. Assertions and
/// overflow checks stay on, which costs less than a tenth of the time.
fn simulation() -> Command {
    let mut command = cargo();
    command.args(["test", "--workspace", "--test", "sim"]).env("RIALTO_SIM_OPS", "4000000");
    for package in ["rialto-core", "rialto-engine", "rialto-sim"] {
        command.args(["--config", &format!("profile.dev.package.{package}.opt-level=3")]);
    }
    command
}

/// Runs twice as many tests at once as there are cores: many of them wait for a timer, a disk or a
/// process more than they compute. An explicit setting takes precedence.
fn at_once(command: &mut Command) -> &mut Command {
    const THREADS: &str = "RUST_TEST_THREADS";
    if std::env::var_os(THREADS).is_none() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        command.env(THREADS, (cores * 2).to_string());
    }
    command
}

fn succeeds(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            println!("cannot run {command:?}: {error}");
            false
        }
    }
}

/// Builds the tests without a timeout, and runs them under the watch.
fn built_and_counted(tests: &Command, flags: &[&str], tally: &mut Tally) -> bool {
    let again = || {
        let mut command = Command::new(tests.get_program());
        command.args(tests.get_args());
        tests.get_envs().for_each(|(name, value)| {
            command.env(name, value.unwrap_or_default());
        });
        command
    };
    succeeds(again().arg("--no-run"))
        && counts(
            again().args(flags),
            Output { out: &mut io::stdout(), errors: io::stderr() },
            tally,
        )
}

/// Where the output of a command is passed on to.
struct Output<'a, O, E> {
    out: &'a mut O,
    /// Written by a thread of its own.
    errors: E,
}

/// Runs `command`, passes its output through line by line and counts the tests it reports.
fn counts<O: Write, E: Write + Send + 'static>(
    command: &mut Command,
    to: Output<'_, O, E>,
    tally: &mut Tally,
) -> bool {
    match stream(command, to, tally) {
        Ok(good) => good,
        Err(error) => {
            println!("cannot run {command:?}: {error}");
            false
        }
    }
}

fn stream<O: Write, E: Write + Send + 'static>(
    command: &mut Command,
    Output { out, errors }: Output<'_, O, E>,
    tally: &mut Tally,
) -> io::Result<bool> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let watch = Watch::over(child.id(), TIME_LIMIT);
    let skipped = child.stderr.take().map(|stderr| skipped_tests(stderr, errors));
    if let Some(stdout) = child.stdout.take() {
        each_line(stdout, |line| {
            out.write_all(line)?;
            out.flush()?;
            let text = String::from_utf8_lossy(line);
            watch.heard(&text);
            if let Some(counted) = Tally::read(&text) {
                *tally += counted;
            }
            Ok(())
        })?;
    }
    let good = child.wait()?.success();
    if let Some(skipped) = skipped {
        // Ends with the pipe. A process that a test has left behind may keep it open for ever.
        while skipped.recv_timeout(PIPE_TIMEOUT).is_ok() {
            tally.skip(1);
        }
    }
    Ok(good)
}

/// Passes standard error through, and tells of each test that was skipped.
fn skipped_tests(stderr: ChildStderr, mut to: impl Write + Send + 'static) -> Receiver<()> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        each_line(stderr, |line| {
            to.write_all(line)?;
            if tells_of_skipped_test(&String::from_utf8_lossy(line)) {
                // The receiver is gone once the run is over.
                let _ = tell.send(());
            }
            Ok(())
        })
    });
    told
}

/// Reads lines as bytes: a test may print invalid UTF-8, and counting must go on.
fn each_line(output: impl Read, mut pass: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        pass(&line)?;
        line.clear();
    }
    Ok(())
}

impl Summary {
    /// Whether anything failed.
    pub fn failed(&self) -> bool {
        self.0.iter().any(|verdict| !verdict.good)
    }

    /// The total of all tests. A step that failed without naming a failed test (it did not compile,
    /// a lint fired, a test program was killed) counts as one failure, so that a failed run never
    /// ends in `0 failed`.
    fn total(&self) -> Tally {
        let mut total = Tally::default();
        for verdict in &self.0 {
            total += verdict.tally;
            if !verdict.good && verdict.tally.failed == 0 {
                total.failed += 1;
            }
        }
        total
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n── summary ──")?;
        for Verdict { step, good, took, tally } in &self.0 {
            let word = if *good { "ok" } else { "FAILED" };
            write!(f, "{:<8} {word:<6} {:>7.1} s", step.name(), took.as_secs_f64())?;
            if *step == Step::Tests {
                write!(f, "  {tally}")?;
            }
            writeln!(f)?;
        }
        writeln!(f, "{}", self.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(step: Step, good: bool, tally: Tally) -> Verdict {
        Verdict { step, good, took: Duration::from_millis(1500), tally }
    }

    fn last_line(summary: &Summary) -> String {
        summary.to_string().lines().last().unwrap().to_owned()
    }

    /// Without standard error: a run of these tests would count what these tests count.
    fn quiet(out: &mut Vec<u8>) -> Output<'_, Vec<u8>, io::Sink> {
        Output { out, errors: io::sink() }
    }

    #[test]
    fn a_good_run_ends_with_the_counts() {
        let tally = Tally { passed: 41, failed: 0, skipped: 1 };
        let summary = Summary(vec![
            verdict(Step::Fmt, true, Tally::default()),
            verdict(Step::Tests, true, tally),
        ]);
        assert!(!summary.failed());
        assert_eq!(last_line(&summary), "41 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_step_that_fails_without_a_failed_test_counts_as_one() {
        let broken = Tally { passed: 3, failed: 0, skipped: 0 };
        let summary = Summary(vec![
            verdict(Step::Clippy, false, Tally::default()),
            verdict(Step::Tests, false, broken),
        ]);
        assert!(summary.failed());
        assert_eq!(last_line(&summary), "3 passed, 2 failed, 0 skipped");
    }

    #[test]
    fn failed_tests_are_counted_once() {
        let tally = Tally { passed: 3, failed: 2, skipped: 0 };
        let summary = Summary(vec![verdict(Step::Tests, false, tally)]);
        assert_eq!(last_line(&summary), "3 passed, 2 failed, 0 skipped");
    }

    #[test]
    fn every_step_is_found_by_its_name() {
        for step in Step::ALL {
            assert_eq!(Step::named(step.name()), Some(step));
        }
        assert_eq!(Step::named("everything"), None);
    }

    #[cfg(unix)]
    #[test]
    fn output_passes_through_untouched_while_it_is_counted() {
        let said =
            b"\xff not text\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\nend";
        let script = r"printf '\377 not text\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\nend'; exit 3";
        let (mut out, mut tally) = (Vec::new(), Tally::default());
        let good = counts(Command::new("sh").args(["-c", script]), quiet(&mut out), &mut tally);
        assert!(!good);
        assert_eq!(out, said);
        assert_eq!(tally, Tally { passed: 2, failed: 0, skipped: 1 });
    }

    #[cfg(unix)]
    #[test]
    fn tests_that_say_they_were_skipped_are_counted_as_such() {
        let script = "echo 'skipped: a::b: PostgreSQL is not installed' >&2; \
                      echo 'test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured'";
        let (mut out, mut tally) = (Vec::new(), Tally::default());
        assert!(counts(Command::new("sh").args(["-c", script]), quiet(&mut out), &mut tally));
        assert_eq!(tally, Tally { passed: 1, failed: 0, skipped: 2 });
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_is_left_behind_does_not_hold_up_the_run() {
        let (mut out, mut tally) = (Vec::new(), Tally::default());
        let script = "sleep 20 >/dev/null & echo begun";
        assert!(counts(Command::new("sh").args(["-c", script]), quiet(&mut out), &mut tally));
        assert_eq!(out, b"begun\n");
    }
}
