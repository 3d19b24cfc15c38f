//! Key files of agora: the seed on the first line, the public half below, readable only by the
//! owner.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rialto_client::agora::{Identity, Seed};

use super::super::error::CliError;
use super::super::key_file::ReservedKeyFile;
use super::failed;

/// The variable for a key that is not in a file.
const VARIABLE: &str = "RIALTO_AGORA_KEY";
/// The maximum length of a key file.
const BYTES_MAX: u64 = 64 << 10;

/// The options of commands that need a secret key.
#[derive(clap::Args)]
pub struct AgoraKeyOptions {
    /// File with the key, as written by `key new`; otherwise env RIALTO_AGORA_KEY
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

impl AgoraKeyOptions {
    /// The identity of the given key.
    pub fn identity(&self) -> Result<Identity, CliError> {
        if let Some(path) = &self.key_file {
            return load(path);
        }
        let make = "create one with `rialto key new --out FILE` and pass it with --key-file";
        match std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty()) {
            None => Err(CliError::usage("no key is given", make)),
            Some(text) => match Seed::read(text.trim()) {
                Some(seed) => Ok(Identity::new(&seed)),
                None => Err(CliError::usage(
                    format!("{VARIABLE} is not `ed25519-seed:` and 43 characters of Base64Url"),
                    make,
                )),
            },
        }
    }
}

/// Reads a key file.
fn load(path: &Path) -> Result<Identity, CliError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
    let shown = path.display();
    let make = format!("`rialto key new --out {shown}` creates a key file");
    match read {
        Err(error) => Err(CliError::usage(format!("cannot read {shown}: {error}"), make)),
        Ok(_) => match Seed::read(&text) {
            Some(seed) => Ok(Identity::new(&seed)),
            None => Err(CliError::usage(format!("{shown} has no seed on its first line"), make)),
        },
    }
}

/// Creates a key and a new file for it that only its owner can read.
pub fn create(path: &Path) -> Result<Identity, CliError> {
    let reserved = ReservedKeyFile::new(path)?;
    let seed = Seed::random()?;
    let identity = Identity::new(&seed);
    let text = format!("{}\ndid {}\n", seed.reveal(), identity.did());
    let unwritten = |error| failed(format!("cannot write {}: {error}", path.display()), None);
    reserved.write_text(&text).map_err(unwritten)?;
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_read_back_and_nobody_elses() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("alice.agora");
        let made = create(&path).expect("a key");
        assert_eq!(load(&path).expect("a key").did(), made.did());
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(
            text.starts_with("ed25519-seed:") && text.ends_with(&format!("\ndid {}\n", made.did()))
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(create(&path).is_err(), "never overwritten");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), text);
        std::fs::write(&path, "ca_1\n").expect("written");
        let cli_error = load(&path).expect_err("no seed");
        assert!(cli_error.message.contains("no seed") && cli_error.next.is_some());
    }
}
