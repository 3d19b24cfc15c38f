//! The home directory of the command line: its contexts, which is current, their names and the addresses
//! of their hubs.

use std::path::{Path, PathBuf};
use std::{fs, io};

use reqwest::Url;

use super::Context;
use crate::commands::{CliError, CliResult, key_file};

/// The file with the name of the current context.
const CURRENT: &str = "current";
/// The directory with one subdirectory per context.
const CONTEXTS: &str = "contexts";

/// Where contexts and their keys are stored.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// `RIALTO_HOME`, or `rialto` in the user's configuration directory.
    pub fn find() -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        // The XDG specification says to ignore relative paths.
        let absolute = |name: &str| set(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let own = set("RIALTO_HOME").map(PathBuf::from);
        let shared = || absolute("XDG_CONFIG_HOME").map(|path| path.join("rialto"));
        let users = || absolute("HOME").map(|path| path.join(".config/rialto"));
        own.or_else(shared).or_else(users).map(Self)
    }

    /// The same, or an error for commands that save something.
    pub fn require() -> CliResult<Self> {
        Self::find().ok_or_else(|| {
            let message = "no home directory is set";
            CliError::usage(message, "set RIALTO_HOME")
        })
    }

    #[cfg(test)]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The directory of a context, whether or not it exists.
    pub fn directory_of(&self, name: &str) -> PathBuf {
        self.0.join(CONTEXTS).join(name)
    }

    /// The name of the current context, if one is set.
    pub fn current(&self) -> CliResult<Option<String>> {
        let path = self.0.join(CURRENT);
        let Some(text) = read_optional(&path)? else { return Ok(None) };
        let name = text.trim().to_owned();
        if is_valid_name(&name) {
            return Ok(Some(name));
        }
        let message = format!("{} does not contain a context name", path.display());
        Err(CliError::usage(message, "choose one with `rialto context use NAME`"))
    }

    /// Makes a context the current one.
    pub fn set_current(&self, name: &str) -> CliResult<()> {
        let path = self.0.join(CURRENT);
        let written = key_file::create_dir(&self.0)
            .and_then(|()| key_file::write_atomically(&path, &format!("{name}\n")));
        written.map_err(|error| write_error(&path, &error))
    }

    /// Makes a context the current one if there is none.
    pub fn set_current_if_none(&self, name: &str) -> CliResult<()> {
        if self.current()?.is_none() { self.set_current(name) } else { Ok(()) }
    }

    /// Unsets the current context.
    pub fn clear_current(&self) -> CliResult<()> {
        remove_optional(&self.0.join(CURRENT))
    }

    /// All saved contexts, by name.
    pub fn contexts(&self) -> CliResult<Vec<Context>> {
        let mut names = list_dir(&self.0.join(CONTEXTS))?;
        names.retain(|name| is_valid_name(name));
        names.iter().filter_map(|name| Context::load(self, name).transpose()).collect()
    }
}

/// The text of a file, if it exists.
pub fn read_optional(path: &Path) -> CliResult<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(read_error(path, &error)),
    }
}

/// Removes a file, if it exists.
pub fn remove_optional(path: &Path) -> CliResult<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(write_error(path, &error)),
        _ => Ok(()),
    }
}

/// The sorted entries of a directory; empty if it does not exist.
pub fn list_dir(path: &Path) -> CliResult<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(read_error(path, &error)),
    };
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

pub fn read_error(path: &Path, error: &io::Error) -> CliError {
    let message = format!("cannot read {}: {error}", path.display());
    CliError::failed(message, "`rialto doctor` checks the files of the command line")
}

pub fn write_error(path: &Path, error: &io::Error) -> CliError {
    let message = format!("cannot write {}: {error}", path.display());
    CliError::failed(message, "make it writable, or set RIALTO_HOME to another directory")
}

/// The maximum length.
const CHARACTERS_MAX: usize = 64;

/// Whether a name is valid.
pub fn is_valid_name(name: &str) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=CHARACTERS_MAX).contains(&name.len()) && name.bytes().all(fits)
}

/// The same, with an error for names from the command line.
pub fn check_name(name: &str) -> CliResult<()> {
    if is_valid_name(name) {
        return Ok(());
    }
    let message = format!("{name:?} is not a valid name");
    Err(CliError::usage(message, "write 1 to 64 of a-z, 0-9, - and _"))
}

/// Turns other text, such as a host, into a valid name.
pub fn slug(text: &str) -> String {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let plain = text.to_ascii_lowercase().replace(|c: char| !fine(c), "-");
    match plain.trim_matches('-') {
        "" => "hub".to_owned(),
        plain => plain.chars().take(CHARACTERS_MAX).collect(),
    }
}

/// Validates a hub URL and returns it in normalized form.
pub fn normalize(text: &str) -> CliResult<String> {
    let fine = |url: &Url| {
        let plain = url.query().is_none() && url.fragment().is_none();
        let open = url.username().is_empty() && url.password().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && plain && open
    };
    match Url::parse(text).ok().filter(fine) {
        Some(url) => Ok(url.as_str().trim_end_matches('/').to_owned()),
        None => {
            let message = format!("{text:?} is not a hub URL");
            Err(CliError::usage(message, "write it like http://127.0.0.1:7425"))
        }
    }
}

/// Whether both are URLs of one hub. An invalid URL matches nothing.
pub fn is_same_hub(one: &str, other: &str) -> bool {
    matches!((normalize(one), normalize(other)), (Ok(one), Ok(other)) if one == other)
}

/// Host, port and path, without the scheme.
pub fn without_scheme(text: &str) -> &str {
    text.split_once("://").map_or(text, |(_, rest)| rest).trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_lead_out_of_their_directory() {
        for fine in ["default", "a", "0", "my-hub_2", &"x".repeat(64)] {
            assert!(is_valid_name(fine), "{fine}");
        }
        for not in ["", ".", "..", "a/b", "A", "ä", "a b", "a\n", &"x".repeat(65)] {
            assert!(check_name(not).is_err(), "{not:?}");
        }
        assert_eq!(slug("Hub.Example:7425"), "hub-example-7425");
        assert_eq!(slug("[::1]:7425"), "1--7425");
        assert_eq!(slug("[::]"), "hub");
    }

    #[test]
    fn one_hub_may_be_written_in_several_ways() {
        assert!(is_same_hub("http://Hub.example:80/", "HTTP://hub.example"));
        assert!(is_same_hub("http://h/a/", "http://h/a"));
        for other in ["https://h", "http://h:81", "http://h/a", "http://h.", "h", ""] {
            assert!(!is_same_hub("http://h", other), "{other}");
        }
        assert!(!is_same_hub("h", "h"), "invalid URLs never match");
    }

    #[test]
    fn an_address_is_a_web_address_and_nothing_more() {
        assert_eq!(normalize("http://h:7425/").expect("fine"), "http://h:7425");
        for not in ["h:7425", "ftp://h", "http://", "http://a:b@h", "http://h?x", "http://h#x"] {
            assert!(normalize(not).is_err(), "{not}");
        }
    }
}
