//! An input that broke a law, and how to see it again.

use std::fmt;
use std::fs;
use std::path::PathBuf;

/// What was found.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The target.
    pub target: &'static str,
    /// What it said, or what it cost.
    pub why: String,
    /// The input, as small as it was made.
    pub input: Vec<u8>,
}

impl Broken {
    /// Writes the input where `cargo fuzz` puts its own finds; they are not in git.
    pub fn keep(&self) -> std::io::Result<PathBuf> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/artifacts")
            .join(self.target);
        fs::create_dir_all(&folder)?;
        let name = self.input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let path = folder.join(format!("crash-{name:016x}"));
        fs::write(&path, &self.input)?;
        Ok(path)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, why, input } = self;
        let shown = input.escape_ascii().to_string();
        let shown: String = shown.chars().take(2_000).collect();
        write!(f, "{target}: {why}\nwith {} bytes: {shown}", input.len())
    }
}
