//! Jobs, webhooks and notices on the command line, as people and scripts use them.

mod dialogue;
mod door;
mod ended;
mod kit;
mod listed;
mod listening;
mod logs;
mod lost;
mod names;
mod offered;
mod posting;
mod time_limit;
mod watching;
mod webhooks;
mod working;
