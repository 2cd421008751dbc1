//! The tables of counters in the documents. Each is written from the rows that define the counters, and a test of the
//! filter compares the two.

use std::{env, fs, iter};

/// The head of a table of counters.
pub const HEAD: &str = "| name | labels | counts |\n|---|---|---|\n";

/// Returns the table of counters whose names stand in an enum, from the names without `prefix` and the sentences of its
/// variants. A name `NAME_total_reason_REASON` gives a row with the label `reason`.
pub fn of_names(prefix: &str, rows: impl IntoIterator<Item = (&'static str, &'static str)>) -> String {
    let rows = rows.into_iter().map(|(name, sentence)| {
        let (name, label) = match name.split_once("_reason_") {
            Some((name, reason)) => (name, format!(" `reason=\"{reason}\"`")),
            None => (name, String::new()),
        };
        format!("| `{prefix}{name}` |{label} | {} |\n", sentence.trim_end_matches('.'))
    });
    iter::once(HEAD.to_owned()).chain(rows).collect()
}

/// Compares `table` with the text between the comments `MARKER: begin` and `MARKER: end` of the document at `path`. With
/// `SNAPSHOTS=overwrite` in the environment, it writes the table there.
///
/// # Errors
///
/// A sentence for the developer: the document differs, has no such comments, or cannot be read or written.
pub fn check(path: &str, marker: &str, table: &str) -> Result<(), String> {
    let (begin, end) = (format!("<!-- {marker}: begin -->\n\n"), format!("\n<!-- {marker}: end -->"));
    let document = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let Some((before, (_, after))) =
        document.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?)))
    else {
        return Err(format!("{path}: no comments `{marker}: begin` and `{marker}: end`"));
    };
    let expected = format!("{before}{begin}{table}{end}{after}");
    if document == expected {
        return Ok(());
    }
    if env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        return fs::write(path, expected).map_err(|error| format!("{path}: {error}"));
    }
    Err(format!("{path}: the table `{marker}` differs. Run the test with SNAPSHOTS=overwrite. Expected:\n{table}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_label_and_a_sentence_loses_its_stop() {
        let rows = [("pages_total", "Pages read."), ("unfit_total_reason_size", "Objects not sent: too large.")];
        let table = of_names("longhaul_", rows);
        assert_eq!(
            table,
            format!(
                "{HEAD}| `longhaul_pages_total` | | Pages read |\n\
                 | `longhaul_unfit_total` | `reason=\"size\"` | Objects not sent: too large |\n"
            )
        );
    }

    #[test]
    fn a_document_without_the_comments_or_with_another_table_is_named() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../envoy-config/METRICS.md");
        assert!(check(path, "counters of nobody", "").unwrap_err().contains("no comments"));
        assert!(check("/nowhere/METRICS.md", "counters of url-rewrite", "").unwrap_err().starts_with("/nowhere/"));
    }
}
