//! Estimates the cost of checking a value against a schema before checking it.
//!
//! The validator applies a schema to a value without a limit of its own. A schema that visits each
//! item twice does so at every level, which is 2⁶⁴ visits in 64 levels. So every visit it could
//! make is made here first, in steps that only count, and the counting itself stops at its limit.
//! One unit is about what the validator does in 20 ns.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::BadSchema;
use super::graph::{SchemaGraph, SchemaNode};
use crate::kit::ijson::{Json, JsonValue};

/// The maximum cost of one check.
const WORK_MAX: u64 = 5_000_000;
/// How many schemas may be nested during a check: they are all on the stack.
const STACK_MAX: usize = 400;
/// The maximum number of failures, in the worst case, for which they are listed.
const FAILURES_MAX: u64 = 100_000;
/// The maximum size of all failures together in bytes, in the worst case: their paths, what they
/// quote of the schema and, inside branches, the values they are about.
const COPIES_MAX: u64 = 32 * 1024 * 1024;
/// How much larger a value is in memory than as text.
const UNPACKED: u64 = 10;

/// The check would cost more than is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CostExceeded;

/// The counted cost.
#[derive(Debug, Default)]
pub(super) struct CheckCost {
    work: u64,
    failures: u64,
    copies: u64,
}

impl CheckCost {
    /// Counts the maximum cost of checking `json` against the whole schema.
    pub(super) fn of(plan: &SchemaGraph, json: &Json<'_>) -> Result<Self, CostExceeded> {
        let mut meter = Self::default();
        meter.look(plan, 0, json, Depth::default())?;
        Ok(meter)
    }

    /// Whether all failures can be listed. Otherwise the answer says only that there is one.
    pub(super) fn can_list_failures(&self) -> bool {
        self.failures <= FAILURES_MAX && self.copies <= COPIES_MAX
    }

    fn spend(&mut self, units: u64) -> Result<(), CostExceeded> {
        self.work = self.work.saturating_add(units);
        if self.work > WORK_MAX { Err(CostExceeded) } else { Ok(()) }
    }

    /// Counts the worst case: every keyword of a node fails, and each failure holds so many bytes.
    fn fail(&mut self, step: &SchemaNode, each: u64, once: u64) {
        self.failures = self.failures.saturating_add(step.assertions);
        let bytes = step.assertions.saturating_mul(each).saturating_add(step.quoted + once);
        self.copies = self.copies.saturating_add(bytes);
    }

    fn look(
        &mut self,
        plan: &SchemaGraph,
        at: usize,
        json: &Json<'_>,
        here: Depth,
    ) -> Result<(), CostExceeded> {
        let step = &plan.nodes[at];
        if here.stack == STACK_MAX {
            return Err(CostExceeded);
        }
        // A branch is tried before its failures are listed, and so is every branch inside it.
        self.spend(step.cost.saturating_mul(1 + here.branches))?;
        let bytes = json.raw().len() as u64;
        let value = if here.branches > 0 { bytes.saturating_mul(UNPACKED) } else { 0 };
        self.fail(step, here.path + value, if step.lists_names { bytes } else { 0 });
        let same = Depth {
            stack: here.stack + 1,
            branches: here.branches + u64::from(step.branches || step.unevaluated),
            ..here
        };
        let times = if step.unevaluated { 3 } else { 1 };
        for _ in 0..times {
            step.same_value.iter().try_for_each(|inner| self.look(plan, *inner, json, same))?;
        }
        let inside = Depth { branches: here.branches + u64::from(step.unevaluated), ..same };
        match json.value() {
            JsonValue::String(text) => self.text(step, text.len() as u64, here),
            JsonValue::Array(items) => self.list(plan, step, items, inside),
            JsonValue::Object(_) => self.object(plan, step, json, inside),
            JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => Ok(()),
        }
    }

    fn text(&mut self, step: &SchemaNode, bytes: u64, here: Depth) -> Result<(), CostExceeded> {
        let read = if step.reads_text { bytes / 4 } else { 0 };
        let matched = bytes.saturating_mul(step.pattern) / 8;
        self.spend((read + matched).saturating_mul(1 + here.branches))
    }

    fn list(
        &mut self,
        plan: &SchemaGraph,
        step: &SchemaNode,
        items: &[Json<'_>],
        inside: Depth,
    ) -> Result<(), CostExceeded> {
        if step.unique {
            let bytes: usize = items.iter().map(|item| item.raw().len()).sum();
            let plain = items.iter().all(|item| matches!(item.value(), JsonValue::String(_)));
            // Strings are compared by hash. Numbers and arrays can be made to collide, and are then
            // compared pair by pair.
            let count = items.len() as u64;
            let pairs = if plain { count } else { count.saturating_mul(count) / 32 };
            self.spend((bytes as u64 / 8 + pairs).saturating_mul(1 + inside.branches))?;
        }
        if step.prefix_items.is_empty() && step.items.is_empty() {
            return Ok(());
        }
        self.spend((items.len() as u64).saturating_mul(1 + inside.branches))?;
        let inside = Depth { path: inside.path + 5, ..inside };
        for (n, item) in items.iter().enumerate() {
            let first = step.prefix_items.get(n).into_iter();
            first.chain(&step.items).try_for_each(|inner| self.look(plan, *inner, item, inside))?;
        }
        Ok(())
    }

    fn object(
        &mut self,
        plan: &SchemaGraph,
        step: &SchemaNode,
        json: &Json<'_>,
        inside: Depth,
    ) -> Result<(), CostExceeded> {
        let JsonValue::Object(members) = json.value() else { return Ok(()) };
        for (name, value) in members {
            let bytes = name.len() as u64;
            // A lookup compares names, at worst to their ends.
            let tried = 1 + bytes / 32 + (bytes + 1).saturating_mul(step.name_patterns) / 8;
            self.spend(tried.saturating_mul(1 + inside.branches))?;
            let inside = Depth { path: inside.path + bytes + 1, ..inside };
            for inner in &step.names {
                self.name(plan, *inner, bytes, inside)?;
            }
            let own = step.member.get(name.as_ref()).into_iter();
            own.chain(&step.members)
                .try_for_each(|inner| self.look(plan, *inner, value, inside))?;
        }
        Ok(())
    }

    /// A name is checked as if it were a string value.
    fn name(
        &mut self,
        plan: &SchemaGraph,
        at: usize,
        bytes: u64,
        here: Depth,
    ) -> Result<(), CostExceeded> {
        let step = &plan.nodes[at];
        self.spend(step.cost.saturating_mul(1 + here.branches))?;
        self.fail(step, here.path + bytes, 0);
        self.text(step, bytes, here)?;
        // Schemas for the same value are at most `NESTED_MAX` deep.
        let here = Depth { branches: here.branches + 1, ..here };
        step.same_value.iter().try_for_each(|inner| self.name(plan, *inner, bytes, here))
    }
}

/// The current place in the walk.
#[derive(Clone, Copy, Default)]
struct Depth {
    /// Schemas on the stack.
    stack: usize,
    /// How many of them keep failures apart.
    branches: u64,
    /// Bytes of the path to the value.
    path: u64,
}

/// How many schemas one value may have to satisfy at one place, with references expanded.
const EXPANDED_MAX: u64 = 20_000;
/// How deeply they may be nested.
const NESTED_MAX: usize = 64;

/// Refuses a schema that applies itself to one value endlessly, too often or too deeply, before any
/// value is known.
///
/// A schema applies others to the same value: `allOf`, `anyOf`, `$ref` and similar keywords. Their
/// expansion must end (a loop among them would never consume anything), must not be too large (a →
/// b, b; b → c, c; … doubles with every step) and must not nest too deeply on the stack.
pub(super) fn check_expansion(plan: &SchemaGraph) -> Result<(), BadSchema> {
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

/// The largest compiled pattern, in bytes, and the largest cache it may have.
pub(super) const PATTERN_SIZE_MAX: usize = 128 * 1024;
/// How many patterns one schema may have: together with [`PATTERN_SIZE_MAX`] this bounds a schema's memory.
pub(super) const PATTERNS_MAX: usize = 64;
/// Assumed for ECMAScript patterns that this parser cannot read. A larger one does not fit into
/// [`PATTERN_SIZE_MAX`].
const UNKNOWN: u64 = 4_096;

/// The approximate number of states of a pattern: how much work it is per byte of the text it is
/// matched against.
///
/// The engine is linear in the text, but its factor is the size of the pattern: a bounded repeat of
/// a wide class is thousands of states, each of which may be active at every byte.
pub(super) fn estimate_states(pattern: &str) -> u64 {
    regex_syntax::parse(pattern).map_or(UNKNOWN, |hir| states(&hir)).clamp(1, UNKNOWN)
}

fn states(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        // Up to four bytes per range of characters.
        HirKind::Class(Class::Unicode(class)) => 4 * class.ranges().len() as u64,
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64,
        HirKind::Repetition(again) => {
            let times = again.max.unwrap_or(again.min.saturating_add(1)).max(1);
            states(&again.sub).saturating_mul(u64::from(times))
        }
        HirKind::Capture(group) => states(&group.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(1, |sum, part| sum.saturating_add(states(part)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_weigh_as_much_as_what_they_repeat() {
        assert!(estimate_states("^[a-z0-9-]+$") < 40);
        assert!(estimate_states("(a+)+$") < 20);
        assert!(estimate_states("[01]*1[01]{2000}$") > 2_000);
        assert_eq!(estimate_states("((a{900}){900}){900}"), UNKNOWN);
        assert_eq!(estimate_states("(?=a)"), UNKNOWN);
    }
}
