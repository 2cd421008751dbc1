//! The output of `check --json`. Accepted and refused files have one shape.
//!
//! - `file`, `ok`, `role`
//! - `summary`: the lines of the short output, by label
//! - `derived`: the values under `transport:`
//! - `problems`: each with a `line` and a `column` from 1. They are null for a fact without a place.
//!
//! `role`, `summary` and `derived` are null for a refused file.

use std::path::Path;

use longhaul_config::{Loaded, Problem, Report};
use longhaul_derive::{Derived, Origin, Row};
use serde_json::{Value, json};

use super::Findings;
use super::summary::summary;

/// Returns the document of an accepted file.
pub(super) fn accepted(loaded: &Loaded, derived: &Derived, findings: &Findings) -> String {
    let report = &loaded.report;
    let unplaced = findings.unplaced.iter().map(|(severity, text)| {
        json!({ "severity": severity.as_str(), "title": text, "label": null, "help": null, "line": null, "column": null, "in": null })
    });
    let placed = report.problems.iter().chain(&findings.placed.problems).map(|problem| of(report, problem));
    let lines: serde_json::Map<String, Value> =
        summary(&loaded.settings, derived).into_iter().map(|(label, text)| (label.to_owned(), text.into())).collect();
    shown(&json!({
        "file": report.path,
        "ok": findings.errors() == 0,
        "role": loaded.settings.role.as_str(),
        "summary": lines,
        "derived": derived.rows.iter().map(value).collect::<Vec<_>>(),
        "problems": placed.chain(unplaced).collect::<Vec<_>>(),
    }))
}

/// Returns the document of a refused file.
pub(super) fn refused(report: &Report) -> String {
    let problems: Vec<Value> = report.problems.iter().map(|problem| of(report, problem)).collect();
    not_accepted(&report.path, &problems)
}

/// Returns the document of a file that cannot be read.
pub(super) fn unreadable(path: &Path, why: &str) -> String {
    let title = why.trim_start_matches("error: ");
    let problem = json!({ "severity": "error", "title": title, "label": null, "help": null, "line": null, "column": null, "in": null });
    not_accepted(path, &[problem])
}

fn not_accepted(path: &Path, problems: &[Value]) -> String {
    shown(&json!({ "file": path, "ok": false, "role": null, "summary": null, "derived": null, "problems": problems }))
}

fn of(report: &Report, problem: &Problem) -> Value {
    let (line, column) = report.position(problem.place.start);
    let elsewhere = problem.elsewhere.as_ref();
    json!({
        "severity": problem.severity.as_str(),
        "title": problem.title,
        "label": problem.label,
        "help": problem.help,
        "line": line,
        "column": column,
        "in": elsewhere.map(|place| json!({ "file": place.path, "line": place.line, "column": place.column })),
    })
}

fn value(row: &Row) -> Value {
    let line = match row.origin {
        Origin::Derived => None,
        Origin::Overridden { line } => Some(line),
    };
    json!({ "name": row.name, "value": row.value, "purpose": row.purpose, "formula": row.formula, "source": row.source, "line": line })
}

fn shown(document: &Value) -> String {
    format!("{document:#}\n")
}
