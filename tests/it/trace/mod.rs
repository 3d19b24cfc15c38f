//! Traces: a job as each side saw it, who may read that, and converting without a hub (B11, B18).

mod authority;
mod commands;
mod convert;
mod evidence;
mod kit;
mod pairs;
mod task_trace;
