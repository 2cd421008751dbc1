//! Lists of names for the steering DNS: one name a line.
//!
//! The DNS server reads these files itself. They are read here too, so that a bad line is refused with its place before
//! anything is started, and not found later in a log.

use std::fmt;
use std::net::IpAddr;

use super::names::{HostName, NameError};

/// What a line of a list covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NamePattern {
    /// `example.org`: the name and everything below it.
    Tree(HostName),
    /// `=example.org`: only itself.
    Exact(HostName),
    /// `*.example.org`: only what is below it.
    Below(HostName),
}

/// A bad place in a list file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The entry as it stands there.
    pub entry: String,
    /// What is wrong with it.
    pub error: NameError,
}

/// A list that says nothing steers nothing, which is rarely meant; one that means it carries this comment.
const ALLOW_EMPTY: &str = "allow-empty";

/// How many bad lines of one file are worth showing: the first few tell what kind of file it is.
const MAX_ERRORS: usize = 5;

impl NamePattern {
    /// Reads one entry.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if let Some(name) = text.strip_prefix('=') {
            return HostName::parse(name).map(Self::Exact);
        }
        match text.strip_prefix("*.") {
            Some(name) => HostName::parse(name).map(Self::Below),
            None => HostName::parse(text).map(Self::Tree),
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree(name) => name.fmt(f),
            Self::Exact(name) => write!(f, "={name}"),
            Self::Below(name) => write!(f, "*.{name}"),
        }
    }
}

/// What a list holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListSummary {
    /// Names in it, duplicates counted twice.
    pub names: usize,
    /// Whether it says itself that it may be empty.
    pub may_be_empty: bool,
}

/// How a list is written; the DNS server tells formats by the first line that says anything, and so does this.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    /// One entry a line.
    Plain,
    /// As /etc/hosts: an address, which is ignored, and names.
    Hosts,
    /// A response policy zone; only the DNS server reads these.
    Zone,
}

impl Format {
    fn of(entry: &str) -> Self {
        match entry.split_once(char::is_whitespace) {
            None => Self::Plain,
            Some((first, _)) if first.parse::<IpAddr>().is_ok() => Self::Hosts,
            Some(_) => Self::Zone,
        }
    }
}

/// Checks every line; at most a handful of errors are returned.
pub fn check(text: &str) -> Result<ListSummary, Vec<ListError>> {
    let mut summary = ListSummary { names: 0, may_be_empty: false };
    let mut errors = Vec::new();
    let mut format = None;
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let (content, comment) = line.split_once('#').unwrap_or((line, ""));
        summary.may_be_empty |= comment.trim() == ALLOW_EMPTY;
        let entry = content.trim();
        if entry.is_empty() || (format.is_none() && entry.starts_with(';')) {
            continue;
        }
        let read = match format.get_or_insert_with(|| Format::of(entry)) {
            Format::Zone => return Ok(ListSummary { names: 1, may_be_empty: true }),
            Format::Plain => NamePattern::parse(entry).map(|_| 1),
            Format::Hosts => hosts_line(entry),
        };
        match read {
            Ok(names) => summary.names += names,
            Err(error) => {
                let column = content.chars().take_while(|c| c.is_whitespace()).count() + 1;
                errors.push(ListError { line: index + 1, column, entry: entry.to_owned(), error });
                if errors.len() == MAX_ERRORS {
                    break;
                }
            }
        }
    }
    if errors.is_empty() { Ok(summary) } else { Err(errors) }
}

/// Names of one line; those without a dot are the machine's own and never meant.
fn hosts_line(entry: &str) -> Result<usize, NameError> {
    let mut names = 0;
    for name in entry.split_whitespace().skip(1).filter(|name| name.contains('.') && *name != "0.0.0.0") {
        HostName::parse(name)?;
        names += 1;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_comments_blank_lines_and_dos_line_ends_are_read() {
        let text = "\u{feff}# sites\r\nexample.org\r\n\r\n =www.example.net # only this\r\n*.example.com\r\n";
        assert_eq!(check(text), Ok(ListSummary { names: 3, may_be_empty: false }));
    }

    #[test]
    fn a_bad_line_is_named_with_its_place_and_the_good_ones_are_not() {
        let errors = check("example.org\n  http://example.net/\nok.example\n").unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!((errors[0].line, errors[0].column, errors[0].entry.as_str()), (2, 3, "http://example.net/"));
    }

    #[test]
    fn a_file_that_is_no_list_does_not_give_a_thousand_errors() {
        let text = "<html>\n".repeat(1000);
        assert_eq!(check(&text).unwrap_err().len(), MAX_ERRORS);
    }

    #[test]
    fn a_hosts_file_is_read_for_its_names() {
        assert_eq!(check("127.0.0.1 localhost\n0.0.0.0 ads.example ads.example.net\n").map(|list| list.names), Ok(2));
        assert_eq!(check("0.0.0.0 ads.example\n0.0.0.0 ads..example\n").unwrap_err()[0].line, 2);
    }

    #[test]
    fn an_empty_list_may_say_that_it_is_meant() {
        assert_eq!(check("# nothing yet\n"), Ok(ListSummary { names: 0, may_be_empty: false }));
        assert_eq!(check("# allow-empty\n"), Ok(ListSummary { names: 0, may_be_empty: true }));
    }
}
