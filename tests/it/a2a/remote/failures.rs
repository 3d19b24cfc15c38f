//! What servers answer that do not do their work, and what becomes of the jobs.
