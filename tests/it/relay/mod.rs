//! The relay's book, requirement by requirement, over a real hub.

mod kit;
