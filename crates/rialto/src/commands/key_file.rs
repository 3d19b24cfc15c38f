//! Key files: an agent's key on the first line, and on the lines after it what belongs to it.
//!
//! The key stands alone on its line, so that `head -n 1` is all another program needs. A file with
//! nothing but a key is a key file as well.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rialto_client::relay::{Key, WebhookSecret};

use super::keep;
use super::trouble::Trouble;

/// The longest file that is read.
const BYTES_MAX: u64 = 64 << 10;

/// What a key file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    pub key: Key,
    /// Whose key it is.
    pub agent_id: Option<String>,
    /// The server it is for.
    pub hub: Option<String>,
    /// What that server signs its calls with.
    pub webhook_secret: Option<WebhookSecret>,
}

/// A file that is reserved for a key; removed again unless the key comes.
pub struct Reserved {
    path: PathBuf,
    file: File,
    filled: bool,
}

impl KeyFile {
    /// A key of which nothing else is known.
    pub fn of(key: &str) -> Self {
        Self { key: Key::new(key), agent_id: None, hub: None, webhook_secret: None }
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, Trouble> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
        let shown = path.display();
        let make = format!("`rialto agent register NAME --key-out {shown}` makes a key file");
        match read {
            Err(error) => Err(Trouble::usage(format!("cannot read {shown}: {error}"), make)),
            Ok(_) => Self::read(&text).ok_or_else(|| {
                Trouble::usage(format!("{shown} has no key on its first line"), make)
            }),
        }
    }

    /// Writes the key to a file, in the place of what was there.
    pub fn replace(&self, path: &Path) -> io::Result<()> {
        keep::file(path, &self.text())
    }

    /// Writes the key to a new file; `false` if there is one already.
    pub fn keep_new(&self, path: &Path) -> io::Result<bool> {
        keep::new_file(path, &self.text())
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let key = lines.next()?.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut file = Self::of(key);
        for (name, value) in lines.filter_map(|line| line.trim().split_once(' ')) {
            match name {
                "agent_id" => file.agent_id = Some(value.to_owned()),
                "hub" => file.hub = Some(value.to_owned()),
                "webhook_secret" => file.webhook_secret = WebhookSecret::read(value),
                // For readers to come.
                _ => {}
            }
        }
        Some(file)
    }

    fn text(&self) -> String {
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

impl Reserved {
    /// Makes an empty file that only its owner may read; one that is there already is kept.
    pub fn new(path: &Path) -> Result<Self, Trouble> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(path) {
            Ok(file) => Ok(Self { path: path.to_owned(), file, filled: false }),
            Err(error) => {
                let message = format!("cannot create {}: {error}", path.display());
                Err(Trouble::usage(message, "name a file that does not exist yet"))
            }
        }
    }

    /// Writes the key, for good.
    pub fn fill(self, keys: &KeyFile) -> io::Result<()> {
        self.write(&keys.text())
    }

    /// Writes a text that holds a key of another kind, for good.
    pub fn write(mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.file.sync_all()?;
        self.filled = true;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.filled {
            // An empty file that stays behind harms nobody.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let secret = WebhookSecret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let keys = KeyFile {
            key: Key::new("ca_1"),
            agent_id: Some("你的agent@chorus".to_owned()),
            hub: Some("http://127.0.0.1:7425".to_owned()),
            webhook_secret: secret,
        };
        assert!(keys.text().starts_with("ca_1\nagent_id 你的agent@chorus\nhub http://"));
        assert_eq!(KeyFile::read(&keys.text()), Some(keys));
    }

    #[test]
    fn a_key_alone_is_a_key_file() {
        assert_eq!(KeyFile::read("ca_1"), Some(KeyFile::of("ca_1")));
        assert_eq!(KeyFile::read(" ca_1 \r\nfuture things\n\n"), Some(KeyFile::of("ca_1")));
        for none in ["", "\n", "\nca_1", "two words", "ключ"] {
            assert_eq!(KeyFile::read(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_file_is_made_for_its_owner_alone_and_never_written_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("alice.key");
        drop(Reserved::new(&path).expect("reserved"));
        assert!(!path.exists(), "no key, no file");
        Reserved::new(&path).expect("reserved").fill(&KeyFile::of("ca_1")).expect("written");
        assert_eq!(KeyFile::load(&path).expect("a key"), KeyFile::of("ca_1"));
        assert!(Reserved::new(&path).is_err());
        assert!(path.exists());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(KeyFile::load(&dir.path().join("none")).is_err());
    }
}
