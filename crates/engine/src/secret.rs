//! The hub's secret: 32 bytes from which all other secrets of the hub are derived.
//!
//! It is kept outside the store, in a file that only the hub's user can read or in the environment,
//! so a stolen store reveals no key. Webhook secrets are derived when needed and never stored.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use hkdf::Hkdf;
use rialto_core::id::AgentId;
use sha2::Sha256;

use crate::delivery::signature::WebhookSecret;

/// The environment variable that replaces the file.
pub const ENV_VAR: &str = "RIALTO_HUB_SECRET";
/// The file in the data directory.
pub const FILE_NAME: &str = "hub.key";

const BYTES: usize = 32;
const WEBHOOK_SALT: &str = "rialto webhook v1";
const HOP_SALT: &str = "rialto hop v1";

/// The root of the hub's own keys. Losing it changes every webhook secret and hub-held identity.
#[derive(Clone)]
pub struct HubSecret([u8; BYTES]);

/// Why the hub has no usable secret. For the operator, at start.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable's value is not a secret.
    #[error("{ENV_VAR} must be 64 hex digits, not all zero (try: openssl rand -hex 32)")]
    InvalidVariable,
    /// The file's content is not a secret; a half-written or zeroed file, for example.
    #[error(
        "{0} must hold exactly {BYTES} random bytes; restore it from a backup, or remove it to \
             start with new webhook secrets and hub identities"
    )]
    InvalidFile(PathBuf),
    /// Other users of this machine could read the file.
    #[error(
        "{0} can be read by other users; run `chmod 600` on it and consider creating a new secret"
    )]
    Exposed(PathBuf),
    /// The file could not be read or created.
    #[error("{path}: {source}")]
    Io {
        /// The path that was to be read or created.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The system provided no random bytes.
    #[error("no random bytes for a new secret: {0}")]
    Random(getrandom::Error),
}

impl HubSecret {
    /// The secret in the variable if it is set, else in the file, which is created if it is
    /// missing.
    pub fn load_or_create(data_dir: &Path, env: Option<String>) -> Result<Self, SecretError> {
        if let Some(text) = env {
            return Self::from_variable(&text);
        }
        let path = data_dir.join(FILE_NAME);
        let at_path = |source| SecretError::Io { path: path.clone(), source };
        match read(&path) {
            Err(SecretError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let mut bytes = [0; BYTES];
                getrandom::fill(&mut bytes).map_err(SecretError::Random)?;
                create_file(data_dir, &bytes).map_err(at_path)?;
                // Read back the file: if two hubs start at once, both get the same secret.
                read(&path)
            }
            found => found,
        }
    }

    /// The secret in the file of a data directory, if there is one.
    pub fn load_if_exists(data_dir: &Path) -> Result<Option<Self>, SecretError> {
        match read(&data_dir.join(FILE_NAME)) {
            Err(SecretError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// The secret in this text, as the variable has it.
    pub fn from_variable(text: &str) -> Result<Self, SecretError> {
        Self::from_hex(text).ok_or(SecretError::InvalidVariable)
    }

    /// The secret in a copy of a hub's file.
    pub fn from_file(path: &Path) -> Result<Self, SecretError> {
        read(path)
    }

    /// Writes the file of a data directory that has none.
    pub fn write_file(&self, data_dir: &Path) -> Result<(), SecretError> {
        let path = data_dir.join(FILE_NAME);
        create_file(data_dir, &self.0).map_err(|source| SecretError::Io { path, source })
    }

    /// Copies another hub's file into a data directory; an existing file stays.
    pub fn import_file(from: &Path, data_dir: &Path) -> Result<(), SecretError> {
        let Self(bytes) = read(from)?;
        let path = data_dir.join(FILE_NAME);
        create_file(data_dir, &bytes)
            .map_err(|source| SecretError::Io { path: path.clone(), source })?;
        match read(&path)?.0 == bytes {
            true => Ok(()),
            false => Err(SecretError::InvalidFile(path)),
        }
    }

    /// Copies a data directory's file elsewhere, readable only by its owner; an existing file
    /// stays.
    pub fn export_file(data_dir: &Path, to: &Path) -> Result<(), SecretError> {
        let Self(bytes) = read(&data_dir.join(FILE_NAME))?;
        let written = write_synced(to, &bytes);
        written.map_err(|source| SecretError::Io { path: to.to_owned(), source })
    }

    /// The secret with these bytes, for tests with known values.
    pub fn from_bytes(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    /// Derives a separate key for every purpose (HKDF-SHA-256); none reveals anything about
    /// another.
    pub fn derive(&self, salt: &str, info: &str) -> [u8; 32] {
        let mut key = [0; 32];
        Hkdf::<Sha256>::new(Some(salt.as_bytes()), &self.0)
            .expand(info.as_bytes(), &mut key)
            .expect("HKDF-SHA-256 gives up to 8160 bytes");
        key
    }

    /// The secret shared with one agent; a new generation gives a new secret.
    pub fn webhook_secret(&self, agent: AgentId, generation: u32) -> WebhookSecret {
        let info = format!("agent {agent} generation {generation}");
        WebhookSecret::new(self.derive(WEBHOOK_SALT, &info))
    }

    /// Tells nodes with the same secret from others, and reveals nothing of it.
    pub fn cluster_check(&self) -> [u8; 32] {
        self.derive("cluster", "check")
    }

    /// The seed of the Ed25519 key that all nodes of the hub show to each other.
    pub fn hop_key_seed(&self) -> [u8; 32] {
        self.derive(HOP_SALT, "node")
    }

    fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; BYTES];
        hex::decode_to_slice(text.trim(), &mut bytes).ok()?;
        Self::unless_zero(bytes)
    }

    /// Zeros are what a lost write leaves, and what a careless template contains.
    fn unless_zero(bytes: [u8; BYTES]) -> Option<Self> {
        (bytes != [0; BYTES]).then_some(Self(bytes))
    }
}

impl fmt::Debug for HubSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HubSecret(…)")
    }
}

fn read(path: &Path) -> Result<HubSecret, SecretError> {
    let at_path = |source| SecretError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(at_path)?;
    // Checked on the open file, so that it cannot be swapped between the check and the read.
    if is_exposed(&file.metadata().map_err(at_path)?) {
        return Err(SecretError::Exposed(path.to_owned()));
    }
    let mut bytes = Vec::with_capacity(BYTES + 1);
    file.take(BYTES as u64 + 1).read_to_end(&mut bytes).map_err(at_path)?;
    let bytes = bytes.try_into().ok().and_then(HubSecret::unless_zero);
    bytes.ok_or_else(|| SecretError::InvalidFile(path.to_owned()))
}

/// Creates the file completely or not at all: written and synced under another name, then linked,
/// which fails instead of replacing a file that another process created first.
fn create_file(data_dir: &Path, bytes: &[u8; BYTES]) -> io::Result<()> {
    crate::permissions::create_private_dir(data_dir)?;
    let nonce = getrandom::u64().map_err(io::Error::other)?;
    let draft = data_dir.join(format!("{FILE_NAME}.{nonce:016x}.new"));
    let written = write_synced(&draft, bytes).and_then(|()| {
        match fs::hard_link(&draft, data_dir.join(FILE_NAME)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    });
    let removed = fs::remove_file(&draft);
    written.and(removed)?;
    sync_directory(data_dir)
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = set_owner_only(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(unix)]
pub(crate) fn set_owner_only(options: &mut OpenOptions) -> &mut OpenOptions {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600)
}

#[cfg(unix)]
fn is_exposed(file: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(file) & 0o077 != 0
}

#[cfg(unix)]
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

// On other systems files inherit the rights of the directory, and directories cannot be synced.
#[cfg(not(unix))]
pub(crate) fn owner_only(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(not(unix))]
fn is_exposed(_: &fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
pub(crate) fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hub secret 00 01 … 1f of docs/requirements.md, section 9.
    fn worked() -> HubSecret {
        HubSecret::from_bytes(std::array::from_fn(|i| i as u8))
    }

    fn data_dir() -> tempfile::TempDir {
        tempfile::tempdir().expect("a directory for the test")
    }

    #[test]
    fn a_secret_made_at_first_start_is_found_at_the_next() {
        let parent = data_dir();
        let dir = parent.path().join("not/there/yet");
        let made = HubSecret::load_or_create(&dir, None).expect("a secret is created");
        let found = HubSecret::load_or_create(&dir, None).expect("the secret is found");
        assert_eq!(made.0, found.0);
        assert_eq!(fs::read(dir.join(FILE_NAME)).expect("the file exists"), made.0);
        let left: Vec<_> = fs::read_dir(&dir).expect("the directory exists").collect();
        assert_eq!(left.len(), 1, "no temporary file remains");
    }

    #[test]
    fn two_hubs_have_two_secrets() {
        let (one, two) = (data_dir(), data_dir());
        let one = HubSecret::load_or_create(one.path(), None).expect("a secret is created");
        let two = HubSecret::load_or_create(two.path(), None).expect("a secret is created");
        assert_ne!(one.0, two.0);
    }

    #[test]
    fn hubs_that_start_together_on_one_directory_get_one_secret() {
        let dir = data_dir();
        let load = || HubSecret::load_or_create(dir.path(), None).expect("a secret").0;
        let secrets: Vec<_> = std::thread::scope(|scope| {
            let hubs: Vec<_> = (0..8).map(|_| scope.spawn(load)).collect();
            hubs.into_iter().map(|hub| hub.join().expect("no hub panics")).collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_its_owners_alone_and_must_stay_so() {
        use std::os::unix::fs::PermissionsExt;
        let dir = data_dir();
        HubSecret::load_or_create(dir.path(), None).expect("a secret is created");
        let path = dir.path().join(FILE_NAME);
        let mode = fs::metadata(&path).expect("the file exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        for open in [0o640, 0o604, 0o644, 0o620, 0o601] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).expect("chmod works");
            let refused =
                HubSecret::load_or_create(dir.path(), None).expect_err("others can read it");
            assert!(refused.to_string().contains("chmod 600"), "{refused}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("chmod works");
        assert!(HubSecret::load_or_create(dir.path(), None).is_ok());
    }

    #[test]
    fn a_damaged_file_is_refused_and_never_replaced() {
        for content in [&[][..], &[1; 31], &[1; 33], &[0; 32]] {
            let dir = data_dir();
            let path = dir.path().join(FILE_NAME);
            write_synced(&path, content).expect("the file can be written");
            let refused = HubSecret::load_or_create(dir.path(), None);
            assert!(matches!(refused, Err(SecretError::InvalidFile(_))), "{refused:?}");
            assert_eq!(fs::read(&path).expect("the file still exists"), content);
        }
    }

    #[test]
    fn the_variable_comes_before_the_file_and_leaves_no_trace_on_disk() {
        let dir = data_dir();
        let text = "000102030405060708090A0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
        let secret = HubSecret::load_or_create(dir.path(), Some(text.to_owned()));
        assert_eq!(secret.expect("64 hex digits").0, worked().0);
        assert!(!dir.path().join(FILE_NAME).exists());
    }

    #[test]
    fn a_variable_that_is_no_secret_stops_the_hub_without_showing_it() {
        let zeros = "0".repeat(64);
        for text in ["", "abc", &"g".repeat(64), &"1".repeat(63), &"1".repeat(65), &zeros] {
            let refused = HubSecret::load_or_create(data_dir().path(), Some(text.to_owned()));
            let refused = refused.expect_err("not a secret").to_string();
            assert!(refused.contains(ENV_VAR), "{refused}");
            assert!(text.is_empty() || !refused.contains(text), "{refused}");
        }
    }

    #[test]
    fn derived_keys_are_those_of_an_independent_implementation() {
        // python3, HKDF by hand over hmac and hashlib. The first is the Ed25519 seed behind the
        // hub's did:key z6MkshWLjEnbWLWHeQeFqmuLGuu45GiRuTykNCTWboBhBhnR of docs/requirements.md,
        // section 9.
        let seed = worked().derive("rialto agora alias v1", "hub");
        let expected = "cceda022d0428cc2edbdc7c0276afb7febb893dabb16f626177d506c3476910d";
        assert_eq!(hex::encode(seed), expected);
        let expected = "7c2032ed9a6cfc88d9a529eace337eeb48a667ef68721f86093676418c772c54";
        assert_eq!(hex::encode(worked().hop_key_seed()), expected);
        let webhook = worked().webhook_secret(AgentId(7), 1).to_text();
        assert_eq!(webhook, "whsec_vS2tAB8aWTlwlC+Ctb7tzG4VDxvGQjbt7iGVfJmyHE4=");
    }

    #[test]
    fn every_agent_and_generation_has_its_own_webhook_secret() {
        let all = [(1, 1), (1, 2), (2, 1), (11, 1), (1, 11)];
        let texts: std::collections::HashSet<_> =
            all.iter().map(|(a, g)| worked().webhook_secret(AgentId(*a), *g).to_text()).collect();
        assert_eq!(texts.len(), all.len());
    }

    #[test]
    fn printing_the_secret_does_not_give_it_away() {
        assert_eq!(format!("{:?} {:#?}", worked(), worked()), "HubSecret(…) HubSecret(…)");
    }
}
