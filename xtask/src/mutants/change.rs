//! Mutants: small changes to one line of a file.

use std::fmt;
use std::fs;

/// Replacements. The formatter puts spaces around operators, which tells them from types.
const SWAPS: &[(&str, &str)] = &[
    (" == ", " != "),
    (" != ", " == "),
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" && ", " || "),
    (" || ", " && "),
    (" + ", " - "),
    (" - ", " + "),
    (" += ", " -= "),
    (" -= ", " += "),
    (".min(", ".max("),
    (".max(", ".min("),
    (".is_some()", ".is_none()"),
    (".is_none()", ".is_some()"),
    (".is_some_and(", ".is_none_or("),
    (".is_none_or(", ".is_some_and("),
    ("(true)", "(false)"),
    ("= true;", "= false;"),
    ("= false;", "= true;"),
    ("=> true", "=> false"),
    ("=> false", "=> true"),
    ("if !", "if "),
];

/// One mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub file: &'static str,
    /// Counted from 1.
    pub line: usize,
    pub before: String,
    pub after: String,
}

impl Change {
    /// Whether it is in a file, or on a line of it, written as in a report.
    pub fn is_in(&self, place: &str) -> bool {
        let (file, line) = place.split_once(':').unwrap_or((place, ""));
        self.file.ends_with(file) && (line.is_empty() || line == self.line.to_string())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (self.before.trim(), self.after.trim());
        match after.is_empty() {
            true => write!(f, "{}:{}: removed {before}", self.file, self.line),
            false => write!(f, "{}:{}: {before} → {after}", self.file, self.line),
        }
    }
}

/// All mutants of a file.
pub fn of(file: &'static str) -> Vec<Change> {
    let text = fs::read_to_string(file).unwrap_or_default();
    in_text(file, &text)
}

fn in_text(file: &'static str, text: &str) -> Vec<Change> {
    let lines: Vec<&str> = text.lines().collect();
    // Everything after this is tests.
    let end = lines.iter().position(|line| line.contains("#[cfg(test)]")).unwrap_or(lines.len());
    let code = lines[..end].iter().enumerate().filter(|(_, line)| is_code(line));
    code.flat_map(|(at, line)| {
        let change =
            |after: String| Change { file, line: at + 1, before: (*line).to_owned(), after };
        mistakes(line).into_iter().map(change).collect::<Vec<_>>()
    })
    .collect()
}

fn is_code(line: &str) -> bool {
    let line = line.trim_start();
    ![
        "//",
        "#[",
        "use ",
        "pub use ",
        "mod ",
        "pub mod ",
        "const ",
        "pub const ",
        "impl",
        "fn ",
        "pub fn ",
        "struct ",
        "pub struct ",
        // Not rules: logging, and code used only by tests.
        "tracing::",
        "debug_assert",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

fn mistakes(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (from, to) in SWAPS {
        for (at, _) in line.match_indices(from) {
            if !is_quoted(line, at) {
                out.push(format!("{}{to}{}", &line[..at], &line[at + from.len()..]));
            }
        }
    }
    if let Some(changed) = negated(line) {
        out.push(changed);
    }
    if is_statement(line) {
        out.push(String::new());
    }
    out
}

/// The line with its condition negated.
fn negated(line: &str) -> Option<String> {
    let start = line.find("if ").filter(|at| !line[..*at].contains("//"))?;
    let condition = line[start + 3..].strip_suffix(" {")?;
    let plain = !condition.starts_with("let ") && !condition.starts_with('!');
    plain.then(|| format!("{}if !({condition}) {{", &line[..start]))
}

/// A call that stands alone on its line and can be removed.
fn is_statement(line: &str) -> bool {
    let text = line.trim();
    let ends = text.ends_with(")?;") || text.ends_with(");");
    let opens = text.matches('(').count() == text.matches(')').count();
    ends && opens
        && !text.starts_with("let ")
        && !text.starts_with("return")
        && !text.starts_with('.')
        && !text.starts_with(')')
}

/// Whether a position is inside a string.
fn is_quoted(line: &str, at: usize) -> bool {
    line[..at].matches('"').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_made_in_code_and_nowhere_else() {
        let text = "use a;\n/// a == b\nfn f() -> bool {\n    if a < b && !c {\n        draft.put(x)?;\n    }\n    a == \" < \"\n}\n#[cfg(test)]\nmod t { a == b }\n";
        let found: Vec<(usize, String)> =
            in_text("f", text).into_iter().map(|c| (c.line, c.after.trim().to_owned())).collect();
        let wanted = [
            (4, "if a <= b && !c {"),
            (4, "if a < b || !c {"),
            (4, "if !(a < b && !c) {"),
            (5, ""),
            (7, "a != \" < \""),
        ];
        assert_eq!(found, wanted.map(|(line, text)| (line, text.to_owned())));
    }
}
