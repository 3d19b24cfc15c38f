//! A client's file: an entry is merged into it, and everything else stays as it is.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::NamedTempFile;

use super::clients::{ENTRY, expand, new_file};
use super::json_edit::{self, Edit};
use crate::commands::{CliError, CliResult};

/// The table of servers in a TOML file.
const TOML_TABLE: &str = "mcp_servers";
/// How many lines of a diff stand around a change.
const CONTEXT_LINES: usize = 3;

/// A file, and what is to stand in it.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// The path as people write it.
    pub shown: &'static str,
    /// The path of the same file inside a project.
    pub project: Option<&'static str>,
    entry: Entry,
}

#[derive(Clone, Debug)]
enum Entry {
    Json(Vec<Edit>),
    /// Only the client's own command writes it.
    Toml(String),
}

/// A file with its new text, not written yet.
#[derive(Debug)]
pub struct Change {
    /// The file itself, where the path is a link.
    path: PathBuf,
    /// `None` for a new file.
    old: Option<String>,
    new: String,
}

impl ConfigFile {
    pub fn json(shown: &'static str, edits: Vec<Edit>) -> Self {
        Self { shown, project: None, entry: Entry::Json(edits) }
    }

    pub fn toml(shown: &'static str, text: String) -> Self {
        Self { shown, project: None, entry: Entry::Toml(text) }
    }

    /// The same entry can stand in a file of a project.
    pub fn in_project(self, project: Option<&'static str>) -> Self {
        Self { project, ..self }
    }

    /// The entry for programs: JSON, or TOML text.
    pub fn to_json(&self) -> Value {
        match &self.entry {
            Entry::Json(edits) => {
                serde_json::from_str(&json_edit::document(edits)).unwrap_or_default()
            }
            Entry::Toml(text) => Value::from(text.as_str()),
        }
    }

    /// The entry for people.
    pub fn text(&self) -> String {
        match &self.entry {
            Entry::Json(edits) => json_edit::pretty_document(edits),
            Entry::Toml(text) => text.trim_end().to_owned(),
        }
    }

    /// The entry that the file has now; `null` if it has none.
    pub fn read_entry(&self) -> CliResult<Value> {
        let path = self.path()?;
        let text = fs::read_to_string(&path)
            .map_err(|error| CliError::plain(format!("cannot read {}: {error}", path.display())))?;
        let (json, object) = match &self.entry {
            Entry::Json(edits) => {
                let object = edits.iter().find_map(|edit| match edit {
                    Edit::Member { object, .. } => Some(*object),
                    Edit::Item { .. } => None,
                });
                (serde_json::from_str(&text).unwrap_or_default(), object.unwrap_or_default())
            }
            Entry::Toml(_) => {
                let table: toml::Table = text.parse().unwrap_or_default();
                (serde_json::to_value(table).unwrap_or_default(), TOML_TABLE)
            }
        };
        let entry: Option<&Value> = json.get(object).and_then(|servers| servers.get(ENTRY));
        Ok(entry.cloned().unwrap_or_default())
    }

    fn path(&self) -> CliResult<PathBuf> {
        expand(self.shown).ok_or_else(|| {
            let message = format!("cannot find {}: no home directory is set", self.shown);
            CliError::usage(message, "set HOME")
        })
    }

    /// The change of the file, if it can be edited.
    pub fn plan(&self) -> CliResult<Change> {
        let Entry::Json(edits) = &self.entry else {
            return Err(CliError::plain(format!("{} is not edited", self.shown)));
        };
        let path = self.path()?;
        let path = fs::canonicalize(&path).unwrap_or(path);
        let old = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(not_edited(&path, "it is not valid UTF-8"));
            }
            Err(error) => {
                return Err(CliError::plain(format!("cannot read {}: {error}", path.display())));
            }
        };
        let new = match &old {
            None => new_file(edits),
            Some(text) => {
                json_edit::apply(text, edits).map_err(|error| not_edited(&path, &error.0))?
            }
        };
        Ok(Change { path, old, new })
    }
}

fn not_edited(path: &Path, why: &str) -> CliError {
    let message = format!("{} is not plain JSON, so it was not changed: {why}", path.display());
    CliError::conflict(message, "add the entry by hand: the same command with --print shows it")
}

impl Change {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file has the entry already.
    pub fn is_done(&self) -> bool {
        self.old.as_ref() == Some(&self.new)
    }

    /// The changed lines with some around them.
    pub fn diff(&self) -> String {
        let old: Vec<&str> = self.old.as_deref().unwrap_or_default().lines().collect();
        let new: Vec<&str> = self.new.lines().collect();
        let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let rest = old.len().min(new.len()) - start;
        let ends = old.iter().rev().zip(new.iter().rev());
        let end = ends.take(rest).take_while(|(old, new)| old == new).count();
        let before = start.saturating_sub(CONTEXT_LINES);
        let after = (new.len() - end + CONTEXT_LINES).min(new.len());
        let parts = [
            (' ', &new[before..start]),
            ('-', &old[start..old.len() - end]),
            ('+', &new[start..new.len() - end]),
            (' ', &new[new.len() - end..after]),
        ];
        let lines = parts
            .iter()
            .flat_map(|(mark, lines)| lines.iter().map(move |line| format!("{mark} {line}")));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The path of the copy of the old file.
    pub fn backup_path(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".bak");
        self.path.with_file_name(name)
    }

    /// Writes the file atomically; a copy of the old one stays beside it.
    pub fn write(&self) -> CliResult<()> {
        let failed = |error: io::Error| {
            let message = format!("cannot write {}: {error}", self.path.display());
            CliError::failed(message, "make it and its directory writable")
        };
        if self.is_done() {
            return Ok(());
        }
        let above = self.path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        fs::create_dir_all(above).map_err(failed)?;
        if self.old.is_some() {
            replace(above, &self.path, &self.backup_path(), self.old.as_deref()).map_err(failed)?;
        }
        replace(above, &self.path, &self.path, Some(&self.new)).map_err(failed)
    }

    /// How to take the change back.
    pub fn undo(&self) -> Vec<String> {
        let own = self.path.display().to_string();
        match &self.old {
            None => vec!["rm".to_owned(), own],
            Some(_) => vec!["mv".to_owned(), self.backup_path().display().to_string(), own],
        }
    }
}

/// Writes a file in one step, with the permissions of another if that exists.
fn replace(above: &Path, like: &Path, to: &Path, text: Option<&str>) -> io::Result<()> {
    let mut temporary = NamedTempFile::new_in(above)?;
    temporary.write_all(text.unwrap_or_default().as_bytes())?;
    if let Ok(found) = fs::metadata(like) {
        temporary.as_file().set_permissions(found.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(to).map_err(|failed| failed.error)?;
    if cfg!(unix) { fs::File::open(above)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: PathBuf, old: Option<&str>, new: &str) -> Change {
        Change { path, old: old.map(str::to_owned), new: new.to_owned() }
    }

    #[test]
    fn a_diff_shows_what_changed_and_some_lines_around() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n";
        let new = "1\n2\n3\n4\n5x\nnew\n6\n7\n8\n";
        let diff = change(PathBuf::from("f"), Some(old), new).diff();
        assert_eq!(diff, "  2\n  3\n  4\n- 5\n+ 5x\n+ new\n  6\n  7\n  8");
        assert_eq!(change(PathBuf::from("f"), None, "{\n}\n").diff(), "+ {\n+ }");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_keeps_its_permissions_and_a_copy_of_it_stays() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("mcp.json");
        fs::write(&path, "{}").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
        let change = change(path.clone(), Some("{}"), "{\"a\":1}");
        change.write().expect("written");
        assert_eq!(fs::read_to_string(&path).expect("text"), "{\"a\":1}");
        assert_eq!(fs::read_to_string(change.backup_path()).expect("text"), "{}");
        for file in [&path, &change.backup_path()] {
            assert_eq!(fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o640);
        }
        let [program, from, to] = &change.undo()[..] else { panic!("three words") };
        assert_eq!((program.as_str(), to.as_str()), ("mv", &*path.display().to_string()));
        assert!(from.ends_with("mcp.json.bak"));
    }
}
