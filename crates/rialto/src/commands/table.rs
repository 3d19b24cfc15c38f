//! Tables: one line per row, aligned columns, fitted to the terminal.
//!
//! Output that is not a terminal gets everything uncut. On a terminal, times are short, names and
//! descriptions are cut, and then whole columns are dropped, the least important first, because a
//! line that wraps is not readable as a row. Text from others is escaped.

use std::io::{self, IsTerminal};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Exit, output};

/// Between two columns.
const GAP: &str = "  ";
/// Marks a cut text.
const CUT: &str = "…";
/// A column is never cut below this width.
const WIDTH_MIN: usize = 8;
/// A time on a terminal: the day, and after a space the minute.
const DAY: usize = "2026-02-11".len();
const MINUTE: usize = "2026-02-11T14:15".len();

/// A column: its heading, and how it may shrink.
#[derive(Clone, Copy)]
pub struct Column {
    heading: &'static str,
    kind: Kind,
    /// The order in which columns are dropped: lowest first; never without a rank.
    rank: Option<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Never cut.
    Text,
    /// Never cut, aligned right.
    Number,
    /// Cut if there is too little room.
    Flexible,
    /// A time of the hub; to the minute on a terminal.
    Time,
}

/// Rows under headings.
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Column {
    /// Ids and states.
    pub fn text(heading: &'static str) -> Self {
        Self { heading, kind: Kind::Text, rank: None }
    }

    /// Amounts and counts.
    pub fn number(heading: &'static str) -> Self {
        Self { kind: Kind::Number, ..Self::text(heading) }
    }

    /// Names and descriptions: the longest is cut first.
    pub fn flexible(heading: &'static str) -> Self {
        Self { kind: Kind::Flexible, ..Self::text(heading) }
    }

    /// Times as the hub writes them.
    pub fn time(heading: &'static str) -> Self {
        Self { kind: Kind::Time, ..Self::text(heading) }
    }

    /// Makes the column droppable once cutting is not enough; the lowest rank goes first.
    pub fn droppable(self, rank: u8) -> Self {
        Self { rank: Some(rank), ..self }
    }
}

impl Table {
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row, one text per column; an empty text is shown as a dash.
    pub fn push_row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let shown =
            |cell: &str| if cell.is_empty() { "-".to_owned() } else { output::escape_line(cell) };
        self.rows.push(cells.into_iter().map(|cell| shown(cell.as_ref())).collect());
    }

    /// Prints the table, as wide as the terminal. A closed pipe is not an error.
    pub fn print(&self) -> Exit {
        let _ = self.lines(width()).iter().try_for_each(|line| output::print_line(line));
        Exit::Ok
    }

    /// The lines, at most `width` columns wide where possible.
    pub fn lines(&self, width: Option<usize>) -> Vec<String> {
        let headings = self.columns.iter().map(|column| column.heading.to_owned()).collect();
        let rows = self.rows.iter().map(|row| match width {
            Some(_) => {
                self.columns.iter().zip(row).map(|(column, cell)| column.short(cell)).collect()
            }
            None => row.clone(),
        });
        let rows: Vec<Vec<String>> = std::iter::once(headings).chain(rows).collect();
        let widths = self.widths(&rows, width);
        rows.iter().map(|cells| self.line(cells, &widths)).collect()
    }

    fn line(&self, cells: &[String], widths: &[Option<usize>]) -> String {
        let columns = self.columns.iter().zip(widths);
        let shown = cells.iter().zip(columns).filter_map(|(cell, (column, width))| {
            let width = (*width)?;
            let cell = truncate(cell, width);
            let space = " ".repeat(width.saturating_sub(cell.width()));
            Some(match column.kind {
                Kind::Number => space + &cell,
                Kind::Text | Kind::Flexible | Kind::Time => cell + &space,
            })
        });
        shown.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }

    /// The width of each column: that of its widest cell, reduced as needed; `None` for a dropped
    /// column.
    fn widths(&self, rows: &[Vec<String>], room: Option<usize>) -> Vec<Option<usize>> {
        let widest = |at: usize| {
            rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width()).max().unwrap_or(0)
        };
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        loop {
            let natural: Vec<usize> = shown.iter().map(|at| widest(*at)).collect();
            let fitted = room.map_or(Ok(natural.clone()), |room| self.fit(&shown, natural, room));
            let ranked = shown.iter().filter_map(|at| Some((self.columns[*at].rank?, *at)));
            match (fitted, ranked.min()) {
                (Err(_), Some((_, least))) => shown.retain(|at| *at != least),
                // A terminal too narrow for the remaining columns wraps them.
                (Ok(widths) | Err(widths), _) => {
                    let mut all = vec![None; self.columns.len()];
                    shown.iter().zip(widths).for_each(|(at, width)| all[*at] = Some(width));
                    return all;
                }
            }
        }
    }

    /// The widths of these columns after cutting the longest names; an error if that is not enough.
    fn fit(
        &self,
        shown: &[usize],
        mut widths: Vec<usize>,
        room: usize,
    ) -> Result<Vec<usize>, Vec<usize>> {
        let room = room.saturating_sub(GAP.width() * widths.len().saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            let free =
                (0..widths.len()).filter(|at| self.columns[shown[*at]].kind == Kind::Flexible);
            match free.max_by_key(|at| widths[*at]).filter(|at| widths[*at] > WIDTH_MIN) {
                Some(longest) => widths[longest] -= 1,
                None => return Err(widths),
            }
        }
        Ok(widths)
    }
}

impl Column {
    /// A cell as shown on a terminal.
    fn short(&self, cell: &str) -> String {
        let parts = cell.get(..DAY).zip(cell.get(DAY + 1..MINUTE)).filter(|_| cell.ends_with('Z'));
        match parts.filter(|_| self.kind == Kind::Time) {
            Some((day, minute)) => format!("{day} {minute}Z"),
            None => cell.to_owned(),
        }
    }
}

/// A text of at most this width, with a mark if it is cut.
pub fn truncate(text: &str, width: usize) -> String {
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

/// The terminal's width; `None` if there is no terminal or its width is unknown.
fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    set.or_else(|| output::terminal_width(io::stdout())).filter(|width| *width > 0)
}

/// Asserts that a table fits 80 columns and keeps its headings.
#[cfg(test)]
#[track_caller]
pub fn assert_fits(table: &Table, headings: &str) {
    let lines = table.lines(Some(80));
    for line in &lines {
        assert!(line.width() <= 80, "{} columns: {line}", line.width());
    }
    let shown: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(shown, headings.split_whitespace().collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = [Column::text("ID"), Column::flexible("NAME"), Column::number("PRICE")];
        let mut table = Table::new(columns);
        table.push_row(["17", "a rather long name", "0.05"]);
        table.push_row(["9", "", "12.50"]);
        table
    }

    #[test]
    fn columns_stand_below_each_other_and_nothing_is_cut_without_need() {
        let expected = [
            "ID  NAME                PRICE",
            "17  a rather long name   0.05",
            "9   -                   12.50",
        ];
        assert_eq!(table().lines(None), expected);
        assert_eq!(table().lines(Some(80)), expected);
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
        let mut table = Table::new([Column::flexible("NAME"), Column::text("S")]);
        table.push_row(["翻译翻译翻译", "x"]);
        table.push_row(["a\x1b[2Jb", "y"]);
        assert_eq!(table.lines(None), ["NAME          S", "翻译翻译翻译  x", "a\\u{1b}[2Jb   y"]);
        assert_eq!(table.lines(Some(11))[1], "翻译翻…   x");
    }

    #[test]
    fn times_are_short_on_a_terminal_and_whole_elsewhere() {
        let mut table = Table::new([Column::time("AT"), Column::text("S")]);
        table.push_row(["2026-02-11T14:15:09.123Z", "x"]);
        table.push_row(["", "y"]);
        assert_eq!(table.lines(Some(80))[1..], ["2026-02-11 14:15Z  x", "-                  y"]);
        assert_eq!(table.lines(None)[1], "2026-02-11T14:15:09.123Z  x");
    }

    #[test]
    fn what_is_needed_least_is_left_out_when_nothing_else_gives_way() {
        let columns = [
            Column::text("ID"),
            Column::text("STATE").droppable(2),
            Column::flexible("NAME"),
            Column::number("JOBS").droppable(1),
        ];
        let mut table = Table::new(columns);
        table.push_row(["0123456789", "completed", "a rather long name", "12"]);
        let row = |width| table.lines(Some(width))[1].clone();
        assert_eq!(row(38), "0123456789  completed  a rather…    12");
        assert_eq!(row(34), "0123456789  completed  a rather l…");
        assert_eq!(row(30), "0123456789  a rather long name");
        assert_eq!(row(24), "0123456789  a rather lo…");
        assert_eq!(row(5), "0123456789  a rathe…");
    }
}
