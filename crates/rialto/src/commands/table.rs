//! Tables: one line per thing, columns below each other, fitted to the terminal they are read on.
//!
//! Whatever is not a terminal gets everything, uncut. What others wrote is shown, never obeyed.

use std::io::{self, IsTerminal};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::say;

/// Between two columns.
const GAP: &str = "  ";
/// What stands for the rest of a text.
const CUT: &str = "…";
/// A column is never cut below this width.
const WIDTH_MIN: usize = 8;

/// A column: its heading, and what may be done to it.
#[derive(Clone, Copy)]
pub struct Column {
    heading: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Shown whole.
    Text,
    /// Shown whole, digits below each other.
    Number,
    /// Cut where room is short.
    Free,
}

/// Rows under headings.
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Column {
    /// Ids, states and times.
    pub fn text(heading: &'static str) -> Self {
        Self { heading, kind: Kind::Text }
    }

    /// Amounts and counts.
    pub fn number(heading: &'static str) -> Self {
        Self { heading, kind: Kind::Number }
    }

    /// Names and descriptions: the longest of these gives way first.
    pub fn free(heading: &'static str) -> Self {
        Self { heading, kind: Kind::Free }
    }
}

impl From<&'static str> for Column {
    fn from(heading: &'static str) -> Self {
        Self::text(heading)
    }
}

impl Table {
    pub fn new(columns: impl IntoIterator<Item = impl Into<Column>>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row, one text for each column; no text is shown as a dash.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let shown = |cell: &str| if cell.is_empty() { "-".to_owned() } else { say::one_line(cell) };
        self.rows.push(cells.into_iter().map(|cell| shown(cell.as_ref())).collect());
    }

    /// Prints it, as wide as the terminal; whoever stopped reading has what they wanted.
    pub fn print(&self) {
        let _ = self.lines(width()).iter().try_for_each(|line| say::line(line));
    }

    /// The lines, at most so wide where that can be done.
    fn lines(&self, width: Option<usize>) -> Vec<String> {
        let widths = self.widths(width);
        let headings = self.columns.iter().map(|column| column.heading.to_owned()).collect();
        let all = std::iter::once(&headings).chain(&self.rows);
        all.map(|cells: &Vec<String>| self.line(cells, &widths)).collect()
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let columns = self.columns.iter().zip(widths);
        let padded = cells.iter().zip(columns).map(|(cell, (column, width))| {
            let cell = cut(cell, *width);
            let space = " ".repeat(width.saturating_sub(cell.width()));
            match column.kind {
                Kind::Number => space + &cell,
                Kind::Text | Kind::Free => cell + &space,
            }
        });
        padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }

    /// How wide each column is: as its widest cell, but for what has to give way.
    fn widths(&self, width: Option<usize>) -> Vec<usize> {
        let widest = |at: usize, column: &Column| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width());
            cells.max().unwrap_or(0).max(column.heading.width())
        };
        let mut widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(at, column)| widest(at, column)).collect();
        let gaps = GAP.width() * widths.len().saturating_sub(1);
        let Some(room) = width.map(|width| width.saturating_sub(gaps)) else { return widths };
        while widths.iter().sum::<usize>() > room {
            let free = (0..widths.len()).filter(|at| self.columns[*at].kind == Kind::Free);
            match free.max_by_key(|at| widths[*at]).filter(|at| widths[*at] > WIDTH_MIN) {
                Some(longest) => widths[longest] -= 1,
                None => break,
            }
        }
        widths
    }
}

/// A text of at most this width, with a mark where something is missing.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(CUT.width());
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= room
    };
    text.chars().take_while(fits).collect::<String>() + CUT
}

/// How wide the terminal is; `None` if it is none, or nobody knows.
fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    said.or_else(seen).filter(|width| *width > 0)
}

#[cfg(unix)]
fn seen() -> Option<usize> {
    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn seen() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = [Column::text("ID"), Column::free("NAME"), Column::number("PRICE")];
        let mut table = Table::new(columns);
        table.row(["17", "a rather long name", "0.05"]);
        table.row(["9", "", "12.50"]);
        table
    }

    #[test]
    fn columns_stand_below_each_other_and_nothing_is_cut_without_need() {
        let wanted = [
            "ID  NAME                PRICE",
            "17  a rather long name   0.05",
            "9   -                   12.50",
        ];
        assert_eq!(table().lines(None), wanted);
        assert_eq!(table().lines(Some(80)), wanted);
    }

    #[test]
    fn the_free_column_gives_way_but_never_wholly() {
        let lines = table().lines(Some(25));
        assert_eq!(lines[1], "17  a rather long…   0.05");
        assert!(table().lines(Some(24)).iter().all(|line| line.width() <= 24));
        assert_eq!(table().lines(Some(3))[1], "17  a rathe…   0.05");
    }

    #[test]
    fn wide_letters_take_two_places_and_commands_are_no_commands() {
        let mut table = Table::new([Column::free("NAME"), Column::text("S")]);
        table.row(["翻译翻译翻译", "x"]);
        table.row(["a\x1b[2Jb", "y"]);
        assert_eq!(table.lines(None), ["NAME          S", "翻译翻译翻译  x", "a\\u{1b}[2Jb   y"]);
        assert_eq!(table.lines(Some(11))[1], "翻译翻…   x");
    }
}
