//! A client's file: an entry is merged into it, and everything else stays as it is.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rialto_protocols::kit::ijson;
use serde_json::Value;
use tempfile::NamedTempFile;

use super::clients::{ENTRY, expand, new_file};
use super::json_edit::{self, Edit};
use crate::commands::{CliError, CliResult};

/// The table of servers in a TOML file.
const TOML_TABLE: &str = "mcp_servers";
/// How many lines of a diff stand around a change.
const CONTEXT_LINES: usize = 3;
/// How many links are followed from one to the next.
const LINKS_MAX: usize = 40;

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
        match &self.entry {
            Entry::Json(edits) => {
                let object = edits.iter().find_map(|edit| match edit {
                    Edit::Member { object, .. } => Some(*object),
                    Edit::Item { .. } => None,
                });
                Ok(read_json_entry(&text, object.unwrap_or_default()))
            }
            Entry::Toml(_) => {
                let table: toml::Table = text.parse().unwrap_or_default();
                let entry = table.get(TOML_TABLE).and_then(|servers| servers.get(ENTRY));
                Ok(entry.and_then(|entry| serde_json::to_value(entry).ok()).unwrap_or_default())
            }
        }
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
        let path = follow_links(path)?;
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

/// The entry in an object of a document. The rest may have what only other readers understand, such as
/// a number that no float can hold.
fn read_json_entry(text: &str, object: &str) -> Value {
    let json = ijson::read(text.as_bytes()).ok();
    let entry = json.as_ref().and_then(|json| json.get(object)?.get(ENTRY));
    entry.and_then(|entry| serde_json::from_str(entry.raw()).ok()).unwrap_or_default()
}

/// The file that a path leads to, also where it does not exist yet.
fn follow_links(path: PathBuf) -> CliResult<PathBuf> {
    let mut found = path.clone();
    for _ in 0..LINKS_MAX {
        if let Ok(whole) = fs::canonicalize(&found) {
            return Ok(whole);
        }
        let Ok(target) = fs::read_link(&found) else { return Ok(found) };
        // An absolute target replaces the whole path.
        found = found.parent().map_or_else(|| target.clone(), |above| above.join(&target));
    }
    let message = format!("{} is a link that leads nowhere", path.display());
    Err(CliError::failed(message, "remove it, or let it lead to a file"))
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

    /// The paths for a copy of the old file, in their order.
    fn backup_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        (0..u32::MAX).map(|number| {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            name.push(".bak");
            if number > 0 {
                name.push(format!(".{number}"));
            }
            self.path.with_file_name(name)
        })
    }

    /// Writes the file atomically; a copy of the old one stays beside it, and so do earlier copies.
    /// Returns the command that takes the change back.
    pub fn write(&self) -> CliResult<Vec<String>> {
        let failed = |error: io::Error| {
            let message = format!("cannot write {}: {error}", self.path.display());
            CliError::failed(message, "make it and its directory writable")
        };
        let above = self.path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        fs::create_dir_all(above).map_err(failed)?;
        let own = self.path.display().to_string();
        let undo = match &self.old {
            None => vec!["rm".to_owned(), own],
            Some(old) => {
                let kept = self.keep(above, old).map_err(failed)?;
                vec!["mv".to_owned(), kept.display().to_string(), own]
            }
        };
        let temporary = self.write_temporary(above, &self.new).map_err(failed)?;
        temporary.persist(&self.path).map_err(|error| failed(error.error))?;
        sync(above).map_err(failed)?;
        Ok(undo)
    }

    /// Writes a copy of the old file beside it, and returns its path.
    fn keep(&self, above: &Path, old: &str) -> io::Result<PathBuf> {
        let mut temporary = self.write_temporary(above, old)?;
        for path in self.backup_paths() {
            match temporary.persist_noclobber(&path) {
                Ok(_) => {
                    sync(above)?;
                    return Ok(path);
                }
                Err(taken) if taken.error.kind() == io::ErrorKind::AlreadyExists => {
                    temporary = taken.file;
                }
                Err(failed) => return Err(failed.error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// A file without its name yet, with the permissions of the old one.
    fn write_temporary(&self, above: &Path, text: &str) -> io::Result<NamedTempFile> {
        let mut temporary = NamedTempFile::new_in(above)?;
        temporary.write_all(text.as_bytes())?;
        if let Ok(found) = fs::metadata(&self.path) {
            temporary.as_file().set_permissions(found.permissions())?;
        }
        temporary.as_file().sync_all()?;
        Ok(temporary)
    }
}

/// Makes the names in a directory durable.
fn sync(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(directory)?.sync_all() } else { Ok(()) }
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
        let undo = change.write().expect("written");
        let copy = dir.path().join("mcp.json.bak");
        assert_eq!(fs::read_to_string(&path).expect("text"), "{\"a\":1}");
        assert_eq!(fs::read_to_string(&copy).expect("text"), "{}");
        for file in [&path, &copy] {
            assert_eq!(fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o640);
        }
        let words = ["mv".to_owned(), copy.display().to_string(), path.display().to_string()];
        assert_eq!(undo, words);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_is_followed_and_a_circle_refused() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        symlink("second", at("first")).expect("linked");
        symlink(at("third"), at("second")).expect("linked");
        assert_eq!(follow_links(at("first")).expect("followed"), at("third"));
        assert_eq!(follow_links(at("plain")).expect("followed"), at("plain"));
        symlink("circle", at("circle")).expect("linked");
        let refused = follow_links(at("circle")).expect_err("refused");
        assert!(refused.message.contains("leads nowhere"), "{}", refused.message);
    }
}
