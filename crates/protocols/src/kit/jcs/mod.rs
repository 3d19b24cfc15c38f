//! RFC 8785: the one text of a JSON value that everybody who signs or checks it arrives at.
//!
//! It is written straight from a strictly read tree, whose numbers are still text: so an integer
//! that is too large can be told from a double that is, a refusal can say where it stands, and one
//! member can be left out without copying the rest. The crate that does the same for serde values
//! would have none of that, and keeps a buffer for every member; in the tests it is a second opinion.

mod number;
mod order;
mod string;

use super::fields::Malformed;
use super::ijson::{Json, Kind};

pub use number::{BadNumber, SAFE_MAX, number, token};
pub use string::string;

/// A number stands in the tree that has no canonical text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {why}")]
pub struct Uncanonical {
    /// JSON pointer to the number; names of others in it are cut.
    pub field: String,
    /// What is wrong with it.
    pub why: BadNumber,
}

impl From<Uncanonical> for Malformed {
    fn from(bad: Uncanonical) -> Self {
        let name = match bad.field.rsplit_once('/') {
            Some((_, name)) => name.replace("~1", "/").replace("~0", "~"),
            None => "body".to_owned(),
        };
        Self { message: format!("{name} {}", bad.why), field: bad.field }
    }
}

/// One member that is written otherwise than it stands in the tree.
#[derive(Clone, Copy, Debug)]
pub struct Edit<'e> {
    /// Names from the outermost object down to the member.
    pub path: &'e [&'e str],
    /// Canonical JSON text to write instead; `None` leaves the member out. A member that is not
    /// there is not added.
    pub to: Option<&'e str>,
}

/// The canonical text of `json`. It says the same as `json`, yet need not be as readable: a double
/// from 2^53 up to 1e21 is printed as the whole number that a strict reader refuses in a text.
pub fn canonical(json: &Json<'_>) -> Result<String, Uncanonical> {
    written(json, None)
}

/// The canonical text of what `json` would be with one member changed.
pub fn canonical_with(json: &Json<'_>, edit: Edit<'_>) -> Result<String, Uncanonical> {
    written(json, Some(edit))
}

fn written(json: &Json<'_>, edit: Option<Edit<'_>>) -> Result<String, Uncanonical> {
    // Only numbers, and escapes nobody needs, make the canonical text longer than the given one.
    let mut out = String::with_capacity(json.raw().len());
    value(&mut out, json, edit).map_err(Trail::into_error)?;
    Ok(out)
}

/// Where a bad number stands, gathered from the inside out.
struct Trail {
    why: BadNumber,
    names: Vec<String>,
}

impl Trail {
    fn inside(mut self, name: &str) -> Self {
        /// Characters of a name that are shown, so that an error stays short.
        const SHOWN_MAX: usize = 64;
        let shown: String = name.chars().take(SHOWN_MAX).collect();
        self.names.push(shown.replace('~', "~0").replace('/', "~1"));
        self
    }

    fn into_error(self) -> Uncanonical {
        let field = self.names.iter().rev().flat_map(|name| ["/", name]).collect();
        Uncanonical { field, why: self.why }
    }
}

fn value(out: &mut String, json: &Json<'_>, edit: Option<Edit<'_>>) -> Result<(), Trail> {
    match json.kind() {
        Kind::Null => out.push_str("null"),
        Kind::Bool(true) => out.push_str("true"),
        Kind::Bool(false) => out.push_str("false"),
        Kind::Number(digits) => {
            number::push(out, digits).map_err(|why| Trail { why, names: Vec::new() })?;
        }
        Kind::Text(text) => string(out, text),
        Kind::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                value(out, item, None).map_err(|trail| trail.inside(&at.to_string()))?;
            }
            out.push(']');
        }
        Kind::Object(members) => {
            out.push('{');
            // What was written by machine is often in order already.
            if members.is_sorted_by(|a, b| order::utf16(&a.0, &b.0).is_lt()) {
                object(out, members.iter(), edit)?;
            } else {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_unstable_by(|a, b| order::utf16(&a.0, &b.0));
                object(out, sorted.into_iter(), edit)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn object<'t>(
    out: &mut String,
    members: impl Iterator<Item = &'t (std::borrow::Cow<'t, str>, Json<'t>)>,
    edit: Option<Edit<'_>>,
) -> Result<(), Trail> {
    let mut first = true;
    for (name, member) in members {
        // The rest of the edit, if it is about this member or something inside.
        let below = edit.and_then(|edit| match edit.path {
            [head, rest @ ..] if head == name => Some(Edit { path: rest, to: edit.to }),
            _ => None,
        });
        let here = below.filter(|edit| edit.path.is_empty());
        if matches!(here, Some(Edit { to: None, .. })) {
            continue;
        }
        if !first {
            out.push(',');
        }
        first = false;
        string(out, name);
        out.push(':');
        match here.and_then(|edit| edit.to) {
            Some(text) => out.push_str(text),
            None => value(out, member, below).map_err(|trail| trail.inside(name))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
