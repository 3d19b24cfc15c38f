//! What each client has to be told: a command of its own, an entry of its file, or a program text.

use std::path::PathBuf;

use clap::ValueEnum;
use rialto_protocols::kit::object::{ObjectWriter, string_array};
use serde_json::{Value, json};

use super::config_file::ConfigFile;
use super::json_edit::{self, Edit};
use super::{document, shell};

/// The name of the connection in every client.
pub const ENTRY: &str = "rialto";
/// Stands for a key that is not shown.
pub const HIDDEN_KEY: &str = "rk_…";
/// The variable from which some clients read the key.
const KEY_VARIABLE: &str = "RIALTO_KEY";

/// The clients that can be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Client {
    ClaudeCode,
    Codex,
    Cursor,
    ClaudeDesktop,
    Vscode,
    Openclaw,
    Langgraph,
    OpenaiAgents,
}

/// How a client reaches the hub.
#[derive(Clone, Debug)]
pub enum Door {
    /// It starts `rialto mcp`.
    Stdio { program: String, arguments: Vec<String> },
    /// It calls the hub. Without a key, its place is shown.
    Http { url: String, key: Option<String> },
}

/// How a client gets the key for HTTP, if the setup does not contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyInput {
    /// From the environment.
    Variable,
    /// From its user, once.
    Prompt,
}

/// What there is to do for one client.
#[derive(Clone, Debug)]
pub struct Setup {
    pub door: Door,
    /// The client's own command.
    pub run: Option<Vec<String>>,
    /// A command that tests the connection.
    pub then: Option<Vec<String>>,
    /// The command that removes the connection again.
    pub undo: Option<Vec<String>>,
    pub file: Option<ConfigFile>,
    /// Text for a program.
    pub python: Option<String>,
    pub key_input: Option<KeyInput>,
}

impl Client {
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Vscode => "vscode",
            Self::Openclaw => "openclaw",
            Self::Langgraph => "langgraph",
            Self::OpenaiAgents => "openai-agents",
        }
    }

    /// Whether it is a library for programs, which call the hub themselves.
    pub fn is_library(self) -> bool {
        matches!(self, Self::Langgraph | Self::OpenaiAgents)
    }

    /// What there is to do; `None` if the client has no such way.
    pub fn setup(self, door: &Door) -> Option<Setup> {
        let setup = Setup {
            door: door.clone(),
            run: None,
            then: None,
            undo: None,
            file: None,
            python: None,
            key_input: None,
        };
        Some(match (self, door) {
            (Self::ClaudeCode, door) => {
                let begin = words("claude mcp add");
                let user = words("--scope user rialto");
                let run = match door {
                    Door::Stdio { program, arguments } => {
                        [begin, user, command_line(program, arguments)].concat()
                    }
                    Door::Http { url, key } => {
                        let header = format!("Authorization: {}", bearer(key.as_deref()));
                        let end = vec![url.clone(), "--header".to_owned(), header];
                        [begin, words("--transport http"), user, end].concat()
                    }
                };
                let undo = Some(words("claude mcp remove --scope user rialto"));
                Setup { run: Some(run), undo, ..setup }
            }
            (Self::Codex, door) => {
                let (end, toml) = match door {
                    Door::Stdio { program, arguments } => {
                        let list: Vec<String> =
                            arguments.iter().map(|one| toml_text(one)).collect();
                        let lines = format!(
                            "command = {}\nargs = [{}]\n",
                            toml_text(program),
                            list.join(", ")
                        );
                        (command_line(program, arguments), lines)
                    }
                    Door::Http { url, .. } => {
                        let end = ["--url", url, "--bearer-token-env-var", KEY_VARIABLE];
                        let lines = format!(
                            "url = {}\nbearer_token_env_var = {}\n",
                            toml_text(url),
                            toml_text(KEY_VARIABLE)
                        );
                        (end.map(str::to_owned).to_vec(), lines)
                    }
                };
                Setup {
                    run: Some([words("codex mcp add rialto"), end].concat()),
                    undo: Some(words("codex mcp remove rialto")),
                    file: Some(ConfigFile::toml(
                        "~/.codex/config.toml",
                        format!("[mcp_servers.{ENTRY}]\n{toml}"),
                    )),
                    key_input: is_http(door).then_some(KeyInput::Variable),
                    ..setup
                }
            }
            (Self::Cursor, door) => {
                let (value, project) = match door {
                    Door::Stdio { .. } => (server(door, &[]), Some(".cursor/mcp.json")),
                    Door::Http { .. } => (server(door, &[("env", KEY_VARIABLE)]), None),
                };
                let file = ConfigFile::json("~/.cursor/mcp.json", vec![entry("mcpServers", value)]);
                Setup {
                    file: Some(file.in_project(project)),
                    key_input: is_http(door).then_some(KeyInput::Variable),
                    ..setup
                }
            }
            (Self::ClaudeDesktop, Door::Http { .. }) => return None,
            (Self::ClaudeDesktop, door) => {
                let edits = vec![entry("mcpServers", server(door, &[]))];
                Setup { file: Some(ConfigFile::json(desktop_file(), edits)), ..setup }
            }
            (Self::Vscode, Door::Stdio { program, arguments }) => {
                let added =
                    stdio_members(ObjectWriter::new().text("name", ENTRY), program, arguments);
                let value =
                    stdio_members(ObjectWriter::new().text("type", "stdio"), program, arguments);
                Setup {
                    run: Some([words("code --add-mcp"), vec![added]].concat()),
                    file: Some(ConfigFile::json(".vscode/mcp.json", vec![entry("servers", value)])),
                    ..setup
                }
            }
            (Self::Vscode, Door::Http { .. }) => {
                let input = ObjectWriter::new()
                    .text("type", "promptString")
                    .text("id", "rialto-key")
                    .text("description", "Rialto key")
                    .flag("password", true);
                let input = Edit::Item { array: "inputs", id: "rialto-key", value: input.finish() };
                let value = server(door, &[("type", "http"), ("input", "rialto-key")]);
                let edits = vec![input, entry("servers", value)];
                Setup {
                    file: Some(ConfigFile::json(".vscode/mcp.json", edits)),
                    key_input: Some(KeyInput::Prompt),
                    ..setup
                }
            }
            (Self::Openclaw, door) => {
                let value = server(door, &[("transport", "streamable-http")]);
                Setup {
                    run: Some([words("openclaw mcp set rialto"), vec![value]].concat()),
                    then: Some(words("openclaw mcp doctor rialto --probe")),
                    undo: Some(words("openclaw mcp unset rialto")),
                    ..setup
                }
            }
            (Self::Langgraph | Self::OpenaiAgents, Door::Stdio { .. }) => return None,
            (Self::Langgraph, Door::Http { url, .. }) => {
                Setup { python: Some(langgraph(url)), key_input: Some(KeyInput::Variable), ..setup }
            }
            (Self::OpenaiAgents, Door::Http { url, .. }) => {
                let python = Some(openai_agents(url));
                Setup { python, key_input: Some(KeyInput::Variable), ..setup }
            }
        })
    }
}

fn is_http(door: &Door) -> bool {
    matches!(door, Door::Http { .. })
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn bearer(key: Option<&str>) -> String {
    format!("Bearer {}", key.unwrap_or(HIDDEN_KEY))
}

fn entry(object: &'static str, value: String) -> Edit {
    Edit::Member { object, name: ENTRY, value }
}

/// What follows the name of a server that is started.
fn command_line(program: &str, arguments: &[String]) -> Vec<String> {
    let begin = ["--".to_owned(), program.to_owned()];
    begin.into_iter().chain(arguments.iter().cloned()).collect()
}

fn stdio_members(begun: ObjectWriter, program: &str, arguments: &[String]) -> String {
    let arguments = string_array(arguments.iter().map(String::as_str));
    begun.text("command", program).raw("args", &arguments).finish()
}

/// An entry of a client's file. For HTTP, `more` says what the client calls the transport, and from
/// where it reads the key.
fn server(door: &Door, more: &[(&str, &str)]) -> String {
    let named = |name: &str| more.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    match door {
        Door::Stdio { program, arguments } => {
            stdio_members(ObjectWriter::new(), program, arguments)
        }
        Door::Http { url, key } => {
            let key = match (named("env"), named("input")) {
                (Some(variable), _) => format!("Bearer ${{env:{variable}}}"),
                (_, Some(input)) => format!("Bearer ${{input:{input}}}"),
                _ => bearer(key.as_deref()),
            };
            ObjectWriter::new()
                .maybe_text("type", named("type"))
                .text("url", url)
                .maybe_text("transport", named("transport"))
                .raw("headers", &ObjectWriter::new().text("Authorization", &key).finish())
                .finish()
        }
    }
}

fn toml_text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// The file of Claude Desktop on this system.
fn desktop_file() -> &'static str {
    if cfg!(target_os = "macos") {
        "~/Library/Application Support/Claude/claude_desktop_config.json"
    } else if cfg!(windows) {
        "%APPDATA%\\Claude\\claude_desktop_config.json"
    } else {
        "~/.config/Claude/claude_desktop_config.json"
    }
}

fn langgraph(url: &str) -> String {
    format!(
        r#"from langchain_mcp_adapters.client import MultiServerMCPClient
client = MultiServerMCPClient({{"rialto": {{
    "transport": "streamable_http", "url": "{url}",
    "headers": {{"Authorization": "Bearer " + os.environ["RIALTO_KEY"]}}}}}})
tools = await client.get_tools()
"#
    )
}

fn openai_agents(url: &str) -> String {
    format!(
        r#"from agents.mcp import MCPServerStreamableHttp
server = MCPServerStreamableHttp(name="rialto", client_session_timeout_seconds=60, params={{
    "url": "{url}", "headers": {{"Authorization": "Bearer " + os.environ["RIALTO_KEY"]}}}})
"#
    )
}

impl Setup {
    /// For programs: the same members as in the book of this feature.
    pub fn to_json(&self) -> Value {
        let line = |words: &Option<Vec<String>>| words.as_ref().map(|words| shell::line(words));
        let file = self.file.as_ref();
        let members = [
            ("run", line(&self.run).map(Value::from)),
            ("then", line(&self.then).map(Value::from)),
            ("file", file.map(|file| json!(file.shown))),
            ("project", file.and_then(|file| file.project).map(Value::from)),
            ("merge", file.map(ConfigFile::to_json)),
            ("python", self.python.clone().map(Value::from)),
        ];
        document(members.into_iter().filter_map(|(name, value)| Some((name, value?))))
    }

    /// The same for people, ready to be copied.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        if let Some(run) = &self.run {
            parts.push(format!("Run:\n\n  {}\n", shell::line(run)));
        }
        if let Some(file) = &self.file {
            let begin = if self.run.is_some() { "Or merge" } else { "Merge" };
            let project = file.project.map(|project| format!(" (or {project} of a project)"));
            let project = project.unwrap_or_default();
            parts.push(format!("{begin} this into {}{project}:\n\n{}\n", file.shown, file.text()));
        }
        if let Some(python) = &self.python {
            parts
                .push(format!("Put this into your program, which has to `import os`:\n\n{python}"));
        }
        if let Some(then) = &self.then {
            parts.push(format!("Then test it:\n\n  {}\n", shell::line(then)));
        }
        parts.join("\n")
    }
}

/// A path as it is shown, as a path of this machine.
pub fn expand(shown: &str) -> Option<PathBuf> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let (Some(rest), Some(home)) = (shown.strip_prefix("~/.codex/"), from("CODEX_HOME")) {
        return Some(PathBuf::from(home).join(rest));
    }
    if let Some(rest) = shown.strip_prefix("~/") {
        return Some(PathBuf::from(from("HOME").or_else(|| from("USERPROFILE"))?).join(rest));
    }
    if let Some(rest) = shown.strip_prefix("%APPDATA%\\") {
        return Some(PathBuf::from(from("APPDATA")?).join(rest));
    }
    Some(PathBuf::from(shown))
}

/// The document of a file that does not exist yet.
pub fn new_file(edits: &[Edit]) -> String {
    format!("{}\n", json_edit::pretty_document(edits))
}
