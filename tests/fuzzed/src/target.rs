//! What is known about one parser's check, besides the check.

/// A check of one parser.
pub struct Target {
    /// Its name, which is also that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// The check: panics when a law is broken.
    pub check: fn(&[u8]),
    /// What means something to this parser: mutations put these in.
    pub words: &'static [&'static str],
    /// What an input may cost.
    pub cost: Cost,
}

/// What one input may cost, in bytes that are allocated for it: so many, and so many per byte.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// At the same time.
    pub held: [u64; 2],
    /// All together, which is the count of steps for parsers that allocate as they go.
    pub taken: [u64; 2],
    /// How many inputs are tried of every hundred that are asked for: fewer of what is slow.
    pub share: u64,
    /// Where other threads do the work: how many bytes more the whole process may hold.
    pub elsewhere: Option<u64>,
}

impl Cost {
    /// What a parser costs that copies what it reads a few times over.
    pub const PLAIN: Self =
        Self { held: [32 << 10, 128], taken: [128 << 10, 512], share: 100, elsewhere: None };
    /// What a schema costs: its patterns are compiled, and a few letters can stand for half of Unicode.
    pub const SCHEMA: Self =
        Self { held: [16 << 20, 8 << 10], taken: [64 << 20, 32 << 10], share: 10, elsewhere: None };

    /// What an input of so many bytes may have held and taken.
    pub fn allowed(&self, bytes: usize) -> [u64; 2] {
        [self.held, self.taken].map(|[fixed, each]| fixed + each * bytes as u64)
    }

    /// The same for one that is tried less often.
    pub const fn share(self, share: u64) -> Self {
        Self { share, ..self }
    }

    /// The same for one whose work other threads do. The process is also others' who are tried at the
    /// same time, so this is generous.
    pub const fn elsewhere(self) -> Self {
        Self { elsewhere: Some(128 << 20), ..self }
    }

    /// The same for one that takes so many times more.
    pub const fn times(self, factor: u64) -> Self {
        let Self { held: [held, each], taken: [taken, each_taken], .. } = self;
        Self {
            held: [held * factor, each * factor],
            taken: [taken * factor, each_taken * factor],
            ..self
        }
    }
}
