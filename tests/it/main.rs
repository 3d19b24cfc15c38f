//! Whole hubs on free ports, spoken to the way users speak to them.

mod kit;
mod readme;
mod registry;
mod smoke;
