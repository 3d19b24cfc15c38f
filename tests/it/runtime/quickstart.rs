//! From an empty folder to a paid job: every command as `rialto dev` prints it, and the tests that
//! `rialto init` generates.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::kit::Place;
use crate::kit::{Lines, output, python_packages};

/// Lines of code a new user may have to read or write.
const LINES_MAX: usize = 12;

/// `rialto dev` as it is typed, and its output.
struct Dev {
    child: Child,
    url: String,
    commands: Vec<String>,
}

impl Dev {
    fn start(place: &Place) -> Self {
        let mut command = place.rialto();
        // Any port, without changing the typed command: other tests need theirs.
        command.arg("dev").env("RIALTO_HTTP__LISTEN", "127.0.0.1:0");
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = Lines::of(child.stdout.take());
        let greeting = lines.next().expect("a greeting");
        let url = greeting.split_whitespace().last().expect("an address").to_owned();
        let mut commands = Vec::new();
        for line in lines.by_ref().skip_while(|line| !line.contains("in an empty folder")).skip(1) {
            commands.push(line.trim().to_owned());
            if line.contains("rialto job post") {
                break;
            }
        }
        Self { child, url, commands }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A shell with the binary on the path, as after an installation.
fn shell(place: &Place, line: &str, hub: Option<&str>) -> Command {
    let built = Path::new(env!("CARGO_BIN_EXE_rialto")).parent().expect("a folder");
    let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(place.path("folder"));
    command.env("RIALTO_HOME", place.path("home")).env("PATH", path);
    if let Some(hub) = hub {
        command.env("RIALTO_HUB", hub);
    }
    command
}

fn ran(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

fn empty_folder() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).expect("a folder");
    place
}

/// `rialto agent run` in the background, once it reports that it works.
fn at_work(mut command: Command) -> Child {
    let mut agent = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let first = Lines::of(agent.stderr.take()).next().expect("it says something");
    assert!(first.contains("is online"), "{first}");
    agent
}

#[test]
fn four_commands_as_printed_lead_from_an_empty_folder_to_a_paid_job() {
    let place = empty_folder();
    let dev = Dev::start(&place);
    let [export, init, run, post] = dev.commands.as_slice() else {
        panic!("four commands, and one for the odd port: {:?}", dev.commands)
    };
    assert_eq!(*export, format!("export RIALTO_HUB={}", dev.url));
    let with_hub = |line: &str| shell(&place, &format!("{export}; exec {line}"), None);
    let made = output(&mut with_hub(init)).expect("it runs");
    assert!(made.status.success(), "{}", ran(&made));
    // The next steps that `init` prints are the same.
    let next = ran(&made);
    for line in [run, post] {
        assert!(next.lines().any(|said| said.trim() == line), "{line} is not in {next}");
    }
    let code = place.text("folder/handler.py");
    assert!(code.lines().count() <= LINES_MAX, "{code}");
    let mut agent = at_work(with_hub(run));
    let posted = output(&mut with_hub(post)).expect("it runs");
    assert!(posted.status.success(), "{}", ran(&posted));
    let said = ran(&posted);
    assert!(said.contains(r#""text": "HELLO""#) && said.contains("paid 0.05"), "{said}");
    agent.kill().expect("it can be killed");
    agent.wait().expect("it ends");
}

#[test]
fn nothing_is_written_over() {
    let place = empty_folder();
    let line = "rialto init agent --lang sh --json";
    let init = || output(&mut shell(&place, line, None)).expect("it runs");
    assert!(init().status.success());
    std::fs::write(place.path("folder/handler.sh"), "mine").expect("written");
    let again = init();
    assert_eq!(again.status.code(), Some(5), "{}", ran(&again));
    assert_eq!(place.text("folder/handler.sh"), "mine");
}

/// Generates an agent, prepares it, and runs its own test against a dev hub.
fn own_test_passes(lang: &str, prepare: impl Fn(&Path), test: &str) {
    own_test_passes_with(lang, &[], prepare, test);
}

/// The same with these variables.
fn own_test_passes_with(
    lang: &str,
    variables: &[(&str, OsString)],
    prepare: impl Fn(&Path),
    test: &str,
) {
    let place = empty_folder();
    let dev = Dev::start(&place);
    let run = |line: &str| {
        let mut command = shell(&place, line, Some(&dev.url));
        let output = output(command.envs(variables.iter().cloned())).expect("it runs");
        assert!(output.status.success(), "{line}: {}", ran(&output));
        ran(&output)
    };
    let made = run(&format!("rialto init agent --lang {lang}"));
    prepare(&place.path("folder"));
    let printed: Vec<&str> = made.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    assert_eq!(printed.last(), Some(&test));
    for line in &printed {
        // Commands that run until they are stopped are part of the test itself.
        let is_skipped = ["rialto ", "npm install", "pip install", "python3 agent.py"];
        if !is_skipped.iter().any(|start| line.starts_with(start)) {
            run(line);
        }
    }
}

#[test]
fn the_python_agent_passes_its_own_test() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
    let packages = [package.join("src"), python_packages(&package.join("tests"))];
    let path = std::env::join_paths(packages).expect("paths");
    own_test_passes_with("python", &[("PYTHONPATH", path)], |_| {}, "python3 test_agent.py");
}

#[test]
fn the_plain_python_agent_passes_its_own_test() {
    own_test_passes("python --plain", |_| {}, "python3 test_agent.py");
}

#[test]
fn the_shell_agent_passes_its_own_test() {
    own_test_passes("sh", |_| {}, "sh test.sh");
}

#[test]
fn a_second_agent_of_another_name_passes_its_own_test_beside_the_first() {
    let place = empty_folder();
    let dev = Dev::start(&place);
    for name in ["first", "second"] {
        let line = format!("rialto init agent --lang sh --dir {name} --name {name} && cd {name}");
        let made = output(&mut shell(&place, &format!("{line} && sh test.sh"), Some(&dev.url)));
        let made = made.expect("it runs");
        assert!(made.status.success(), "{name}: {}", ran(&made));
        let file = place.text(&format!("folder/{name}/agent.toml"));
        assert!(file.contains(&format!("\nname = \"{name}\"\nconcurrency")), "{file}");
    }
}

#[test]
fn the_rust_agent_passes_its_own_test() {
    // Its one dependency is available offline, since the hub has it, too.
    let offline = |folder: &Path| {
        std::fs::create_dir(folder.join(".cargo")).expect("a folder");
        let config = "[net]\noffline = true\n";
        std::fs::write(folder.join(".cargo/config.toml"), config).expect("written");
    };
    own_test_passes("rust", offline, "cargo test");
}

#[test]
fn the_typescript_agent_passes_its_own_test() {
    let packages = |folder: &Path| {
        let installed = typescript().join("node_modules");
        std::os::unix::fs::symlink(installed, folder.join("node_modules")).expect("linked");
    };
    own_test_passes("ts", packages, "npm test");
}

/// The result of the TypeScript agent's `npm install`, done once and kept in the target directory.
fn typescript() -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_rialto")).ancestors().nth(2).expect("a folder");
    let folder = target.join("foreign").join("typescript");
    std::fs::create_dir_all(&folder).expect("a folder");
    let lock = std::fs::File::create(folder.join("lock")).expect("a file");
    lock.lock().expect("one at a time");
    if !folder.join("node_modules/typescript/bin/tsc").exists() {
        let package = include_str!("../../../crates/rialto/src/commands/init/ts/package.json");
        std::fs::write(folder.join("package.json"), package).expect("written");
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&folder);
        let npm = output(&mut npm).expect("npm runs");
        assert!(npm.status.success(), "{}", ran(&npm));
    }
    folder
}
