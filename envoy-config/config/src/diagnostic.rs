//! Problems of a configuration: the fault, its place and the remedy, printed as compilers print them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

/// SHA-256 of the content of files at the time they were read.
pub(crate) type FileHashes = BTreeMap<PathBuf, [u8; 32]>;

/// A range of bytes of the configuration file.
pub(super) type Place = Range<usize>;

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
    pub(crate) others: Vec<(Place, String)>,
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

impl Severity {
    /// Returns the word for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
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

/// The longest line that a message shows, in bytes. The time to print a line grows with the square of its length.
const LONGEST_SHOWN: usize = 2_000;

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
    pub(crate) fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Returns the report as text, with colours if `styled`.
    pub fn render(&self, styled: bool) -> String {
        // A terminal shows the part of a long line around its fault. Files and pipes get the whole line.
        let renderer = if styled { Renderer::styled() } else { Renderer::plain().term_width(2 * LONGEST_SHOWN) };
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
        let places = || std::iter::once(&problem.place).chain(problem.others.iter().map(|(place, _)| place));
        let mut group = if places().all(|place| self.line_at(place.start).len() <= LONGEST_SHOWN) {
            self.with_source(problem, level)
        } else {
            let (line, column) = self.position(problem.place.start);
            let origin = Origin::path(self.path.display().to_string()).line(line).char_column(column);
            level.primary_title(&problem.title).element(origin).element(Level::NOTE.message(&problem.label))
        };
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

    /// Returns the title of a problem and the lines that it is about.
    fn with_source<'r>(&'r self, problem: &'r Problem, level: Level<'r>) -> Group<'r> {
        let mut snippet = Snippet::source(&self.text)
            .path(self.path.display().to_string())
            .annotation(AnnotationKind::Primary.span(problem.place.clone()).label(&problem.label));
        for (place, label) in &problem.others {
            snippet = snippet.annotation(AnnotationKind::Context.span(place.clone()).label(label));
        }
        level.primary_title(&problem.title).element(snippet)
    }

    /// Returns the line and the column of a byte of the text, both from 1, the column in characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
    }

    fn line_at(&self, offset: usize) -> &str {
        let (before, after) = self.text.split_at_checked(offset).unwrap_or((&self.text, ""));
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = after.find('\n').map_or(self.text.len(), |newline| before.len() + newline);
        self.text.get(start..end).unwrap_or_default()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}
