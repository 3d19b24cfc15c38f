//! Bounds what one value can cost at one place of a schema, before any value is known.
//!
//! A schema applies others to the same value: `allOf`, `anyOf`, `$ref` and similar keywords. Their
//! expansion must end (a loop among them would never consume anything), must not be too large (a →
//! b, b; b → c, c; … doubles with every step) and must not nest too deeply on the stack.

use super::error::BadSchema;
use super::graph::SchemaGraph;

/// How many schemas one value may have to satisfy at one place, with references expanded.
const EXPANDED_MAX: u64 = 20_000;
/// How deeply they may be nested.
const NESTED_MAX: usize = 64;

/// Refuses a schema that applies itself to one value endlessly, too often or too deeply.
pub(super) fn check(plan: &SchemaGraph) -> Result<(), BadSchema> {
    let mut walk = ExpansionCheck { plan, known: vec![NodeState::New; plan.nodes.len()] };
    (0..plan.nodes.len()).try_for_each(|at| walk.expanded(at, 0).map(|_| ()))
}

#[derive(Clone, Copy)]
enum NodeState {
    New,
    Open,
    Done(u64),
}

struct ExpansionCheck<'a> {
    plan: &'a SchemaGraph,
    known: Vec<NodeState>,
}

impl ExpansionCheck<'_> {
    /// How many schemas this one expands to. [`NESTED_MAX`] bounds the recursion.
    fn expanded(&mut self, at: usize, depth: usize) -> Result<u64, BadSchema> {
        let step = &self.plan.nodes[at];
        match self.known[at] {
            NodeState::Done(count) => return Ok(count),
            NodeState::Open => {
                let why =
                    "refers to itself without descending into the value, which would never end";
                return Err(BadSchema::at(&step.pointer, why));
            }
            NodeState::New if depth >= NESTED_MAX => {
                let why = format!("is nested in more than {NESTED_MAX} schemas for the same value");
                return Err(BadSchema::at(&step.pointer, why));
            }
            NodeState::New => self.known[at] = NodeState::Open,
        }
        // Finding out what was evaluated visits all of it again, and again inside that.
        let times = if step.unevaluated { 3 } else { 1 };
        let mut count = 1_u64;
        for inner in &step.same_value {
            let inner = self.expanded(*inner, depth + 1)?;
            count = count.saturating_add(inner.saturating_mul(times));
        }
        if count > EXPANDED_MAX {
            let why =
                format!("expands to more than {EXPANDED_MAX} schemas when references are resolved");
            return Err(BadSchema::at(&step.pointer, why));
        }
        self.known[at] = NodeState::Done(count);
        Ok(count)
    }
}
