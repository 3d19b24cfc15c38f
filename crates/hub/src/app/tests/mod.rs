//! Tests of a node among several, with all of its APIs. The tests play the coordinator of the node.

mod cluster;
mod freshness;
mod kit;
mod resume;
mod roles;
mod unavailable;
