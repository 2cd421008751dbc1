//! Problems of a configuration: the fault, its place and the remedy, shown as compilers show them.

use std::fmt;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Element, Level, Origin, Renderer, Snippet};

use super::yaml::Place;

/// One thing that is wrong, or doubtful, with its place in the configuration file.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// An error refuses the file; a warning does not.
    pub severity: Severity,
    /// The fault in one line, with the name of the setting.
    pub title: String,
    /// Bytes of the configuration file it stands at.
    pub place: Place,
    /// The value that was found there.
    pub label: String,
    /// Other settings that have to do with it: contradictions name both.
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
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

/// The weight of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Refused.
    Error,
    /// Accepted, but the operator should know.
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

    /// Names another setting that has to do with it.
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

/// Everything found in one file, in the order it stands there.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The file as the operator named it.
    pub path: PathBuf,
    /// Its text, for showing lines of it.
    pub text: String,
    /// Sorted by place.
    pub problems: Vec<Problem>,
}

impl Report {
    pub(super) fn new(path: PathBuf, text: String, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.place.start);
        Self { path, text, problems }
    }

    /// Returns whether the file is refused.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// All of it as text; with colours where `styled`.
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
