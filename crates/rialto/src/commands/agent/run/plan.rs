//! The agent to run: its skills and the programs that handle them, from flags or a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rialto_client::agent::program::{
    Environment, Exec, HttpProgram, LogSink, PersistentProgram, VariableError,
};
use rialto_client::agent::record::JobRecords;
use rialto_client::agent::{Agent, Concurrency, Skill, SkillError};
use rialto_core::time::Millis;

use super::super::super::context::agents::dir_name;
use super::super::super::error::CliError;
use super::event_printer::EventPrinter;
use super::file::{self, AgentFile, SkillEntry};
use super::flags::{Args, positive_duration};

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
    concurrency: Concurrency,
    skills: Vec<(Skill, Program)>,
    environment: Environment,
}

enum Program {
    Exec(String),
    Persistent(String),
    Http(HttpProgram),
}

impl AgentPlan {
    pub fn read(args: &Args) -> Result<Self, CliError> {
        let mut plan = match &args.skill {
            Some(_) => Self::from_flags(args)?,
            None => {
                let path = args.file.clone().unwrap_or_else(|| PathBuf::from(FILE));
                Self::from_file(AgentFile::load(&path)?, &path)?
            }
        };
        if let Some(name) = args.name.as_ref().filter(|name| **name != plan.name) {
            plan.name.clone_from(name);
            // Another name on the command line is another agent with the same file.
            plan.state_name = plan.state_name.map(|_| dir_name(name));
        }
        plan.owner = args.owner.clone().or(plan.owner);
        plan.environment = pass_variables(plan.environment, &args.env)?;
        if let Some(count) = args.concurrency {
            plan.concurrency = Concurrency(count.into());
        }
        if let Some(limit) = args.timeout {
            plan.skills.iter_mut().for_each(|(skill, _)| skill.time_limit = duration(limit));
        }
        Ok(plan)
    }

    fn from_flags(args: &Args) -> Result<Self, CliError> {
        let schema = |given: &Option<String>| {
            given.as_deref().map(|given| match given.strip_prefix('@') {
                Some(path) => file::read_schema_file(Path::new(path)),
                None => Ok(given.to_owned()),
            })
        };
        let name = args.skill.clone().unwrap_or_default();
        let price = args.price.as_deref().unwrap_or_default();
        let schemas =
            (schema(&args.input_schema).transpose()?, schema(&args.output_schema).transpose()?);
        let mut skill = skill(&name, price, schemas)?;
        skill.description = args.about.clone().unwrap_or_default();
        let program = program(args.exec.as_deref(), args.http.as_deref(), args.persistent, &name)?;
        Ok(Self {
            name,
            folder: PathBuf::from("."),
            state_name: None,
            owner: None,
            concurrency: Concurrency::default(),
            skills: vec![(skill, program)],
            environment: Environment::default(),
        })
    }

    fn from_file(file: AgentFile, path: &Path) -> Result<Self, CliError> {
        // `python3 handler.py` means the handler in the file's folder.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        let beside = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let first = file.skill.first().map(|skill| skill.name.clone());
        if let Some(name) = find_duplicate_skill(&file.skill) {
            let message = format!("skill {name} is defined twice");
            return Err(CliError::usage(message, "give each skill a unique name"));
        }
        let room = match file.concurrency {
            None => Concurrency::default(),
            Some(0) => {
                let message = "concurrency must be above zero";
                return Err(CliError::usage(message, "write it like concurrency = 4"));
            }
            Some(count) => Concurrency(count.into()),
        };
        let skills: Result<_, CliError> =
            file.skill.into_iter().map(|entry| skill_from_entry(entry, &folder)).collect();
        Ok(Self {
            name: file.name.or(first).unwrap_or_default(),
            folder,
            state_name: beside,
            owner: file.owner,
            concurrency: room,
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
        for (skill, program) in &self.skills {
            let (skill, log) = (skill.clone(), Arc::clone(&log));
            agent = match program {
                Program::Exec(command) => {
                    let exec = Exec::new(command, records.clone(), log)
                        .working_dir(&self.folder)
                        .environment(self.environment.clone());
                    agent.skill(skill, exec)
                }
                Program::Persistent(command) => {
                    let stays = PersistentProgram::new(command, log)
                        .working_dir(&self.folder)
                        .environment(self.environment.clone())
                        .time_limit(skill.time_limit)
                        .log_to(records.clone());
                    agent.skill(skill, stays)
                }
                Program::Http(web) => agent.skill(skill, web.clone()),
            };
        }
        agent
    }
}

/// The programs' environment with these variables added.
fn pass_variables(environment: Environment, names: &[String]) -> Result<Environment, CliError> {
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

fn skill_from_entry(entry: SkillEntry, folder: &Path) -> Result<(Skill, Program), CliError> {
    let text = |schema: &Option<file::SchemaEntry>| {
        schema.as_ref().map(|schema| schema.load(folder)).transpose()
    };
    let schemas = (text(&entry.input)?, text(&entry.output)?);
    let mut skill = skill(&entry.name, &entry.price, schemas)?;
    skill.description = entry.about;
    if let Some(timeout) = &entry.timeout {
        let limit = positive_duration(timeout).map_err(|why| {
            CliError::usage(format!("timeout of {} {why}", entry.name), "write it like \"30s\"")
        })?;
        skill.time_limit = duration(limit);
    }
    if let Some(offer) = &entry.offer {
        skill = skill.per_kib(&offer.per_kib).map_err(|why| skill_error(&entry.name, &why))?;
    }
    let (exec, http) = (entry.exec.as_deref(), entry.http.as_deref());
    Ok((skill, program(exec, http, entry.persistent, &entry.name)?))
}

fn program(
    exec: Option<&str>,
    http: Option<&str>,
    persistent: bool,
    skill: &str,
) -> Result<Program, CliError> {
    let no = |message: String| Err(CliError::usage(message, "write exec = \"python3 handler.py\""));
    match (exec, http) {
        (Some(command), None) if command.trim().is_empty() => {
            no(format!("the command of {skill} is empty"))
        }
        (None, Some(_)) if persistent => {
            no(format!("{skill} cannot be persistent: only `exec` programs can"))
        }
        (Some(command), None) if persistent => Ok(Program::Persistent(command.to_owned())),
        (Some(command), None) => Ok(Program::Exec(command.to_owned())),
        (None, Some(url)) => Ok(Program::Http(HttpProgram::new(url)?)),
        _ => no(format!("{skill} needs either exec or http")),
    }
}

fn skill(
    name: &str,
    price: &str,
    (input, output): (Option<String>, Option<String>),
) -> Result<Skill, CliError> {
    let mut skill = Skill::new(name, price).map_err(|why| skill_error(name, &why))?;
    if let Some(schema) = input {
        skill = skill.input_schema(&schema).map_err(|why| skill_error(name, &why))?;
    }
    if let Some(schema) = output {
        skill = skill.output_schema(&schema).map_err(|why| skill_error(name, &why))?;
    }
    Ok(skill)
}

fn skill_error(name: &str, why: &SkillError) -> CliError {
    let next = match why {
        SkillError::Price(_) => "write the price like 0.05",
        SkillError::Schema { .. } => "write a JSON Schema like {\"type\":\"object\"}",
    };
    CliError::usage(format!("skill {name}: {why}"), next)
}

fn duration(length: Millis) -> Duration {
    Duration::from_millis(length.0.unsigned_abs())
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
        for (file, wanted) in [
            (skill("exec = \"cat\"\ntimeout = \"0s\""), "must be above zero"),
            (skill("exec = \" \""), "the command of a is empty"),
            (skill("http = \"http://127.0.0.1:1/\"\npersistent = true"), "a cannot be persistent"),
            (skill(""), "a needs either exec or http"),
            (format!("concurrency = 0\n{}", skill(exec)), "concurrency must be above zero"),
            (format!("{}{}", skill(exec), skill(exec)), "skill a is defined twice"),
            (format!("env = [\"RIALTO_KEY\"]\n{}", skill(exec)), "RIALTO_KEY cannot be passed on"),
            (format!("env = [\"A=b\"]\n{}", skill(exec)), "A=b cannot be passed on"),
        ] {
            let message = refused(&file);
            assert!(message.contains(wanted), "{message}");
        }
    }
}
