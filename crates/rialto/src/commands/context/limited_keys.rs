//! Limited keys, which a context keeps for programs that act for the caller: `rialto mcp`, and clients
//! that `rialto connect` sets up.

use std::path::PathBuf;

use super::{Context, home};
use crate::commands::{CliResult, KeyFile, key_file};

/// Begins the line with the hub's id of the key, by which it is revoked.
const ID_LINE: &str = "key_id ";

impl Context {
    /// Path of a limited key, whether or not it exists.
    pub fn limited_key_path(&self, name: &str) -> Option<PathBuf> {
        Some(self.directory()?.join(format!("{name}.key")))
    }

    /// A limited key, if it is kept.
    pub fn load_limited_key(&self, name: &str) -> CliResult<Option<KeyFile>> {
        let path = self.limited_key_path(name).filter(|path| path.exists());
        let Some(path) = path else { return Ok(None) };
        Ok(Some(KeyFile { hub: Some(self.hub.clone()), ..key_file::load(&path)? }))
    }

    /// Keeps a limited key, and returns the id of the one it replaces. One of another agent has an id
    /// that means nothing now: its hub was reset.
    pub fn save_limited_key(
        &self,
        name: &str,
        keys: &KeyFile,
        id: &str,
    ) -> CliResult<Option<String>> {
        self.ensure_dir()?;
        let path = self.limited_key_path(name).unwrap_or_default();
        let before = home::read_optional(&path)?.unwrap_or_default();
        let is_same_agent = KeyFile::read(&before)
            .is_some_and(|before| before.agent_id.is_some() && before.agent_id == keys.agent_id);
        let replaced = before.lines().find_map(|line| line.strip_prefix(ID_LINE));
        let replaced = replaced.filter(|_| is_same_agent);
        let keys = KeyFile { hub: Some(self.hub.clone()), ..keys.clone() };
        let text = format!("{}{ID_LINE}{id}\n", keys.to_text());
        key_file::write_atomically(&path, &text)
            .map_err(|error| home::write_error(&path, &error))?;
        Ok(replaced.map(str::to_owned))
    }
}
