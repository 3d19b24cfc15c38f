//! Worker instances: only one program at a time gets the work of an agent, because two programs
//! with one key would do the same jobs.
//!
//! A program sends its instance name with every request for work. During that request, and for a
//! while after, no other instance of the agent gets work. This state is not stored: after a restart
//! the first instance that asks gets the work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rialto_core::id::AgentId;
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::Engine;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::query::Query;

use crate::v1::errors;
use crate::v1::problem::Problem;

/// How long work is reserved for an instance after its last request.
const INSTANCE_LEASE: Millis = Millis::seconds(10);
/// The longest instance name.
const NAME_MAX: usize = 64;
/// At this many entries the expired ones are removed.
const SWEEP_THRESHOLD: usize = 4_096;

/// The active instance of each agent.
#[derive(Clone, Debug, Default)]
pub struct Instances(Arc<Mutex<HashMap<AgentId, ActiveInstance>>>);

#[derive(Debug)]
struct ActiveInstance {
    name: String,
    /// Its open requests for work.
    open_requests: u32,
    /// When it last got a response.
    last_answer: Timestamp,
}

/// An open request for work.
pub struct WorkRequest {
    instances: Instances,
    agent: AgentId,
    engine: Engine,
}

/// `?instance=`: the name of the program.
pub fn parse_instance(query: &Query) -> Result<Option<&str>, Malformed> {
    let name = query.text("instance");
    let is_fine = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (1..=NAME_MAX).contains(&name.len()) && name.chars().all(plain)
    };
    match name.filter(|name| !is_fine(name)) {
        None => Ok(name),
        Some(_) => {
            let message = format!("instance must be 1 to {NAME_MAX} letters, digits and dashes");
            Err(Malformed { field: "?instance".to_owned(), message })
        }
    }
}

impl Instances {
    /// Begins a request, unless another instance of the agent is active.
    pub fn begin_request(
        &self,
        engine: &Engine,
        agent: AgentId,
        name: &str,
    ) -> Result<WorkRequest, Problem> {
        let now = engine.now();
        let mut all = self.lock();
        if let Some(other) = all.get(&agent).filter(|working| working.name != name) {
            let expected = other.last_answer.plus(INSTANCE_LEASE).since(now);
            if other.open_requests > 0 {
                let text = "another program is already working as this agent; register a separate agent for each program";
                return Err(Problem::new(&errors::OTHER_INSTANCE, text));
            }
            if let Ok(expected_ms @ 1..) = u64::try_from(expected.0) {
                let wait = expected_ms.div_ceil(1_000);
                let text = format!(
                    "another program worked as this agent a moment ago; its work is reserved for that program for {wait} s more"
                );
                return Err(Problem::new(&errors::OTHER_INSTANCE, text).with_retry_after(wait));
            }
        }
        if all.len() >= SWEEP_THRESHOLD {
            all.retain(|_, one| {
                one.open_requests > 0 || one.last_answer.plus(INSTANCE_LEASE) > now
            });
        }
        let working = ActiveInstance { name: name.to_owned(), open_requests: 0, last_answer: now };
        let working = match all.entry(agent) {
            std::collections::hash_map::Entry::Occupied(entry) if entry.get().name == name => {
                entry.into_mut()
            }
            entry => entry.insert_entry(working).into_mut(),
        };
        working.open_requests += 1;
        Ok(WorkRequest { instances: self.clone(), agent, engine: engine.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AgentId, ActiveInstance>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WorkRequest {
    fn drop(&mut self) {
        let now = self.engine.now();
        if let Some(working) = self.instances.lock().get_mut(&self.agent) {
            working.open_requests = working.open_requests.saturating_sub(1);
            working.last_answer = now;
        }
    }
}
