//! Traces: a job as each party saw it, who may read it, and converting without a hub (B11, B18).

mod authority;
mod commands;
mod convert;
mod evidence;
mod kit;
mod pairs;
mod task_trace;
mod tasks;
