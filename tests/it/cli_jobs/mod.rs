//! Jobs, webhooks and notices on the command line, as people and scripts use them.

mod door;
mod ended;
mod kit;
mod listed;
mod listening;
mod logs;
mod lost;
mod names;
mod offered;
mod patience;
mod posting;
mod watching;
mod webhooks;
mod working;
