//! Operating a hub: starting it, monitoring it, the operator's commands, backups.

mod backups;
mod operator;
mod process;
mod resuming;
mod suspension;
