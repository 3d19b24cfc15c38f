//! A fuzz target: the check of one parser and its limits.

/// The check of one parser.
pub struct Target {
    /// Its name, which is also its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// The check: panics when an assertion fails.
    pub check: fn(&[u8]),
    /// Words with a meaning for this parser; mutations insert them.
    pub words: &'static [&'static str],
    /// What an input may cost.
    pub cost: Cost,
}

/// What one input may cost, in allocated bytes: a fixed part, and a part per byte of input.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// At the same time.
    pub held: [u64; 2],
    /// In total, which measures steps for parsers that allocate as they go.
    pub taken: [u64; 2],
    /// Percent of the requested inputs that are tested: less for slow targets.
    pub share: u64,
    /// If other threads do the work: by how many bytes the memory of the process may grow.
    pub elsewhere: Option<u64>,
}

impl Cost {
    /// The cost of a parser that copies its input a few times.
    pub const PLAIN: Self =
        Self { held: [32 << 10, 128], taken: [128 << 10, 512], share: 100, elsewhere: None };
    /// The cost of a schema: its patterns are compiled, and a few letters can stand for half of
    /// Unicode.
    pub const SCHEMA: Self =
        Self { held: [16 << 20, 8 << 10], taken: [64 << 20, 32 << 10], share: 10, elsewhere: None };

    /// The allowed peak and total for an input of this length.
    pub fn allowed(&self, bytes: usize) -> [u64; 2] {
        [self.held, self.taken].map(|[fixed, each]| fixed + each * bytes as u64)
    }

    /// The same with fewer inputs.
    pub const fn share(self, share: u64) -> Self {
        Self { share, ..self }
    }

    /// The same for a target whose work is done by other threads. Other targets run in the process
    /// at the same time, so this limit is generous.
    pub const fn elsewhere(self) -> Self {
        Self { elsewhere: Some(128 << 20), ..self }
    }

    /// The same with limits multiplied by `factor`.
    pub const fn times(self, factor: u64) -> Self {
        let Self { held: [held, each], taken: [taken, each_taken], .. } = self;
        Self {
            held: [held * factor, each * factor],
            taken: [taken * factor, each_taken * factor],
            ..self
        }
    }
}
