//! Problems of a configuration: the fault, its place and the remedy, printed as compilers print them.

use std::fmt;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Element, Level, Origin, Renderer, Snippet};

use super::yaml::Place;

/// An error or a warning, with its place in the configuration file.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Error or warning. An error refuses the file.
    pub severity: Severity,
    /// The fault in one line, with the name of the setting.
    pub title: String,
    /// The place in the configuration file, in bytes.
    pub place: Place,
    /// The value at that place.
    pub label: String,
    /// Other settings that are part of the problem: a contradiction names both.
    pub others: Vec<(Place, String)>,
    /// A place in another file, such as a list of names.
    pub elsewhere: Option<Elsewhere>,
    /// The remedy.
    pub help: Option<String>,
}

/// A line of a file that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is accepted, but the operator should know.
    Warning,
}

impl Problem {
    pub(super) fn error(title: impl Into<String>, place: Place, label: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            title: title.into(),
            place,
            label: label.into(),
            others: Vec::new(),
            elsewhere: None,
            help: None,
        }
    }

    pub(super) fn warning(title: impl Into<String>, place: Place, label: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(title, place, label) }
    }

    /// Adds another setting that is part of the problem.
    pub(super) fn and(mut self, place: Place, label: impl Into<String>) -> Self {
        self.others.push((place, label.into()));
        self
    }

    pub(super) fn in_file(mut self, path: PathBuf, line: usize, column: usize) -> Self {
        self.elsewhere = Some(Elsewhere { path, line, column });
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// All problems of one file, in the order of their places.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The file as the operator named it.
    pub path: PathBuf,
    /// Its text, for printing lines of it.
    pub text: String,
    /// The problems, sorted by place.
    pub problems: Vec<Problem>,
}

impl Report {
    pub(super) fn new(path: PathBuf, text: String, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.place.start);
        Self { path, text, problems }
    }

    /// Returns true if the file is refused.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Returns the report as text, with colours if `styled`.
    pub fn render(&self, styled: bool) -> String {
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        for problem in &self.problems {
            out.push_str(&self.render_one(problem, &renderer));
            out.push_str("\n\n");
        }
        out
    }

    fn render_one(&self, problem: &Problem, renderer: &Renderer) -> String {
        let level = match problem.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let path = self.path.display().to_string();
        let mut snippet = Snippet::source(&self.text)
            .path(path)
            .annotation(AnnotationKind::Primary.span(problem.place.clone()).label(&problem.label));
        for (place, label) in &problem.others {
            snippet = snippet.annotation(AnnotationKind::Context.span(place.clone()).label(label));
        }
        let mut group = level.primary_title(&problem.title).element(snippet);
        if let Some(elsewhere) = &problem.elsewhere {
            let origin =
                Origin::path(elsewhere.path.display().to_string()).line(elsewhere.line).char_column(elsewhere.column);
            group = group.element(Element::from(origin));
        }
        if let Some(help) = &problem.help {
            group = group.element(Level::HELP.message(help));
        }
        renderer.render(&[group])
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}
