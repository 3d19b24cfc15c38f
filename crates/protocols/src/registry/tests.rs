//! Tests of what needs no hub.
