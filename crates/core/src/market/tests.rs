//! Postings: one for every order, and one for what happens by itself.
