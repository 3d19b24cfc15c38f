//! The registry protocol, requirement by requirement; CONFORMANCE.md beside its code says which test
//! shows which.

mod bodies;
mod callbacks;
mod discover;
mod fixtures;
mod forms;
mod job_fields;
mod jobs;
mod market;
mod numbers;
mod once;
mod owners;
mod picking;
mod ranking;
mod refusals;
mod register;
mod register_fields;
mod repeats;
mod reporting;
mod results;
mod root;
mod strangers;
mod types;
mod waiting;
