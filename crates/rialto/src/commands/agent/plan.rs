//! The agent to run: its skills and the programs that handle them, from flags or from `agent.toml`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rialto_client::agent::program::{
    Environment, Exec, HttpProgram, LinesProgram, LogSink, PersistentProgram, VariableError,
};
use rialto_client::agent::record::JobRecords;
use rialto_client::agent::{Agent, Concurrency, Skill, SkillError};
use serde::Deserialize;

use super::event_printer::EventPrinter;
use super::mcp::{AgentEntry, McpEntry, McpPlan};
use super::run::Args;
use crate::commands::context::agents::dir_name;
use crate::commands::time::{positive_duration, to_duration};
use crate::commands::{CliError, CliResult};

/// Example for error messages about an invalid file.
const EXAMPLE: &str = "write it like:\n\nname = \"writer\"\nconcurrency = 4\n\n[[skill]]\nname = \"summarize\"\nprice = \"0.05\"\nexec = \"python3 handler.py\"\n";

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentFile {
    name: Option<String>,
    owner: Option<String>,
    concurrency: Option<u16>,
    /// Media types that the agent takes as input.
    #[serde(default)]
    accepts: Vec<String>,
    /// Names of variables that are passed to programs.
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    skill: Vec<SkillEntry>,
    /// A server whose tools are the skills.
    mcp: Option<McpEntry>,
}

/// One skill.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SkillEntry {
    name: String,
    /// Decimal text: amounts are never floats.
    price: String,
    #[serde(default)]
    about: String,
    exec: Option<String>,
    http: Option<String>,
    #[serde(default)]
    persistent: bool,
    #[serde(default)]
    lines: bool,
    timeout: Option<String>,
    /// JSON Schemas, as tables or file names.
    input: Option<SchemaEntry>,
    output: Option<SchemaEntry>,
    offer: Option<OfferEntry>,
}

/// A schema, inline or in a file.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum SchemaEntry {
    File(String),
    Inline(toml::Table),
    /// From a flag.
    #[serde(skip)]
    Text(String),
}

/// How the price of an offer is computed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfferEntry {
    /// Added for every started KiB of input.
    per_kib: String,
}

/// The file that is read when no skill is given.
const FILE: &str = "agent.toml";

/// The agent's skills and how they are handled.
pub struct AgentPlan {
    pub name: String,
    /// Working directory of programs: the agent's folder.
    pub folder: PathBuf,
    /// Name of its state directory in the folder; `None` for an agent without a file.
    pub state_name: Option<String>,
    owner: Option<String>,
    accepts: Vec<String>,
    concurrency: Concurrency,
    skills: Vec<(Skill, Program)>,
    environment: Environment,
}

enum Program {
    Exec(String),
    Lines(String),
    Persistent { command: String, reads_messages: bool },
    Http(HttpProgram),
}

/// The agent to run.
pub enum Plan {
    Programs(AgentPlan),
    Mcp(Box<McpPlan>),
}

impl Plan {
    pub fn read(args: &Args) -> CliResult<Self> {
        if let Some(server) = &args.mcp {
            return McpPlan::from_flags(args, server).map(|plan| Self::Mcp(Box::new(plan)));
        }
        if args.skill.is_some() {
            return AgentPlan::from_flags(args)?.with_flags(args).map(Self::Programs);
        }
        let path = args.file.clone().unwrap_or_else(|| PathBuf::from(FILE));
        let mut file = AgentFile::load(&path)?;
        match file.mcp.take() {
            Some(entry) => {
                let plan = McpPlan::from_file(file.into_agent(&path, args)?, entry, args)?;
                Ok(Self::Mcp(Box::new(plan)))
            }
            None => AgentPlan::from_file(file, &path)?.with_flags(args).map(Self::Programs),
        }
    }
}

impl AgentPlan {
    /// The plan with what flags say beside the file.
    fn with_flags(self, args: &Args) -> CliResult<Self> {
        let mut plan = self;
        if let Some(name) = args.name.as_ref().filter(|name| **name != plan.name) {
            plan.name.clone_from(name);
            // Another name on the command line is another agent with the same file.
            plan.state_name = plan.state_name.map(|_| dir_name(name));
        }
        plan.owner = args.owner.clone().or(plan.owner);
        plan.accepts.extend_from_slice(&args.accepts);
        plan.environment = pass_variables(plan.environment, &args.env)?;
        if let Some(count) = args.concurrency {
            plan.concurrency = Concurrency(count.into());
        }
        if let Some(limit) = args.timeout {
            plan.skills.iter_mut().for_each(|(skill, _)| skill.time_limit = to_duration(limit));
        }
        Ok(plan)
    }

    fn from_flags(args: &Args) -> CliResult<Self> {
        let schema = |given: &Option<String>| {
            let text = given.as_deref().map(|given| match given.strip_prefix('@') {
                Some(path) => read_schema_file(Path::new(path)),
                None => Ok(given.to_owned()),
            });
            text.transpose().map(|text| text.map(SchemaEntry::Text))
        };
        let entry = SkillEntry {
            name: args.skill.clone().unwrap_or_default(),
            price: only_price(&args.price)?,
            about: args.about.clone().unwrap_or_default(),
            exec: args.exec.clone(),
            http: args.http.clone(),
            persistent: args.persistent,
            lines: args.lines,
            timeout: None,
            input: schema(&args.input_schema)?,
            output: schema(&args.output_schema)?,
            offer: None,
        };
        Ok(Self {
            name: entry.name.clone(),
            folder: PathBuf::from("."),
            state_name: None,
            owner: None,
            accepts: Vec::new(),
            concurrency: Concurrency::default(),
            skills: vec![skill_from_entry(entry, Path::new("."))?],
            environment: Environment::default(),
        })
    }

    fn from_file(file: AgentFile, path: &Path) -> CliResult<Self> {
        let (folder, state_name) = place_of(path);
        let first = file.skill.first().map(|skill| skill.name.clone());
        if let Some(name) = find_duplicate_skill(&file.skill) {
            let message = format!("skill {name} is defined twice");
            return Err(CliError::usage(message, "give each skill a unique name"));
        }
        let concurrency = read_concurrency(file.concurrency)?;
        let skills: CliResult<_> =
            file.skill.into_iter().map(|entry| skill_from_entry(entry, &folder)).collect();
        Ok(Self {
            name: file.name.or(first).unwrap_or_default(),
            folder,
            state_name,
            owner: file.owner,
            accepts: file.accepts,
            concurrency,
            skills: skills?,
            environment: pass_variables(Environment::default(), &file.env)?,
        })
    }

    /// Builds the agent. Its programs keep their files in `records`.
    pub fn build_agent(&self, records: &JobRecords, printer: &Arc<EventPrinter>) -> Agent {
        let printer = Arc::clone(printer);
        let log: LogSink = Arc::new(move |job, line| printer.print_log_line(job, line));
        let mut agent = Agent::new(&self.name).concurrency(self.concurrency);
        if let Some(owner) = &self.owner {
            agent = agent.owner(owner);
        }
        for media_type in &self.accepts {
            agent = agent.accepts(media_type);
        }
        for (skill, program) in &self.skills {
            let (skill, log) = (skill.clone(), Arc::clone(&log));
            agent = match program {
                Program::Exec(command) => {
                    let exec = Exec::new(command, records.clone(), log)
                        .working_dir(&self.folder)
                        .environment(self.environment.clone());
                    agent.skill(skill, exec)
                }
                Program::Lines(command) => {
                    let lines = LinesProgram::new(command, log)
                        .working_dir(&self.folder)
                        .environment(self.environment.clone())
                        .log_to(records.clone());
                    agent.skill(skill, lines)
                }
                Program::Persistent { command, reads_messages } => {
                    let mut persistent = PersistentProgram::new(command, log)
                        .working_dir(&self.folder)
                        .environment(self.environment.clone())
                        .time_limit(skill.time_limit)
                        .log_to(records.clone());
                    if *reads_messages {
                        persistent = persistent.reads_messages();
                    }
                    agent.skill(skill, persistent)
                }
                Program::Http(web) => agent.skill(skill, web.clone()),
            };
        }
        agent
    }
}

/// The folder of a file, in which its commands run, and the name of the state directory there.
fn place_of(path: &Path) -> (PathBuf, Option<String>) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).to_owned();
    (folder, path.file_name().map(|name| name.to_string_lossy().into_owned()))
}

fn read_concurrency(count: Option<u16>) -> CliResult<Concurrency> {
    match count {
        None => Ok(Concurrency::default()),
        Some(0) => {
            let message = "concurrency must be above zero";
            Err(CliError::usage(message, "write it like concurrency = 4"))
        }
        Some(count) => Ok(Concurrency(count.into())),
    }
}

/// The one price of a skill.
fn only_price(prices: &[String]) -> CliResult<String> {
    match prices {
        [price] => Ok(price.clone()),
        _ => {
            let message = "a skill has one price";
            Err(CliError::usage(
                message,
                "several prices are for --mcp; use agent.toml for several skills",
            ))
        }
    }
}

/// The programs' environment with these variables added.
fn pass_variables(environment: Environment, names: &[String]) -> CliResult<Environment> {
    names.iter().try_fold(environment, |environment, name| {
        environment.pass(name).map_err(|why| {
            let next = match why {
                VariableError::InvalidName => "name the variable alone, like --env API_TOKEN",
                VariableError::Secret => "use a separate credential for the program",
            };
            CliError::usage(format!("{name} cannot be passed on: {why}"), next)
        })
    })
}

/// A name that two skills share.
fn find_duplicate_skill(skills: &[SkillEntry]) -> Option<&str> {
    let mut names = BTreeSet::new();
    skills.iter().map(|skill| skill.name.as_str()).find(|name| !names.insert(*name))
}

fn skill_from_entry(entry: SkillEntry, folder: &Path) -> CliResult<(Skill, Program)> {
    let wrong = |why: SkillError| skill_error(&entry.name, &why);
    let mut skill = Skill::new(&entry.name, &entry.price).map_err(wrong)?;
    if let Some(schema) = &entry.input {
        skill = skill.input_schema(&schema.load(folder)?).map_err(wrong)?;
    }
    if let Some(schema) = &entry.output {
        skill = skill.output_schema(&schema.load(folder)?).map_err(wrong)?;
    }
    skill.description.clone_from(&entry.about);
    if let Some(timeout) = &entry.timeout {
        let limit = positive_duration(timeout).map_err(|why| {
            CliError::usage(format!("timeout of {} {why}", entry.name), "write it like \"30s\"")
        })?;
        skill.time_limit = to_duration(limit);
    }
    if let Some(offer) = &entry.offer {
        skill = skill.per_kib(&offer.per_kib).map_err(wrong)?;
    }
    let (exec, http) = (entry.exec.as_deref(), entry.http.as_deref());
    let SkillEntry { persistent, lines, .. } = entry;
    Ok((skill, program(exec, http, (persistent, lines), &entry.name)?))
}

fn program(
    exec: Option<&str>,
    http: Option<&str>,
    (persistent, lines): (bool, bool),
    skill: &str,
) -> CliResult<Program> {
    let no = |message: String| Err(CliError::usage(message, "write exec = \"python3 handler.py\""));
    match (exec, http) {
        (Some(command), None) if command.trim().is_empty() => {
            no(format!("the command of {skill} is empty"))
        }
        (None, Some(_)) if persistent => {
            no(format!("{skill} cannot be persistent: only `exec` programs can"))
        }
        (None, Some(_)) if lines => {
            no(format!("{skill} cannot exchange lines: only `exec` programs can"))
        }
        (Some(command), None) if persistent => {
            Ok(Program::Persistent { command: command.to_owned(), reads_messages: lines })
        }
        (Some(command), None) if lines => Ok(Program::Lines(command.to_owned())),
        (Some(command), None) => Ok(Program::Exec(command.to_owned())),
        (None, Some(url)) => Ok(Program::Http(HttpProgram::new(url)?)),
        _ => no(format!("{skill} needs either exec or http")),
    }
}

fn skill_error(name: &str, why: &SkillError) -> CliError {
    let next = match why {
        SkillError::Price(_) => "write the price like 0.05",
        SkillError::Schema { .. } => "write a JSON Schema like {\"type\":\"object\"}",
    };
    CliError::usage(format!("skill {name}: {why}"), next)
}

impl AgentFile {
    /// The agent of a file whose skills are the tools of a server.
    fn into_agent(self, path: &Path, args: &Args) -> CliResult<AgentEntry> {
        if !self.skill.is_empty() {
            let message = format!("{} has both [mcp] and [[skill]]", path.display());
            return Err(CliError::usage(message, "write two files: an agent has one or the other"));
        }
        if !self.env.is_empty() || !args.env.is_empty() {
            let message = "an MCP server gets the whole environment, except RIALTO_*";
            return Err(CliError::usage(message, "remove env: it is for programs"));
        }
        let (folder, mut state_name) = place_of(path);
        if let Some(name) = args.name.as_ref().filter(|name| Some(*name) != self.name.as_ref()) {
            // Another name on the command line is another agent with the same file.
            state_name = Some(dir_name(name));
        }
        let mut accepts = self.accepts;
        accepts.extend_from_slice(&args.accepts);
        Ok(AgentEntry {
            name: args.name.clone().or(self.name),
            owner: args.owner.clone().or(self.owner),
            accepts,
            concurrency: read_concurrency(args.concurrency.or(self.concurrency))?,
            folder,
            state_name,
        })
    }

    fn load(path: &Path) -> CliResult<Self> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            let message = format!("cannot read {shown}: {error}");
            let next = "`rialto init agent --lang python` creates one; or pass --skill, --price and --exec";
            CliError::usage(message, next)
        })?;
        let file: Self = toml::from_str(&text).map_err(|error| {
            CliError::usage(format!("{shown}: {}", error.to_string().trim_end()), EXAMPLE)
        })?;
        if file.skill.is_empty() && file.mcp.is_none() {
            return Err(CliError::usage(
                format!("{shown} has neither [[skill]] nor [mcp]"),
                EXAMPLE,
            ));
        }
        Ok(file)
    }
}

impl SchemaEntry {
    /// The schema as JSON text. Files are relative to the agent's own file.
    fn load(&self, beside: &Path) -> CliResult<String> {
        match self {
            Self::Inline(table) => Ok(serde_json::to_string(table).unwrap_or_default()),
            Self::File(name) => read_schema_file(&beside.join(name)),
            Self::Text(text) => Ok(text.clone()),
        }
    }
}

/// The text of a schema file.
fn read_schema_file(path: &Path) -> CliResult<String> {
    fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        CliError::usage(message, "name a file that contains a JSON Schema")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(file: &str) -> String {
        let file: AgentFile = toml::from_str(file).expect("a file");
        let Err(error) = AgentPlan::from_file(file, Path::new("agent.toml")) else {
            panic!("the file was accepted")
        };
        error.message
    }

    #[test]
    fn a_file_is_refused_what_flags_are_refused() {
        let skill = |more: &str| format!("[[skill]]\nname = \"a\"\nprice = \"0.05\"\n{more}\n");
        let exec = "exec = \"cat\"";
        for (file, expected) in [
            (skill("exec = \"cat\"\ntimeout = \"0s\""), "must be above zero"),
            (skill("exec = \" \""), "the command of a is empty"),
            (skill("http = \"http://127.0.0.1:1/\"\npersistent = true"), "a cannot be persistent"),
            (skill("http = \"http://127.0.0.1:1/\"\nlines = true"), "a cannot exchange lines"),
            (skill(""), "a needs either exec or http"),
            (format!("concurrency = 0\n{}", skill(exec)), "concurrency must be above zero"),
            (format!("{}{}", skill(exec), skill(exec)), "skill a is defined twice"),
            (format!("env = [\"RIALTO_KEY\"]\n{}", skill(exec)), "RIALTO_KEY cannot be passed on"),
            (format!("env = [\"A=b\"]\n{}", skill(exec)), "A=b cannot be passed on"),
        ] {
            let message = refused(&file);
            assert!(message.contains(expected), "{message}");
        }
    }
}
