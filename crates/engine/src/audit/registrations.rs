//! Owners, agents, agent states, aliases and keys, which fit in memory as they do in a hub.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use rialto_core::agent::key::{Holder, Key};
use rialto_core::agent::{Agent, AgentState};
use rialto_core::alias::{Alias, Protocol};
use rialto_core::id::{AgentId, OwnerId};
use rialto_core::owner::Owner;

use super::Check;
use super::tables::{IdRule, TableReader};
use crate::store::StoreError;

/// Everything registered.
#[derive(Default)]
pub struct Registrations {
    pub owners: BTreeMap<OwnerId, Owner>,
    pub agents: HashMap<AgentId, AgentSummary>,
    pub agent_states: HashMap<AgentId, AgentState>,
}

/// What the audit needs of an agent.
pub struct AgentSummary {
    pub owner: OwnerId,
    pub home: Protocol,
    pub native: String,
}

/// Loads all of them, and checks keys and aliases on the way.
pub fn load(rows: &mut TableReader<'_>) -> Result<(Registrations, Check, Check), StoreError> {
    let mut people = Registrations::default();
    let next = rows.next;
    rows.for_each(
        "owners",
        Some(IdRule::Below(next.owner.0)),
        |one: &Owner| one.id.0,
        |_, one| {
            people.owners.insert(one.id, one);
            Ok(())
        },
    )?;
    // The issuing account has a row only once something was issued.
    let owners = people.owners.keys().filter(|id| **id != Owner::ISSUANCE).count();
    rows.check_row_count("owners", owners as u64, next.owner.0);
    rows.for_each(
        "agents",
        Some(IdRule::Contiguous(next.agent.0)),
        |one: &Agent| one.id.0,
        |_, one| {
            let Agent { id, owner, home, native_id: native, .. } = one;
            people.agents.insert(id, AgentSummary { owner, home, native });
            Ok(())
        },
    )?;
    rows.for_each(
        "desks",
        Some(IdRule::Contiguous(next.agent.0)),
        |one: &AgentState| one.agent.0,
        |_, one| {
            people.agent_states.insert(one.agent, one);
            Ok(())
        },
    )?;
    let keys = check_keys(rows, &people)?;
    let aliases = check_aliases(rows, &people)?;
    Ok((people, keys, aliases))
}

fn check_keys(rows: &mut TableReader<'_>, people: &Registrations) -> Result<Check, StoreError> {
    let mut check = Check::new("keys");
    let mut hashes = HashSet::new();
    // Keys that are no longer valid are deleted.
    let ids = Some(IdRule::Below(rows.next.key.0));
    // Parsing a hash checks that it has 64 hex digits.
    rows.for_each(
        "keys",
        ids,
        |one: &Key| one.id.0,
        |_, key| {
            check.rows += 1;
            let id = key.id;
            check.require(hashes.insert(key.hash), || {
                format!("key {id} has the same hash as another key")
            });
            if let Holder::Agent(agent) = key.holder {
                let known = people.agents.contains_key(&agent);
                check.require(known, || format!("key {id} names agent {agent}, which is unknown"));
            }
            Ok(())
        },
    )?;
    let odd = "SELECT id FROM keys WHERE json_valid(body) AND (length(body ->> 'hash') <> 64
               OR body ->> 'hash' GLOB '*[^0-9a-f]*') LIMIT 100";
    for id in super::query_ids(rows.db, odd)? {
        check.add_breach(|| format!("the hash of key {id} is not 64 hex digits"));
    }
    Ok(check)
}

fn check_aliases(rows: &mut TableReader<'_>, people: &Registrations) -> Result<Check, StoreError> {
    let mut check = Check::new("aliases");
    let mut names: HashMap<(Protocol, Arc<str>), AgentId> = HashMap::new();
    let ids = Some(IdRule::Contiguous(rows.next.alias.0));
    rows.for_each(
        "aliases",
        ids,
        |one: &Alias| one.id.0,
        |_, alias| {
            check.rows += 1;
            let Alias { id, protocol, name, agent } = alias;
            let known = people.agents.contains_key(&agent);
            check.require(known, || format!("alias {id} names agent {agent}, which is unknown"));
            let taken = names.insert((protocol, name), agent);
            check.require(taken.is_none(), || {
                format!("alias {id} repeats a name that is already in use")
            });
            Ok(())
        },
    )?;
    for (id, person) in &people.agents {
        let own = names.get(&(person.home, Arc::from(person.native.as_str())));
        check.require(own == Some(id), || {
            format!("the native name of agent {id} does not resolve to it")
        });
    }
    for (id, person) in &people.agents {
        let owner = people.owners.contains_key(&person.owner);
        check.require(owner, || {
            format!("agent {id} belongs to owner {}, which does not exist", person.owner)
        });
    }
    Ok(check)
}
