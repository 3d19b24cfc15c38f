//! The packages for other languages in `clients`: their own tests, against this binary.

mod python;
