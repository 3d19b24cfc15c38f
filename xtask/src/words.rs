//! Fails on names that the glossary has retired, so that they do not come back.
//!
//! `docs/glossary.md` ends with two lists: words that no identifier may contain, and words that may not be
//! the whole name of a type. Comments and strings are not checked: they are for a reviewer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const GLOSSARY: &str = "docs/glossary.md";
/// The headings of the two lists.
const IN_IDENTIFIERS: &str = "### Not in any identifier";
const AS_TYPES: &str = "### Not as the name of a type";
const FOLDERS: [&str; 4] = ["crates", "tests", "xtask/src", "fuzz/fuzz_targets"];
/// The name of a test is a sentence, and may use any word.
const SENTENCE: usize = 5;

/// Prints every identifier that has a retired word in it. `true` if there is none.
pub fn check() -> bool {
    let glossary = match fs::read_to_string(GLOSSARY) {
        Ok(text) => text,
        Err(error) => {
            println!("cannot read {GLOSSARY}: {error}");
            return false;
        }
    };
    let retired = Retired::read(&glossary);
    let mut files = Vec::new();
    for folder in FOLDERS {
        list_sources(Path::new(folder), &mut files);
    }
    let mut found = 0;
    for file in &files {
        let Ok(text) = fs::read_to_string(file) else { continue };
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        for name in stem.iter().filter(|stem| retired.has(stem)) {
            println!("{}: `{name}` is retired as the name of a file", file.display());
            found += 1;
        }
        for (line, name) in retired.used_in(&text) {
            println!("{}:{line}: `{name}` uses a retired word", file.display());
            found += 1;
        }
    }
    println!("{} files, {found} retired names (see the end of {GLOSSARY})", files.len());
    found == 0 && !retired.words.is_empty()
}

pub fn list_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            list_sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The two lists of the glossary.
struct Retired {
    words: BTreeSet<String>,
    types: BTreeSet<String>,
}

impl Retired {
    fn read(glossary: &str) -> Self {
        let list = |heading: &str| {
            let section = glossary.split(heading).nth(1).unwrap_or_default();
            let section = section.split("\n#").next().unwrap_or_default();
            section.split('`').skip(1).step_by(2).map(str::to_owned).collect()
        };
        Self { words: list(IN_IDENTIFIERS), types: list(AS_TYPES) }
    }

    fn has(&self, identifier: &str) -> bool {
        let parts = parts(identifier);
        parts.len() < SENTENCE && parts.iter().any(|part| self.words.contains(part))
    }

    /// The identifiers of a source text that are retired, with their lines.
    fn used_in(&self, source: &str) -> Vec<(usize, String)> {
        let mut used = Vec::new();
        let mut before = String::new();
        for (line, name) in identifiers(source) {
            let defines = ["struct", "enum", "trait", "type"].contains(&before.as_str());
            if self.has(&name) || defines && self.types.contains(&name) {
                used.push((line, name.clone()));
            }
            before = name;
        }
        used
    }
}

/// The words of `snake_case` and `CamelCase`, in lower case.
pub fn parts(identifier: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for letter in identifier.chars() {
        if letter == '_' || letter.is_uppercase() && was_lower {
            parts.push(String::new());
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
        if let Some(part) = parts.last_mut().filter(|_| letter != '_') {
            part.extend(letter.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Identifiers and keywords outside comments, strings and characters, with their lines.
fn identifiers(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(first) = rest.chars().next() {
        let (length, is_name) = token(rest, first);
        if is_name {
            found.push((line, rest[..length].to_owned()));
        }
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

/// How long the token at the start of `rest` is, and whether it is an identifier.
fn token(rest: &str, first: char) -> (usize, bool) {
    let whole = rest.len();
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(whole), false);
    }
    if rest.starts_with("/*") {
        return (rest.find("*/").map_or(whole, |end| end + 2), false);
    }
    let hashes = rest.strip_prefix('r').map(|raw| raw.len() - raw.trim_start_matches('#').len());
    if let Some(hashes) = hashes.filter(|count| rest[1 + count..].starts_with('"')) {
        let end = format!("\"{}", "#".repeat(hashes));
        let start = 2 + hashes;
        return (rest[start..].find(&end).map_or(whole, |at| start + at + end.len()), false);
    }
    if first == '"' {
        return (quoted(rest), false);
    }
    if first == '\'' {
        // A lifetime has no closing quote.
        let mut letters = rest.char_indices().skip(1);
        let escaped = rest[1..].starts_with('\\');
        let closing = letters.nth(1).filter(|(_, letter)| *letter == '\'').map(|(at, _)| at + 1);
        let length = if escaped { rest[3..].find('\'').map(|at| at + 4) } else { closing };
        return (length.unwrap_or(1), false);
    }
    if first.is_alphabetic() || first == '_' {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        return (rest.find(|letter| !is_part(letter)).unwrap_or(whole), true);
    }
    (first.len_utf8(), false)
}

/// The length of a string literal with its quotes.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOSSARY: &str = "# Words\n\n### Not in any identifier\n\n`desk`, `errand`\n\n\
        ### Not as the name of a type\n\n`Said`\n";

    fn names(source: &str) -> Vec<String> {
        Retired::read(GLOSSARY).used_in(source).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn a_retired_word_is_found_in_every_kind_of_identifier() {
        let source = "struct FrontDesk { desk_of: u8 }\nfn run_errand() {}\nmod desks;";
        assert_eq!(names(source), ["FrontDesk", "desk_of", "run_errand"]);
    }

    #[test]
    fn comments_strings_characters_and_sentences_may_use_it() {
        let source = "// desk\n/* desk */ let a = \"a \\\" desk\"; let b = r#\"desk\"#; let c = 'd';\n\
            fn a_desk_is_never_left_alone() {} fn f<'desk>() {}";
        assert_eq!(names(source), ["desk"]);
    }

    #[test]
    fn a_word_that_is_retired_for_types_is_fine_elsewhere() {
        assert_eq!(names("enum Said { A }\nlet said = Said::A;"), ["Said"]);
    }

    #[test]
    fn a_name_is_told_with_its_line() {
        assert_eq!(Retired::read(GLOSSARY).used_in("\n\nlet desk = 1;"), [(3, "desk".to_owned())]);
    }
}
