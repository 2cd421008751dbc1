//! Columns that line up.

/// Rows of cells, each column as wide as its widest cell; the last one wraps to `width` under itself.
pub fn table(header: &[&str], rows: &[Vec<String>], width: usize) -> String {
    let columns = header.len();
    let cell = |row: &[String], at: usize| row.get(at).map_or(0, |cell| cell.chars().count());
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            rows.iter()
                .map(|row| cell(row, at))
                .chain(header.get(at).map(|name| name.chars().count()))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
    for row in std::iter::once(&header).chain(rows) {
        push_row(&mut out, row, &widths, width);
    }
    out
}

/// Lines of a label and a text, which wraps to `width` under itself.
pub fn rows(lines: &[(&str, String)], width: usize) -> String {
    let widths = [lines.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0)];
    let mut out = String::new();
    for (label, text) in lines {
        push_row(&mut out, &[(*label).to_owned(), text.clone()], &widths, width);
    }
    out
}

fn push_row(out: &mut String, row: &[String], widths: &[usize], width: usize) {
    let Some((last, fixed)) = row.split_last() else { return };
    let mut line = String::new();
    for (cell, width) in fixed.iter().zip(widths) {
        line.push_str(cell);
        let padding = width.saturating_sub(cell.chars().count()) + 2;
        line.extend(std::iter::repeat_n(' ', padding));
    }
    let indent = line.chars().count();
    let mut used = indent;
    let mut first = true;
    for word in last.split(' ') {
        let length = word.chars().count();
        if !first && used + 1 + length > width.max(indent + 20) {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent);
            used = indent;
        } else if !first {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
        first = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_line_up_and_the_last_one_wraps_under_itself() {
        let rows = vec![
            vec!["a".to_owned(), "one two three four five six".to_owned()],
            vec!["long".to_owned(), "x".to_owned()],
        ];
        assert_eq!(table(&["k", "v"], &rows, 26), "k     v\na     one two three four\n      five six\nlong  x\n");
    }
}
