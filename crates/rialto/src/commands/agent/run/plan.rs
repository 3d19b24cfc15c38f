//! The plan: which skills there are and what does them, from flags or from a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rialto_client::agent::program::{Exec, Log, Persistent, Web};
use rialto_client::agent::record::Records;
use rialto_client::agent::{Agent, BadSkill, Room, Skill};
use rialto_core::time::Millis;

use super::super::super::length::length;
use super::super::super::trouble::Trouble;
use super::file::{self, AgentFile, SkillEntry};
use super::flags::Args;
use super::tell::Teller;

/// The file that is looked for when no skill is named.
const FILE: &str = "agent.toml";

/// What the agent does, and how.
pub struct Plan {
    pub name: String,
    owner: Option<String>,
    room: Room,
    skills: Vec<(Skill, Program)>,
    /// Where programs are run.
    place: PathBuf,
}

enum Program {
    Exec(String),
    Persistent(String),
    Web(Web),
}

impl Plan {
    pub fn read(args: &Args) -> Result<Self, Trouble> {
        let mut plan = match &args.skill {
            Some(_) => Self::of_flags(args)?,
            None => {
                let path = args.file.clone().unwrap_or_else(|| PathBuf::from(FILE));
                Self::of_file(AgentFile::load(&path)?, &path)?
            }
        };
        if let Some(name) = &args.name {
            plan.name.clone_from(name);
        }
        plan.owner = args.owner.clone().or(plan.owner);
        if let Some(count) = args.concurrency {
            plan.room = Room(count.into());
        }
        if let Some(limit) = args.timeout {
            plan.skills.iter_mut().for_each(|(skill, _)| skill.time_limit = duration(limit));
        }
        Ok(plan)
    }

    fn of_flags(args: &Args) -> Result<Self, Trouble> {
        let schema = |given: &Option<String>| {
            given.as_deref().map(|given| match given.strip_prefix('@') {
                Some(path) => file::read(Path::new(path)),
                None => Ok(given.to_owned()),
            })
        };
        let name = args.skill.clone().unwrap_or_default();
        let price = args.price.as_deref().unwrap_or_default();
        let schemas =
            (schema(&args.input_schema).transpose()?, schema(&args.output_schema).transpose()?);
        let mut skill = skill(&name, price, schemas)?;
        skill.about = args.about.clone().unwrap_or_default();
        let program = program(args.exec.as_deref(), args.http.as_deref(), args.persistent, &name)?;
        Ok(Self {
            name,
            owner: None,
            room: Room::default(),
            skills: vec![(skill, program)],
            place: PathBuf::from("."),
        })
    }

    fn of_file(file: AgentFile, path: &Path) -> Result<Self, Trouble> {
        // Whoever writes `python3 handler.py` means the one beside the file.
        let place = path.parent().filter(|place| !place.as_os_str().is_empty());
        let place = place.unwrap_or(Path::new(".")).to_owned();
        let first = file.skill.first().map(|skill| skill.name.clone());
        let skills: Result<_, Trouble> =
            file.skill.into_iter().map(|entry| of_entry(entry, &place)).collect();
        Ok(Self {
            name: file.name.or(first).unwrap_or_default(),
            owner: file.owner,
            room: file.concurrency.map_or(Room::default(), |count| Room(count.max(1).into())),
            skills: skills?,
            place,
        })
    }

    /// The agent of this name that does all of it, with programs that keep their files in `records`.
    pub fn agent(&self, name: &str, records: &Records, teller: &Arc<Teller>) -> Agent {
        let teller = Arc::clone(teller);
        let log: Log = Arc::new(move |job, line| teller.log(job, line));
        let mut agent = Agent::named(name).room(self.room);
        if let Some(owner) = &self.owner {
            agent = agent.owner(owner);
        }
        for (skill, program) in &self.skills {
            let (skill, log) = (skill.clone(), Arc::clone(&log));
            agent = match program {
                Program::Exec(command) => {
                    let exec = Exec::new(command, records.clone(), log).within(&self.place);
                    agent.skill(skill, exec)
                }
                Program::Persistent(command) => {
                    let stays = Persistent::new(command, log)
                        .within(&self.place)
                        .limit(skill.time_limit)
                        .logging_to(records.clone());
                    agent.skill(skill, stays)
                }
                Program::Web(web) => agent.skill(skill, web.clone()),
            };
        }
        agent
    }
}

fn of_entry(entry: SkillEntry, place: &Path) -> Result<(Skill, Program), Trouble> {
    let text = |schema: &Option<file::SchemaEntry>| {
        schema.as_ref().map(|schema| schema.text(place)).transpose()
    };
    let schemas = (text(&entry.input)?, text(&entry.output)?);
    let mut skill = skill(&entry.name, &entry.price, schemas)?;
    skill.about = entry.about;
    if let Some(timeout) = &entry.timeout {
        let limit = length(timeout).map_err(|why| {
            Trouble::usage(format!("timeout of {} {why}", entry.name), "write it like \"30s\"")
        })?;
        skill.time_limit = duration(limit);
    }
    if let Some(offer) = &entry.offer {
        skill = skill.per_kib(&offer.per_kib).map_err(|why| bad(&entry.name, &why))?;
    }
    let (exec, http) = (entry.exec.as_deref(), entry.http.as_deref());
    Ok((skill, program(exec, http, entry.persistent, &entry.name)?))
}

fn program(
    exec: Option<&str>,
    http: Option<&str>,
    persistent: bool,
    skill: &str,
) -> Result<Program, Trouble> {
    match (exec, http) {
        (Some(command), None) if persistent => Ok(Program::Persistent(command.to_owned())),
        (Some(command), None) => Ok(Program::Exec(command.to_owned())),
        (None, Some(url)) => Ok(Program::Web(Web::new(url)?)),
        _ => {
            let message = format!("{skill} needs either exec or http");
            Err(Trouble::usage(message, "write exec = \"python3 handler.py\""))
        }
    }
}

fn skill(
    name: &str,
    price: &str,
    (input, output): (Option<String>, Option<String>),
) -> Result<Skill, Trouble> {
    let mut skill = Skill::new(name, price).map_err(|why| bad(name, &why))?;
    if let Some(schema) = input {
        skill = skill.takes(&schema).map_err(|why| bad(name, &why))?;
    }
    if let Some(schema) = output {
        skill = skill.gives(&schema).map_err(|why| bad(name, &why))?;
    }
    Ok(skill)
}

fn bad(name: &str, why: &BadSkill) -> Trouble {
    let next = match why {
        BadSkill::Price(_) => "write the price like 0.05",
        BadSkill::Schema { .. } => "write a JSON Schema like {\"type\":\"object\"}",
    };
    Trouble::usage(format!("skill {name}: {why}"), next)
}

fn duration(length: Millis) -> Duration {
    Duration::from_millis(length.0.unsigned_abs())
}
