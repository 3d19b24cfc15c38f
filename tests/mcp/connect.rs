//! `rialto connect`: what it prints, what it writes, and that the connection works.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bridge::process::{Bridge, isolated};
use crate::kit::{ClosedPort, TestHub, npm_package, output, walk};

/// All texts of the book.
const BOOK: &str = include_str!("../../crates/hub/src/mcp/fixtures/connect.json");
const BOOK_PROGRAM: &str = "/usr/local/bin/rialto";
const BOOK_HUB: &str = "http://127.0.0.1:7425";
const CLIENTS: [&str; 8] = [
    "claude-code",
    "codex",
    "cursor",
    "claude-desktop",
    "vscode",
    "openclaw",
    "langgraph",
    "openai-agents",
];

/// A user of this machine, with an empty home.
struct User {
    home: TempDir,
    /// Programs that are found before all others.
    programs: Vec<PathBuf>,
    hub: Option<String>,
}

/// How a command ended.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl User {
    fn new(hub: Option<&str>) -> Self {
        let home = TempDir::new().expect("a directory");
        Self { home, programs: Vec::new(), hub: hub.map(str::to_owned) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn rialto_home(&self) -> PathBuf {
        self.path("rialto-home")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A program that writes its arguments into a file, one per line, and ends with a status.
    #[cfg(unix)]
    fn add_program(&mut self, name: &str, status: i32) {
        use std::os::unix::fs::PermissionsExt;
        let script = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'\necho \"{name} says no\" >&2\nexit {status}\n",
            self.path(&format!("{name}.arguments")).display()
        );
        let path = self.write(&format!("bin/{name}"), &script);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        self.programs.push(self.path("bin"));
    }

    /// The arguments that such a program got.
    fn arguments_of(&self, name: &str) -> Vec<String> {
        self.read(&format!("{name}.arguments")).lines().map(str::to_owned).collect()
    }

    async fn connect(&self, arguments: &[&str]) -> Ran {
        let mut command = isolated(&self.rialto_home());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = self.programs.iter().cloned().chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).expect("a path");
        command.arg("connect").args(arguments).current_dir(self.home.path());
        command.env("HOME", self.home.path()).env("PATH", path).env_remove("CODEX_HOME");
        if let Some(hub) = &self.hub {
            command.env("RIALTO_HUB", hub);
        }
        tokio::task::spawn_blocking(move || Ran::of(&mut command)).await.expect("no panic")
    }

    /// The key that the context of the hub keeps under this name.
    fn key_file(&self, name: &str) -> Option<PathBuf> {
        let contexts = fs::read_dir(self.rialto_home().join("contexts")).ok()?;
        let mut files =
            contexts.flatten().map(|context| context.path().join(format!("{name}.key")));
        files.find(|path| path.exists())
    }

    fn key(&self, name: &str) -> String {
        let text = fs::read_to_string(self.key_file(name).expect("a key")).expect("text");
        text.lines().next().expect("a key").to_owned()
    }
}

impl Ran {
    fn of(command: &mut Command) -> Self {
        let output = output(command).expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("no document: {self:#?}"))
    }
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_rialto")
}

/// The book for this program and hub.
fn book(hub: &str) -> Value {
    let book: Value = serde_json::from_str(BOOK).expect("JSON");
    let text = book.to_string().replace(BOOK_PROGRAM, program()).replace(BOOK_HUB, hub);
    let mut book: Value = serde_json::from_str(&text).expect("JSON");
    let system = if cfg!(target_os = "macos") { "macos" } else { "linux" };
    let file = &mut book["claude-desktop"]["stdio"]["file"];
    *file = file[system].take();
    book
}

#[tokio::test(flavor = "multi_thread")]
async fn every_text_of_the_book_is_printed_and_nothing_is_changed() {
    let (user, book) = (User::new(None), book(BOOK_HUB));
    for client in CLIENTS {
        for (door, flags) in [("stdio", &[][..]), ("http", &["--http"][..])] {
            let expected = &book[client][door];
            let ran = user.connect(&[&[client, "--json"], flags].concat()).await;
            if !expected.is_null() {
                assert_eq!(ran.expect(0).json(), *expected, "{client} {door}");
            } else if client == "claude-desktop" {
                assert!(ran.expect(2).out.contains("without --http"), "{client}");
            } else {
                // A library has one way only.
                assert_eq!(ran.expect(0).json(), book[client]["http"], "{client}");
            }
            // For people, the same texts.
            let shown = user.connect(&[&[client, "--print"], flags].concat()).await;
            for name in ["run", "then", "python"] {
                if let Some(text) = expected[name].as_str() {
                    assert!(shown.out.contains(text), "{text} is not in {}", shown.out);
                }
            }
        }
    }
    assert!(!user.rialto_home().exists(), "no context and no key");
    assert_eq!(fs::read_dir(user.home.path()).expect("a directory").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_printed_shows_the_place_of_a_key_that_does_not_exist_yet() {
    let user = User::new(None);
    let shown = user.connect(&["claude-code", "--http", "--show-key"]).await.expect(0);
    assert!(shown.out.contains("Bearer rk_…"), "{shown:?}");
    assert!(shown.out.contains("mcp-claude-code.key"), "{shown:?}");
    let shown = user.connect(&["vscode", "--http", "--per-job", "0.5"]).await.expect(0);
    for part in ["`rialto connect vscode --http --apply`", "at most 0.50 per job", "asks for a key"]
    {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    let shown = user.connect(&["cursor"]).await.expect(0);
    assert!(shown.out.contains("~/.cursor/mcp.json") && shown.out.contains("mcp.key"), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_client_is_refused_with_the_list() {
    let ran = User::new(None).connect(&["emacs"]).await.expect(2);
    for client in CLIENTS {
        assert!(ran.err.contains(client), "{client}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_hub_and_other_tools_are_named_in_what_is_written() {
    let user = User::new(Some("http://127.0.0.1:9"));
    let shown = user.connect(&["cursor", "--json", "--agent", "a,b", "--max-price", "1"]).await;
    let entry = &shown.expect(0).json()["merge"]["mcpServers"]["rialto"];
    let arguments =
        json!(["mcp", "--hub", "http://127.0.0.1:9", "--agent", "a,b", "--max-price", "1"]);
    assert_eq!(entry["args"], arguments);
    let pin = ["--agent", "a", "--pin", "0123456789abcdef"];
    let shown = user.connect(&[&["cursor", "--json"][..], &pin].concat()).await.expect(0).json();
    let arguments = &shown["merge"]["mcpServers"]["rialto"]["args"];
    let rest = ["mcp", "--hub", "http://127.0.0.1:9"].iter().chain(&pin);
    assert_eq!(*arguments, json!(rest.collect::<Vec<_>>()));
    let shown = user.connect(&["codex", "--http", "--json", "--tools", "buy"]).await.expect(0);
    let run = shown.json()["run"].to_string();
    assert!(run.contains("http://127.0.0.1:9/mcp?tools=buy"), "{run}");
}

const OTHERS: &str = "{\r\n\t\"theme\" : \"dark\",\r\n\t\"n\": 1.50e0,\r\n\t\"mcpServers\": {\r\n\t\t\"other\": { \"command\":\"x\" , \"args\" : [ ] }\r\n\t}\r\n}";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_edited_a_copy_stays_and_the_connection_works() {
    let hub = TestHub::serve(&[("ledger.welcome_grant", "7.00")]).await;
    let user = User::new(Some(&hub.url));
    user.write(".cursor/mcp.json", OTHERS);
    let ran = user.connect(&["cursor", "--apply"]).await.expect(0);
    let written = user.read(".cursor/mcp.json");
    assert_eq!(user.read(".cursor/mcp.json.bak"), OTHERS);
    let end = OTHERS.find("\r\n\t}\r\n}").expect("the end");
    assert!(written.starts_with(&OTHERS[..end]) && written.ends_with(&OTHERS[end..]), "{written}");
    let entry = &serde_json::from_str::<Value>(&written).expect("JSON")["mcpServers"]["rialto"];
    assert_eq!(*entry, json!({"command": program(), "args": ["mcp", "--hub", hub.url]}));
    for part in
        ["+ \t\t\"rialto\": {", "17 tools", "whoami", "7.00 credits available", "To undo: mv"]
    {
        assert!(ran.out.contains(part), "{part}: {ran:#?}");
    }
    for part in ["at most 1.00 per job, at most 10.00 per day, no transfers", "share it"] {
        assert!(ran.out.contains(part), "{part}: {ran:#?}");
    }
    let key = user.key("mcp");
    assert!(!ran.out.contains(&key) && !ran.err.contains(&key), "{ran:?}");
    // Once more: nothing to do, and the copy of the first time stays.
    let again = user.connect(&["cursor", "--apply"]).await.expect(0);
    assert!(again.out.contains("has the entry already"), "{again:?}");
    assert_eq!(user.read(".cursor/mcp.json"), written);
    assert_eq!(user.read(".cursor/mcp.json.bak"), OTHERS);
    assert_eq!(user.key("mcp"), key);
    let shown = user.connect(&["cursor", "--show-key"]).await.expect(0);
    assert!(shown.out.contains(&key), "{shown:?}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_copy_of_a_file_is_ever_overwritten() {
    let hub = TestHub::serve(&[]).await;
    let user = User::new(Some(&hub.url));
    user.write(".cursor/mcp.json", "{\"first\": 1e400}");
    user.write(".cursor/mcp.json.bak.1", "the user's own");
    user.connect(&["cursor", "--apply"]).await.expect(0);
    let second = user.read(".cursor/mcp.json");
    let ran = user.connect(&["cursor", "--apply", "--tools", "buy,money"]).await.expect(0);
    assert!(ran.out.contains("mcp.json.bak.2"), "the way back is the newest copy: {ran:?}");
    assert_eq!(user.read(".cursor/mcp.json.bak"), "{\"first\": 1e400}");
    assert_eq!(user.read(".cursor/mcp.json.bak.1"), "the user's own");
    assert_eq!(user.read(".cursor/mcp.json.bak.2"), second);
    hub.stop().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_file_stays_a_link_even_if_the_file_is_missing() {
    let hub = TestHub::serve(&[]).await;
    let user = User::new(Some(&hub.url));
    fs::create_dir(user.path(".cursor")).expect("made");
    std::os::unix::fs::symlink("../dotfiles/cursor.json", user.path(".cursor/mcp.json"))
        .expect("linked");
    user.connect(&["cursor", "--apply"]).await.expect(0);
    let link = fs::symlink_metadata(user.path(".cursor/mcp.json")).expect("it is there");
    assert!(link.is_symlink());
    assert!(user.read("dotfiles/cursor.json").contains("\"rialto\""));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_plain_json_stays_untouched() {
    let hub = TestHub::serve(&[]).await;
    let user = User::new(Some(&hub.url));
    for text in
        ["{\n  // mine\n  \"servers\": {}\n}\n", "{\"servers\": {},}", "", "{\"servers\": []}"]
    {
        user.write(".vscode/mcp.json", text);
        let ran = user.connect(&["vscode", "--apply"]).await.expect(5);
        assert!(ran.err.contains("not changed") && ran.err.contains("--print"), "{ran:?}");
        assert_eq!(user.read(".vscode/mcp.json"), text);
        assert!(!user.path(".vscode/mcp.json.bak").exists());
    }
    assert!(user.key_file("mcp").is_none(), "no key is made");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_created_where_the_clients_look() {
    let hub = TestHub::serve(&[]).await;
    let (user, book) = (User::new(Some(&hub.url)), book(&hub.url));
    let desktop = book["claude-desktop"]["stdio"]["file"].as_str().expect("a path");
    let desktop = desktop.trim_start_matches("~/");
    for (arguments, file, client) in [
        (&["claude-desktop", "--apply"][..], desktop, None),
        (&["vscode", "--apply", "--http"], ".vscode/mcp.json", Some("vscode")),
        (&["cursor", "--apply", "--http"], ".cursor/mcp.json", Some("cursor")),
    ] {
        let ran = user.connect(arguments).await.expect(0);
        assert!(ran.out.contains("17 tools") && ran.out.contains("To undo: rm"), "{ran:?}");
        let written: Value = serde_json::from_str(&user.read(file)).expect("JSON");
        if let Some(client) = client {
            assert_eq!(written, book[client]["http"]["merge"], "{client}");
            // The key is not in the file, and the user is told where it is.
            let key = user.key(&format!("mcp-{client}"));
            assert!(!user.read(file).contains(&key) && !ran.out.contains(&key));
            assert!(ran.out.contains(&format!("mcp-{client}.key")), "{ran:?}");
        }
    }
    hub.stop().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_clients_own_command_is_run_with_the_words_of_the_book() {
    let hub = TestHub::serve(&[]).await;
    let (mut user, book) = (User::new(Some(&hub.url)), book(&hub.url));
    user.add_program("claude", 0);
    user.add_program("openclaw", 0);
    let ran = user.connect(&["claude-code", "--apply"]).await.expect(0);
    let mut words = vec!["mcp", "add", "--scope", "user", "rialto", "--", program(), "mcp"];
    words.extend(["--hub", hub.url.as_str()]);
    assert_eq!(user.arguments_of("claude"), words);
    assert!(ran.out.contains("17 tools"), "{ran:?}");
    assert!(ran.out.contains("claude mcp remove --scope user rialto"), "{ran:?}");

    let ran = user.connect(&["claude-code", "--apply", "--http"]).await.expect(0);
    let key = user.key("mcp-claude-code");
    let run = book["claude-code"]["http"]["run"].as_str().expect("a command");
    let expected = run.replace("rk_…", &key).replace(['"'], "");
    let got = user.arguments_of("claude").join(" ");
    assert_eq!(format!("claude {got}"), expected);
    assert!(ran.out.contains("Bearer rk_…") && !ran.out.contains(&key), "{ran:?}");
    let shown = user.connect(&["claude-code", "--apply", "--http", "--show-key"]).await.expect(0);
    assert!(shown.out.contains(&format!("Bearer {key}")), "{shown:?}");

    user.connect(&["openclaw", "--apply", "--http"]).await.expect(0);
    let got = user.arguments_of("openclaw");
    assert_eq!(got[..3], ["mcp", "set", "rialto"]);
    let key = user.key("mcp-openclaw");
    let run = book["openclaw"]["http"]["run"].as_str().expect("a command").replace("rk_…", &key);
    assert_eq!(format!("openclaw mcp set rialto '{}'", got[3]), run);
    hub.stop().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_hidden_in_what_a_failing_client_says() {
    use std::os::unix::fs::PermissionsExt;
    let hub = TestHub::serve(&[]).await;
    let mut user = User::new(Some(&hub.url));
    let script = "#!/bin/sh\necho \"error: cannot parse: $*\" >&2\nexit 1\n";
    let path = user.write("bin/claude", script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
    user.programs.push(user.path("bin"));
    for more in [&[][..], &["--json"]] {
        let arguments = [&["claude-code", "--apply", "--http"], more].concat();
        let ran = user.connect(&arguments).await.expect(1);
        let key = user.key("mcp-claude-code");
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains("Authorization: Bearer rk_…"), "{ran:?}");
        assert!(!said.contains(&key), "{ran:?}");
    }
    hub.stop().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_told_with_the_way_back() {
    let hub = TestHub::serve(&[]).await;
    let mut user = User::new(Some(&hub.url));
    // A client that is not there: no key is made.
    user.programs.clear();
    let ran = user.connect(&["openclaw", "--apply"]).await.expect(1);
    assert!(ran.err.contains("no program openclaw") && user.key_file("mcp").is_none(), "{ran:?}");
    user.add_program("claude", 3);
    let ran = user.connect(&["claude-code", "--apply"]).await.expect(1);
    assert!(ran.err.contains("claude says no") && ran.err.contains("claude mcp remove"), "{ran:?}");
    // A connection that does not work.
    let ran = user.connect(&["cursor", "--apply", "--agent", "nobody"]).await.expect(1);
    let file = user.path(".cursor/mcp.json");
    assert!(
        ran.err.contains("nobody") && ran.err.contains(&format!("rm {}", file.display())),
        "{ran:?}"
    );
    // No hub, no key: nothing is written.
    let closed = ClosedPort::take();
    let lonely = User::new(Some(&closed.url));
    lonely.connect(&["cursor", "--apply"]).await.expect(7);
    assert!(!lonely.path(".cursor").exists());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_those_of_the_flags_and_a_replaced_key_is_revoked() {
    let hub = TestHub::serve(&[]).await;
    let user = User::new(Some(&hub.url));
    user.connect(&["cursor", "--apply"]).await.expect(0);
    let limits = |user: &User| {
        let mut bridge = Bridge::start(&hub.url, &user.rialto_home(), &[], &[]);
        bridge.open("2025-11-25", json!({}));
        bridge.ok("whoami", json!({}))["limits"].take()
    };
    let usual =
        json!({"per_job": "1.00", "per_day": "10.00", "left_today": "10.00", "transfers": false});
    assert_eq!(limits(&user), usual);
    let old = user.key("mcp");
    let flags = ["--per-job", "0.50", "--per-day", "5", "--transfers"];
    user.connect(&[&["cursor", "--apply"][..], &flags].concat()).await.expect(0);
    let own =
        json!({"per_job": "0.50", "per_day": "5.00", "left_today": "5.00", "transfers": true});
    assert_eq!(limits(&user), own);
    hub.get("/v1/me", Some(&old)).await.expect(401);
    // A connection by HTTP has a key of its own.
    let ran = user.connect(&["langgraph", "--apply", "--json"]).await.expect(0);
    assert_eq!(ran.json()["tools"].as_array().map(Vec::len), Some(17));
    assert_ne!(user.key("mcp-langgraph"), user.key("mcp"));
    let listed = hub.get("/v1/keys", Some(&user.key("me"))).await.expect(200);
    for label in ["rialto mcp", "rialto mcp-langgraph"] {
        assert!(listed.text.contains(&format!("\"label\":\"{label}\"")), "{}", listed.text);
    }
    hub.stop().await;
}

/// The folder of the real Codex, from the package for this system.
#[cfg(unix)]
fn codex() -> PathBuf {
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let cpu = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let package = npm_package("@openai/codex", &format!("0.166.0-{system}-{cpu}"));
    let vendor = package.join("node_modules/@openai/codex/vendor");
    let mut targets = fs::read_dir(&vendor).expect("a package").flatten();
    targets.next().expect("a target").path().join("bin")
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_real_codex_is_connected_as_the_book_says() {
    let hub = TestHub::serve(&[]).await;
    let (mut user, book) = (User::new(Some(&hub.url)), book(&hub.url));
    user.programs.push(tokio::task::spawn_blocking(codex).await.expect("no panic"));
    // The usual context is that of this hub, so that the entry is that of the book.
    let mut add = isolated(&user.rialto_home());
    add.args(["context", "add", "here", "--hub", &hub.url]);
    Ran::of(&mut add).expect(0);
    for (arguments, door) in
        [(&["codex", "--apply"][..], "stdio"), (&["codex", "--apply", "--http"], "http")]
    {
        let ran = user.connect(arguments).await.expect(0);
        assert!(ran.out.contains("17 tools"), "{ran:?}");
        assert!(ran.out.contains("codex mcp remove rialto"), "{ran:?}");
        assert_eq!(
            user.read(".codex/config.toml"),
            book["codex"][door]["merge"].as_str().expect("text")
        );
    }
    hub.stop().await;
}

#[test]
fn a_model_gets_the_hub_as_its_recipe_says() {
    assert!(walk(include_str!("../../docs/recipes/mcp.md")) >= 4);
}
