//! Operating a hub: starting it, monitoring it, the operator's commands, backups.

mod backups;
#[cfg(target_os = "linux")]
mod cluster;
#[cfg(unix)]
mod databases;
mod operator;
mod process;
mod resuming;
mod suspension;
