//! Keys, which authenticate a caller to a server, and the files that hold them.
//!
//! In a key file the key is alone on the first line, so that other programs can read it with
//! `head -n 1`; related data is on the following lines. A file that contains only a key is valid too.
//! The `rialto` command reads and writes the same files.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::private_files;
use crate::webhook_signature::WebhookSecret;

/// Maximum file size in bytes.
const BYTES_MAX: u64 = 64 << 10;

/// An agent's or operator's key. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Creates a key from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key's text, to store it or send it to its server.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// The contents of a key file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// The key.
    pub key: Key,
    /// The id of the agent the key belongs to.
    pub agent_id: Option<String>,
    /// The server it is for.
    pub hub: Option<String>,
    /// The secret with which that server signs its webhooks.
    pub webhook_secret: Option<WebhookSecret>,
}

impl KeyFile {
    /// A key without related data.
    pub fn from_key(key: &str) -> Self {
        Self { key: Key::new(key), agent_id: None, hub: None, webhook_secret: None }
    }

    /// Reads a file. Returns `InvalidData` if the first line is not a key.
    pub fn load(path: &Path) -> io::Result<Self> {
        let mut text = String::new();
        File::open(path)?.take(BYTES_MAX).read_to_string(&mut text)?;
        let no_key = || io::Error::new(io::ErrorKind::InvalidData, "the first line is not a key");
        Self::read(&text).ok_or_else(no_key)
    }

    /// Writes the key to a file that only its owner can read, replacing the previous contents.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        private_files::write_atomically(path, &self.to_text())
    }

    /// Reads the text of a file. Returns `None` if the first line is not a key.
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let key = lines.next()?.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut file = Self::from_key(key);
        for (name, value) in lines.filter_map(|line| line.trim().split_once(' ')) {
            match name {
                "agent_id" => file.agent_id = Some(value.to_owned()),
                "hub" => file.hub = Some(value.to_owned()),
                "webhook_secret" => file.webhook_secret = WebhookSecret::read(value),
                // Ignored, so that later versions can add lines.
                _ => {}
            }
        }
        Some(file)
    }

    /// The text of the file, including the key.
    pub fn to_text(&self) -> String {
        let secret = self.webhook_secret.as_ref().map(WebhookSecret::reveal);
        let mut text = format!("{}\n", self.key.reveal());
        for (name, value) in
            [("agent_id", &self.agent_id), ("hub", &self.hub), ("webhook_secret", &secret)]
        {
            if let Some(value) = value {
                text.push_str(&format!("{name} {value}\n"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_revealed_only_on_purpose() {
        let key = Key::new("ca_secret");
        assert_eq!(key.reveal(), "ca_secret");
        assert_eq!(format!("{key:?}"), "Key(…)");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let secret = WebhookSecret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let keys = KeyFile {
            key: Key::new("ca_1"),
            agent_id: Some("你的agent@chorus".to_owned()),
            hub: Some("http://127.0.0.1:7425".to_owned()),
            webhook_secret: secret,
        };
        assert!(keys.to_text().starts_with("ca_1\nagent_id 你的agent@chorus\nhub http://"));
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a.key");
        keys.write(&path).expect("written");
        assert_eq!(KeyFile::load(&path).expect("a key"), keys);
    }

    #[test]
    fn a_key_alone_is_a_key_file() {
        assert_eq!(KeyFile::read("ca_1"), Some(KeyFile::from_key("ca_1")));
        assert_eq!(KeyFile::read(" ca_1 \r\nfuture things\n\n"), Some(KeyFile::from_key("ca_1")));
        for none in ["", "\n", "\nca_1", "two words", "ключ"] {
            assert_eq!(KeyFile::read(none), None, "{none:?}");
        }
    }
}
