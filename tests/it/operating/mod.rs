//! Running a hub: starting it, watching it, its operator's commands, backups.

mod backups;
mod operator;
mod process;
mod resuming;
mod suspension;
