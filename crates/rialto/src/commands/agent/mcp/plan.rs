//! Which MCP server to run and which of its tools to sell, from flags or from `[mcp]` in `agent.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rialto_client::agent::mcp::{McpSource, tool_skill};
use rialto_client::agent::{Concurrency, Skill};
use rialto_client::mcp::Tool;
use rialto_client::mcp::http::HttpServer;
use rialto_client::mcp::stdio::{ServerCommand, ServerLog};
use serde::Deserialize;

use super::words;
use crate::commands::agent::run::Args;
use crate::commands::time::{positive_duration, to_duration};
use crate::commands::{CliError, CliResult};

/// How long a call may take.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// What stands for the value of a variable in a header.
const VARIABLE: &str = "env:";
/// Headers that hold credentials. On a command line other users of the machine would see them.
const CREDENTIALS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-api-key"];

/// `[mcp]` in `agent.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpEntry {
    /// A command, or a URL.
    server: String,
    #[serde(default)]
    headers: Vec<String>,
    /// Decimal text: amounts are never floats.
    price: Option<String>,
    #[serde(default)]
    prices: BTreeMap<String, String>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    all_tools: bool,
    timeout: Option<String>,
}

/// What of an agent has nothing to do with its server.
#[derive(Debug)]
pub struct AgentEntry {
    pub name: Option<String>,
    pub owner: Option<String>,
    pub accepts: Vec<String>,
    pub concurrency: Concurrency,
    /// Working directory of the server.
    pub folder: PathBuf,
    /// Name of its state directory in the folder; `None` for an agent without a file.
    pub state_name: Option<String>,
}

/// An agent whose skills are the tools of a server.
pub struct McpPlan {
    pub agent: AgentEntry,
    pub location: Location,
    pub selection: Selection,
    prices: Prices,
    time_limit: Duration,
}

/// Where the server is.
#[derive(Clone, Debug, PartialEq)]
pub enum Location {
    Command(Vec<String>),
    Url { url: Url, headers: HeaderMap },
}

/// Which tools are sold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Those that match a pattern.
    Named(Vec<String>),
    All,
    /// All at a hub on this machine; elsewhere those that say that they change nothing.
    Careful,
}

/// The price of each tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Prices {
    all: Option<String>,
    by_tool: BTreeMap<String, String>,
}

impl McpPlan {
    /// The plan of `--mcp`.
    pub fn from_flags(args: &Args, server: &str) -> CliResult<Self> {
        let mut prices = Prices::default();
        for price in &args.price {
            prices.add(price)?;
        }
        let selection = select(&args.tools, args.all_tools);
        let agent = AgentEntry {
            name: args.name.clone(),
            owner: args.owner.clone(),
            accepts: args.accepts.clone(),
            concurrency: args
                .concurrency
                .map_or_else(Concurrency::default, |count| Concurrency(count.into())),
            folder: PathBuf::from("."),
            state_name: None,
        };
        let location = Location::read(server, &args.mcp_header)?;
        let time_limit = args.timeout.map_or(TIME_LIMIT, to_duration);
        Self { agent, location, selection, prices, time_limit }.checked()
    }

    /// The plan of a file. Flags of the agent win.
    pub fn from_file(agent: AgentEntry, entry: McpEntry, args: &Args) -> CliResult<Self> {
        let time_limit = match (args.timeout, entry.timeout) {
            (Some(limit), _) => to_duration(limit),
            (None, Some(text)) => to_duration(positive_duration(&text).map_err(|why| {
                CliError::usage(format!("timeout of [mcp] {why}"), "write it like \"60s\"")
            })?),
            (None, None) => TIME_LIMIT,
        };
        let prices = Prices { all: entry.price, by_tool: entry.prices };
        let selection = select(&entry.tools, entry.all_tools);
        let location = Location::read(&entry.server, &entry.headers)?;
        Self { agent, location, selection, prices, time_limit }.checked()
    }

    fn checked(self) -> CliResult<Self> {
        let Prices { all, by_tool } = &self.prices;
        for price in all.iter().chain(by_tool.values()) {
            Skill::new("price", price).map_err(|why| {
                CliError::usage(format!("{price}: {why}"), "write the price like 0.05")
            })?;
        }
        Ok(self)
    }

    /// The server, with its log.
    pub fn source(&self, log: ServerLog) -> CliResult<McpSource> {
        match &self.location {
            Location::Command(words) => {
                let mut words = words.iter().cloned();
                Ok(McpSource::Command(ServerCommand {
                    program: words.next().unwrap_or_default(),
                    arguments: words.collect(),
                    directory: self.agent.folder.clone(),
                    log,
                }))
            }
            Location::Url { url, headers } => HttpServer::new(url.clone(), headers.clone())
                .map(McpSource::Url)
                .map_err(|error| CliError::failed(error.to_string(), "run it again")),
        }
    }

    /// The skill of a tool; `None` if it has no price.
    pub fn skill(&self, tool: &Tool) -> Option<Result<Skill, String>> {
        let price = self.prices.of(&tool.name)?;
        Some(tool_skill(tool, price, self.time_limit).map_err(|error| error.to_string()))
    }

    /// Flags that name a tool which the server does not have.
    pub fn find_unknown_tool(&self, tools: &[Tool]) -> Option<String> {
        let unknown = |name: &&String| !tools.iter().any(|tool| tool.name == **name);
        let priced = self.prices.by_tool.keys().find(unknown);
        let named = match &self.selection {
            Selection::Named(patterns) => patterns
                .iter()
                .find(|pattern| !tools.iter().any(|tool| matches_pattern(pattern, &tool.name))),
            Selection::All | Selection::Careful => None,
        };
        priced.or(named).cloned()
    }
}

impl Prices {
    fn add(&mut self, text: &str) -> CliResult<()> {
        let twice = |what: &str| {
            let next = "give one price for all tools, and --price TOOL=PRICE for single ones";
            CliError::usage(format!("{what} has two prices"), next)
        };
        match text.rsplit_once('=') {
            Some((tool, price)) => match self.by_tool.insert(tool.to_owned(), price.to_owned()) {
                Some(_) => Err(twice(&format!("tool {tool}"))),
                None => Ok(()),
            },
            None => match self.all.replace(text.to_owned()) {
                Some(_) => Err(twice("the server")),
                None => Ok(()),
            },
        }
    }

    fn of(&self, tool: &str) -> Option<&str> {
        self.by_tool.get(tool).or(self.all.as_ref()).map(String::as_str)
    }
}

fn select(tools: &[String], all: bool) -> Selection {
    match (tools, all) {
        (_, true) => Selection::All,
        ([], false) => Selection::Careful,
        (patterns, false) => Selection::Named(patterns.to_vec()),
    }
}

impl Selection {
    /// Whether a tool is sold. `is_local`: the hub is on this machine.
    pub fn includes(&self, tool: &Tool, is_local: bool) -> bool {
        match self {
            Self::All => true,
            Self::Named(patterns) => {
                patterns.iter().any(|pattern| matches_pattern(pattern, &tool.name))
            }
            Self::Careful => is_local || tool.hints.is_read_only(),
        }
    }
}

/// Whether a name matches a pattern, in which `*` stands for any text.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|tail| {
            let ends = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
            ends.into_iter().any(|at| matches_pattern(rest, &tail[at..]))
        }),
    }
}

impl Location {
    fn read(server: &str, headers: &[String]) -> CliResult<Self> {
        let is_url = ["http://", "https://"].iter().any(|scheme| {
            server.trim_start().get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme))
        });
        if !is_url {
            if let Some(header) = headers.first() {
                let name = header.split(':').next().unwrap_or_default();
                let message = format!("a command gets no header {name}");
                let next = "headers are for servers at a URL; a command gets what it needs from its environment";
                return Err(CliError::usage(message, next));
            }
            let next = "write it like --mcp \"npx -y some-server\"";
            let words = words::split(server).map_err(|why| {
                CliError::usage(
                    format!("the command of the MCP server cannot be read: {why}"),
                    next,
                )
            })?;
            if words.first().is_none_or(String::is_empty) {
                return Err(CliError::usage("the command of the MCP server is empty", next));
            }
            return Ok(Self::Command(words));
        }
        let next = "write it like --mcp https://host/mcp";
        let url = Url::parse(server.trim())
            .map_err(|error| CliError::usage(format!("{server:?} is not a URL: {error}"), next))?;
        if !url.username().is_empty() || url.password().is_some() {
            let message = "the URL must not contain a user name or a password";
            let next = "pass a credential with --mcp-header 'Authorization: env:TOKEN'";
            return Err(CliError::usage(message, next));
        }
        let mut map = HeaderMap::new();
        for header in headers {
            let (name, value) = read_header(header, |name| std::env::var(name).ok())?;
            map.append(name, value);
        }
        Ok(Self::Url { url, headers: map })
    }

    /// What is shown of it: never a credential.
    pub fn shown(&self) -> String {
        match self {
            Self::Command(words) => words.join(" "),
            Self::Url { url, .. } => {
                let mut shown = url.clone();
                shown.set_query(None);
                shown.to_string()
            }
        }
    }
}

/// Reads `Name: value`. A value, or its last word, that begins with `env:` is the name of a variable.
fn read_header(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> CliResult<(HeaderName, HeaderValue)> {
    let next = "write it like --mcp-header 'Authorization: env:TOKEN'";
    let name = text.split(':').next().unwrap_or_default().trim();
    let no = |why: String| CliError::usage(format!("header {name} {why}"), next);
    let (_, value) = text.split_once(':').ok_or_else(|| no("has no value".to_owned()))?;
    let value = value.trim();
    let header: HeaderName = name.parse().map_err(|_| no("is not a header name".to_owned()))?;
    let (before, last) = match value.rsplit_once(' ') {
        Some((before, last)) => (format!("{before} "), last),
        None => (String::new(), value),
    };
    let value = match last.strip_prefix(VARIABLE) {
        Some(from) if from.starts_with("RIALTO_") => {
            return Err(no(format!(
                "must not pass on {from}: a key of a hub is for no MCP server"
            )));
        }
        Some(from) => {
            let found = variable(from).filter(|value| !value.is_empty());
            let found =
                found.ok_or_else(|| no(format!("needs the variable {from}, which is not set")))?;
            format!("{before}{found}")
        }
        None if CREDENTIALS.contains(&header.as_str()) => {
            let why =
                "is a credential, which other users of this machine could read on the command line";
            return Err(no(why.to_owned()));
        }
        None => value.to_owned(),
    };
    let mut value = HeaderValue::from_str(value.trim())
        .map_err(|_| no("has characters that are not allowed in a header".to_owned()))?;
    value.set_sensitive(true);
    Ok((header, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("read_*", "read_file", true),
            ("read_*", "read", false),
            ("*", "anything", true),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("é*", "éa", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_credential_comes_from_a_variable_and_a_hub_key_from_none() {
        let variable = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
        let read = |text| read_header(text, variable);
        let value = |text| read(text).map(|(_, value)| value.to_str().expect("text").to_owned());
        assert_eq!(value("Authorization: env:TOKEN").expect("fine"), "secret");
        assert_eq!(value("Authorization:  Bearer env:TOKEN").expect("fine"), "Bearer secret");
        assert_eq!(value("X-Region: eu west").expect("fine"), "eu west");
        for (text, why) in [
            ("Authorization: Bearer secret", "is a credential"),
            ("Authorization: env:OTHER", "OTHER, which is not set"),
            ("Authorization: env:RIALTO_KEY", "must not pass on RIALTO_KEY"),
            ("Authorization", "has no value"),
            ("a b: c", "is not a header name"),
            ("X-A: b\nc", "not allowed in a header"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.message.contains(why), "{}", error.message);
            assert!(!error.message.contains("secret"), "{}", error.message);
        }
    }

    #[test]
    fn a_server_is_a_command_or_a_url() {
        let read = |server: &str| Location::read(server, &[]);
        assert_eq!(
            read("npx -y 'some server'").expect("fine"),
            Location::Command(["npx", "-y", "some server"].map(str::to_owned).to_vec())
        );
        let url = read("https://host/mcp?token=x").expect("fine");
        assert_eq!(url.shown(), "https://host/mcp");
        for wrong in ["", "  ", "a 'b", "https://me:pw@host/mcp", "http://"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(Location::read("npx x", &["A: b".to_owned()]).is_err());
    }

    #[test]
    fn each_tool_has_the_price_of_its_own_or_that_of_all() {
        let mut prices = Prices::default();
        prices.add("0.05").expect("fine");
        prices.add("a=b=0.10").expect("fine");
        assert_eq!((prices.of("a=b"), prices.of("other")), (Some("0.10"), Some("0.05")));
        assert!(prices.add("0.06").is_err() && prices.add("a=b=1").is_err());
        assert_eq!(Prices::default().of("a"), None);
    }
}
