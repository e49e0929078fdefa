//! A table that reads well in a terminal and is Markdown all the same. Figures stand on the right.

#[derive(Debug, Clone)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const N: usize>(header: [&str; N]) -> Self {
        Table { header: header.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut cells: Vec<String> = cells.into_iter().collect();
        cells.resize(self.header.len(), String::new());
        self.rows.push(cells);
    }

    pub fn to_markdown(&self) -> String {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let widths: Vec<usize> = (0..self.header.len())
            .map(|column| lines().map(|cells| cells[column].chars().count()).max().unwrap_or(0).max(3))
            .collect();
        let numeric: Vec<bool> =
            (0..self.header.len()).map(|column| self.rows.iter().all(|cells| is_figure(&cells[column]))).collect();
        let mut text = String::new();
        for (at, cells) in lines().enumerate() {
            let padded: Vec<String> = (0..cells.len()).map(|n| pad(&cells[n], widths[n], numeric[n])).collect();
            text.push_str(&format!("| {} |\n", padded.join(" | ")));
            if at == 0 {
                let rule: Vec<String> = (0..cells.len()).map(|n| rule(widths[n], numeric[n])).collect();
                text.push_str(&format!("|{}|\n", rule.join("|")));
            }
        }
        text
    }
}

fn is_figure(cell: &str) -> bool {
    cell.chars().all(|letter| letter.is_ascii_digit() || ",.-–".contains(letter))
}

fn pad(text: &str, width: usize, right: bool) -> String {
    let space = " ".repeat(width - text.chars().count());
    if right {
        space + text
    } else {
        text.to_owned() + &space
    }
}

fn rule(width: usize, right: bool) -> String {
    if right {
        format!("{}:", "-".repeat(width + 1))
    } else {
        "-".repeat(width + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_figures_stand_on_the_right() {
        let mut table = Table::new(["way", "requests/s"]);
        table.row(["direct".to_owned(), "240".to_owned()]);
        table.row(["é".to_owned(), "1,200".to_owned()]);
        let expected = "\
| way    | requests/s |
|--------|-----------:|
| direct |        240 |
| é      |      1,200 |
";
        assert_eq!(table.to_markdown(), expected);
    }
}
