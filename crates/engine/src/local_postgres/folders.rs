//! The folders of a server: one for its data and its log, one for its socket.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::{Account, LocalPostgresError};

/// The longest path of a Unix socket on Linux.
const SOCKET_PATH_MAX: usize = 107;

/// Where a server keeps its files.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Has the data directory and the log.
    pub server: PathBuf,
    pub sockets: PathBuf,
}

impl Folders {
    /// Creates both folders. Only the account may enter them, because the socket asks for no
    /// password. The socket is in the folder of the server if its path is short enough, and otherwise
    /// in a folder with this name among the temporary files.
    pub fn create(
        account: Option<Account>,
        server: PathBuf,
        short_name: &str,
    ) -> Result<Self, LocalPostgresError> {
        create_private(account, &server)?;
        let candidates = [
            server.join("socket"),
            std::env::temp_dir().join(short_name),
            Path::new("/tmp").join(short_name),
        ];
        let sockets = candidates.into_iter().find(|folder| is_fit_for_socket(folder));
        let sockets = sockets.expect("the last one is short and plain");
        create_private(account, &sockets)?;
        Ok(Self { server, sockets })
    }

    /// Removes both.
    pub fn remove(&self) {
        for folder in [&self.server, &self.sockets] {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Whether the path of a socket in this folder is short enough, and needs no escapes in a URL.
fn is_fit_for_socket(folder: &Path) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let path = folder.join(".s.PGSQL.65535");
    let path = path.as_os_str().as_encoded_bytes();
    path.len() <= SOCKET_PATH_MAX && path.iter().all(|byte| is_plain(*byte))
}

/// Whether every account can reach a folder. The home of root, for example, is closed.
pub fn is_open_to_all(folder: &Path) -> bool {
    let is_open = |folder: &Path| {
        fs::metadata(folder).is_ok_and(|folder| folder.permissions().mode() & 0o001 != 0)
    };
    folder.ancestors().all(is_open)
}

/// Creates a folder that only the account may enter. An existing one must belong to the account.
pub fn create_private(account: Option<Account>, folder: &Path) -> Result<(), LocalPostgresError> {
    let failed = |source| LocalPostgresError::Io { path: folder.to_owned(), source };
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => give_to(account, folder),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let owner = fs::symlink_metadata(folder).map_err(failed)?.uid();
            match account.is_none_or(|account| account.user == owner) {
                true => Ok(()),
                false => Err(LocalPostgresError::NotOurs(folder.to_owned())),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

pub fn give_to(account: Option<Account>, path: &Path) -> Result<(), LocalPostgresError> {
    let Some(Account { user, group }) = account else { return Ok(()) };
    chown(path, Some(user), Some(group))
        .map_err(|source| LocalPostgresError::Io { path: path.to_owned(), source })
}
