//! Owners, agents, agent states, aliases and keys, which fit in memory as they do in a hub.

use std::collections::{BTreeMap, HashMap, HashSet};

use rialto_core::agent::key::{Holder, Key};
use rialto_core::agent::{Agent, Desk};
use rialto_core::alias::{Alias, Protocol};
use rialto_core::id::{AgentId, OwnerId};
use rialto_core::owner::Owner;

use super::Check;
use super::tables::{Ids, Rows};
use crate::store::StoreError;

/// Everything registered.
#[derive(Default)]
pub struct People {
    pub owners: BTreeMap<OwnerId, Owner>,
    pub agents: HashMap<AgentId, Person>,
    pub desks: HashMap<AgentId, Desk>,
}

/// What the audit needs of an agent.
pub struct Person {
    pub owner: OwnerId,
    pub home: Protocol,
    pub native: String,
}

/// Loads all of them, and checks keys and aliases on the way.
pub fn read(rows: &mut Rows<'_>) -> Result<(People, Check, Check), StoreError> {
    let mut people = People::default();
    let next = rows.next;
    rows.each(
        "owners",
        Some(Ids::Below(next.owner.0)),
        |one: &Owner| one.id.0,
        |_, one| {
            people.owners.insert(one.id, one);
            Ok(())
        },
    )?;
    // The issuing account has a row only once something was issued.
    let owners = people.owners.keys().filter(|id| **id != Owner::ISSUANCE).count();
    rows.counted("owners", owners as u64, next.owner.0);
    rows.each(
        "agents",
        Some(Ids::Whole(next.agent.0)),
        |one: &Agent| one.id.0,
        |_, one| {
            let Agent { id, owner, home, native, .. } = one;
            people.agents.insert(id, Person { owner, home, native });
            Ok(())
        },
    )?;
    rows.each(
        "desks",
        Some(Ids::Whole(next.agent.0)),
        |one: &Desk| one.agent.0,
        |_, one| {
            people.desks.insert(one.agent, one);
            Ok(())
        },
    )?;
    let keys = keys(rows, &people)?;
    let aliases = aliases(rows, &people)?;
    Ok((people, keys, aliases))
}

fn keys(rows: &mut Rows<'_>, people: &People) -> Result<Check, StoreError> {
    let mut check = Check::new("keys");
    let mut hashes = HashSet::new();
    // Keys that are no longer valid are deleted.
    let ids = Some(Ids::Below(rows.next.key.0));
    // Parsing a hash checks that it has 64 hex digits.
    rows.each(
        "keys",
        ids,
        |one: &Key| one.id.0,
        |_, key| {
            check.rows += 1;
            let id = key.id;
            check.holds(hashes.insert(key.hash), || {
                format!("key {id} has the same hash as another key")
            });
            if let Holder::Agent(agent) = key.holder {
                let known = people.agents.contains_key(&agent);
                check.holds(known, || format!("key {id} names agent {agent}, which is unknown"));
            }
            Ok(())
        },
    )?;
    let odd = "SELECT id FROM keys WHERE json_valid(body) AND (length(body ->> 'hash') <> 64
               OR body ->> 'hash' GLOB '*[^0-9a-f]*') LIMIT 100";
    for id in super::ids(rows.db, odd)? {
        check.breach(|| format!("the hash of key {id} is not 64 hex digits"));
    }
    Ok(check)
}

fn aliases(rows: &mut Rows<'_>, people: &People) -> Result<Check, StoreError> {
    let mut check = Check::new("aliases");
    let mut names: HashMap<(Protocol, String), AgentId> = HashMap::new();
    let ids = Some(Ids::Whole(rows.next.alias.0));
    rows.each(
        "aliases",
        ids,
        |one: &Alias| one.id.0,
        |_, alias| {
            check.rows += 1;
            let Alias { id, protocol, name, agent } = alias;
            let known = people.agents.contains_key(&agent);
            check.holds(known, || format!("alias {id} names agent {agent}, which is unknown"));
            let taken = names.insert((protocol, name), agent);
            check.holds(taken.is_none(), || {
                format!("alias {id} repeats a name that is already in use")
            });
            Ok(())
        },
    )?;
    for (id, person) in &people.agents {
        let own = names.get(&(person.home, person.native.clone()));
        check.holds(own == Some(id), || {
            format!("the native name of agent {id} does not resolve to it")
        });
    }
    for (id, person) in &people.agents {
        let owner = people.owners.contains_key(&person.owner);
        check.holds(owner, || {
            format!("agent {id} belongs to owner {}, which does not exist", person.owner)
        });
    }
    Ok(check)
}
