//! The demo's live display. On a terminal each agent has a line that is redrawn; elsewhere each
//! event is one line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use super::balance::Balance;
use super::event::Event;
use super::role::{ALL, Role};
use crate::commands::output;

/// Lines are cut at the edge of the terminal instead of wrapping, because wrapped lines could not
/// be redrawn; and the reverse.
const CUT: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
/// Clears everything below.
const CLEAR: &str = "\x1b[J";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// How the demo is displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayMode {
    /// One line per agent, redrawn on each change.
    Live,
    /// One line per event.
    Lines,
    /// Nothing until the end.
    Silent,
}

impl DisplayMode {
    /// The mode for this output.
    pub fn detect(json: bool, plain: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        match (json, plain || set("NO_COLOR") || dumb || !io::stdout().is_terminal()) {
            (true, _) => Self::Silent,
            (false, true) => Self::Lines,
            (false, false) => Self::Live,
        }
    }
}

/// The display.
pub struct LiveDisplay {
    show: DisplayMode,
    rows: BTreeMap<Role, Row>,
    /// Lines that will be redrawn.
    drawn: usize,
}

/// An agent's current activity and balance.
#[derive(Clone, Debug, Default)]
struct Row {
    doing: String,
    balance: Balance,
}

impl LiveDisplay {
    pub fn new(show: DisplayMode) -> Self {
        Self { show, rows: BTreeMap::new(), drawn: 0 }
    }

    /// Whether balances are displayed.
    pub fn is_live(&self) -> bool {
        self.show == DisplayMode::Live
    }

    /// All agents are registered.
    pub fn begin(&mut self, url: &str) {
        let count = ALL.len();
        let said =
            format!("A hub with all five protocols runs at {url}; {count} agents registered.\n\n");
        match self.show {
            DisplayMode::Silent => {}
            DisplayMode::Lines => print(&said),
            DisplayMode::Live => {
                print(&format!("{CUT}{said}"));
                let ready = Row { doing: "is ready".to_owned(), ..Row::default() };
                self.rows = ALL.map(|who| (who, ready.clone())).into();
                self.draw("");
            }
        }
    }

    /// Shows an event.
    pub fn show_event(&mut self, event: &Event) {
        match self.show {
            DisplayMode::Silent => {}
            DisplayMode::Lines => print(&line(event)),
            DisplayMode::Live => {
                self.rows.entry(event.role).or_default().doing = output::escape_line(&event.text);
                self.draw(&line(event));
            }
        }
    }

    /// Shows what an agent is doing.
    pub fn show_activity(&mut self, who: Role, what: &str) {
        if self.is_live() {
            self.rows.entry(who).or_default().doing = output::escape_line(what);
            self.draw("");
        }
    }

    /// Shows the current balances.
    pub fn show_balances(&mut self, accounts: &BTreeMap<Role, Balance>) {
        for (who, account) in accounts {
            self.rows.entry(*who).or_default().balance = *account;
        }
        if self.is_live() {
            self.draw("");
        }
    }

    /// Redraws all rows, below the new text.
    fn draw(&mut self, said: &str) {
        print(&self.frame(said));
        self.drawn = self.rows.len();
    }

    /// The new text in place of the rows drawn before, then the current rows.
    fn frame(&self, said: &str) -> String {
        let mut out = String::new();
        if self.drawn > 0 {
            write!(out, "\x1b[{}A\r{CLEAR}", self.drawn).expect("memory can be written to");
        }
        out.push_str(said);
        for (who, Row { doing, balance: account }) in &self.rows {
            let (protocol, account) = (who.protocol(), account.describe());
            writeln!(
                out,
                "{BOLD}{who:<9}{PLAIN}  {protocol:<8}  {account:>20}  {DIM}{doing}{PLAIN}"
            )
            .expect("memory can be written to");
        }
        out
    }
}

impl Drop for LiveDisplay {
    fn drop(&mut self) {
        if self.is_live() {
            print(&format!("{PLAIN}{WRAP}"));
        }
    }
}

fn line(event: &Event) -> String {
    let Event { at_ms, role: who, protocol, text: said, .. } = event;
    let (seconds, hundredths, said) =
        (at_ms / 1_000, at_ms % 1_000 / 10, output::escape_line(said));
    format!("{seconds:>2}.{hundredths:02} s  {who:<9}  {protocol:<8}  {said}\n")
}

fn print(text: &str) {
    // A closed pipe is not an error: the reader has seen enough.
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::demo::event::ActionKind;

    fn event(who: Role, said: &str) -> Event {
        let (protocol, said) = (who.protocol(), said.to_owned());
        Event {
            at_ms: 1_250,
            role: who,
            protocol,
            kind: ActionKind::Defers,
            with: None,
            amount: None,
            text: said,
        }
    }

    #[test]
    fn everybody_has_one_line_which_is_drawn_over() {
        let mut stage = LiveDisplay::new(DisplayMode::Live);
        stage.rows = ALL.map(|who| (who, Row::default())).into();
        let first = stage.frame("said\n");
        assert!(first.starts_with("said\n") && !first.contains(CLEAR));
        assert_eq!(first.lines().count(), ALL.len() + 1);
        stage.drawn = ALL.len();
        stage.rows.entry(Role::Scout).or_default().doing = "scouts".to_owned();
        let second = stage.frame("");
        assert!(second.starts_with(&format!("\x1b[{}A\r{CLEAR}", ALL.len())));
        let scout = second.lines().find(|line| line.contains("Scout")).expect("a line");
        assert!(scout.contains("agora") && scout.contains("0.00") && scout.contains("scouts"));
        stage.show = DisplayMode::Silent;
    }

    #[test]
    fn an_event_is_one_line_with_its_time() {
        let line = line(&event(Role::Editor, "defers\n\x1b[2J"));
        assert_eq!(line, " 1.25 s  Editor     openclaw  defers\\n\\u{1b}[2J\n");
    }
}
