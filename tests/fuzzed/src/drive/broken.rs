//! An input that failed a check, and how to reproduce it.

use std::fmt;
use std::fs;
use std::path::PathBuf;

/// A failing input.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The target.
    pub target: &'static str,
    /// The panic message, or the exceeded cost.
    pub why: String,
    /// The input, minimized.
    pub input: Vec<u8>,
}

impl Broken {
    /// Writes the input where `cargo fuzz` puts its own artifacts; they are not in git.
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
