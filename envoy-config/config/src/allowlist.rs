//! Lists of names for the steering DNS, one name a line.
//!
//! The DNS server reads these files itself. `longhaul check` reads them too, so that it can refuse a bad line with its
//! place before anything starts.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::{fmt, fs};

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use super::names::{HostName, NameError};
use super::policy_zone;
use super::top_level_domain::top_level_domain;

/// The names that a line of a list covers.
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
pub(crate) struct ListError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The bad entry, as written.
    pub entry: String,
    /// The fault.
    pub error: LineError,
}

/// A fault of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineError {
    /// The name in it.
    Name(NameError),
    /// A line of a hosts file that does not begin with an address.
    NoAddress,
    /// An address without a name behind it.
    NoName,
    /// More than the DNS server reads of one line.
    TooLong,
    /// The list is a response policy zone, which earlier releases read.
    PolicyZone,
    /// Something behind a name on a line of a plain list.
    Several,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::NoAddress => f.write_str("no address first, as in the other lines of this hosts file"),
            Self::NoName => f.write_str("an address without a name"),
            Self::TooLong => write!(f, "a line of more than {MAX_LINE_BYTES} bytes"),
            Self::PolicyZone => f.write_str("the zone file of a response policy zone"),
            Self::Several => f.write_str("a blank, a comma or a semicolon in it: write one name a line"),
        }
    }
}

impl From<NameError> for LineError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

/// The comment of a list that may be empty. Without it an empty list is an error, because such a list steers nothing.
const ALLOW_EMPTY: &str = "allow-empty";

/// The longest line that the DNS server reads: its `maxLineBytes`, less the newline.
const MAX_LINE_BYTES: usize = (64 << 10) - 1;

/// The blanks of text files. Other blanks, such as a no-break space, are part of the entry.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Characters between names that belong on lines of their own.
const SEPARATORS: [char; 4] = [' ', '\t', ',', ';'];

/// The number of characters of an entry that an error shows.
const MOST_SHOWN: usize = 300;

/// The number of bad lines reported for one file. The first few are enough to recognise the kind of file.
const MAX_ERRORS: usize = 5;

impl NamePattern {
    /// Reads one entry.
    pub(crate) fn parse(text: &str) -> Result<Self, NameError> {
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

/// Names of one or several lists, for questions about other names.
#[derive(Default)]
pub(crate) struct NameSet {
    trees: HashSet<String>,
    exact: HashSet<String>,
    below: HashSet<String>,
}

impl NameSet {
    pub(crate) fn of(patterns: impl IntoIterator<Item = NamePattern>) -> Self {
        let mut set = Self::default();
        for pattern in patterns {
            match pattern {
                NamePattern::Tree(name) => set.trees.insert(name.as_str().to_owned()),
                NamePattern::Exact(name) => set.exact.insert(name.as_str().to_owned()),
                NamePattern::Below(name) => set.below.insert(name.as_str().to_owned()),
            };
        }
        set
    }

    /// Returns true if every name that `pattern` covers is covered by one pattern of the set.
    pub(crate) fn covers(&self, pattern: &NamePattern) -> bool {
        let in_tree = |name: &HostName| and_parents(name).any(|name| self.trees.contains(name));
        let is_below = |name: &HostName| and_parents(name).skip(1).any(|name| self.below.contains(name));
        match pattern {
            NamePattern::Tree(name) => in_tree(name) || is_below(name),
            NamePattern::Exact(name) => in_tree(name) || is_below(name) || self.exact.contains(name.as_str()),
            NamePattern::Below(name) => in_tree(name) || is_below(name) || self.below.contains(name.as_str()),
        }
    }
}

/// Returns a name and every name above it: `a.b.example`, `b.example`, `example`.
fn and_parents(name: &HostName) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name.as_str()), |name| name.split_once('.').map(|(_, parent)| parent))
}

/// The contents of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListSummary {
    /// Names in it, duplicates counted twice.
    pub names: usize,
    /// True if a comment in the list says that it may be empty.
    pub may_be_empty: bool,
    /// The first entry that is a whole top-level domain of the Internet, with its line, from 1.
    pub(crate) whole_domain: Option<(usize, String)>,
}

/// The format of a list. The first line with an entry decides it, as in the DNS server.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    /// One entry a line.
    Plain,
    /// As /etc/hosts: an address, which is ignored, and names.
    Hosts,
}

impl Format {
    fn of(entry: &str) -> Self {
        match entry.split_once(BLANKS) {
            Some((first, _)) if is_address(first) => Self::Hosts,
            _ => Self::Plain,
        }
    }
}

/// Returns true if `text` is an address. An IPv6 address may have a zone.
fn is_address(text: &str) -> bool {
    match text.split_once('%') {
        None => text.parse::<IpAddr>().is_ok(),
        Some((address, zone)) => !zone.is_empty() && address.parse::<Ipv6Addr>().is_ok(),
    }
}

/// The names of lists and the exceptions from them. Files that cannot be read hold nothing.
pub(crate) struct Listed {
    lists: Vec<String>,
    excepted: NameSet,
}

impl Listed {
    pub(crate) fn read(lists: &[PathBuf], except_names: &[NamePattern], except_files: &[PathBuf]) -> Self {
        let texts =
            |files: &[PathBuf]| files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect::<Vec<_>>();
        let of_files = texts(except_files);
        let excepted = except_names.iter().cloned().chain(of_files.iter().flat_map(|text| names(text)));
        Self { excepted: NameSet::of(excepted), lists: texts(lists) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lists.iter().all(|text| names(text).next().is_none())
    }

    /// Returns the entries that no exception covers as a whole, duplicates twice.
    pub(crate) fn steered(&self) -> impl Iterator<Item = NamePattern> + '_ {
        self.lists.iter().flat_map(|text| names(text)).filter(|name| !self.excepted.covers(name))
    }
}

/// Checks every line by the DNS server's rules (`coredns-plugin/names`), and returns at most `MAX_ERRORS` errors. A
/// response policy zone is one error.
pub(crate) fn check(text: &str) -> Result<ListSummary, Vec<ListError>> {
    let mut summary = ListSummary { names: 0, may_be_empty: false, whole_domain: None };
    let mut errors = Vec::new();
    let mut format = None;
    for (index, line) in text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').enumerate() {
        let (content, comment) = line.split_once('#').unwrap_or((line, ""));
        let entry = content.trim_matches(BLANKS);
        let zone_comment = entry.strip_prefix(';').filter(|_| format.is_none());
        summary.may_be_empty |=
            [comment, zone_comment.unwrap_or("")].iter().any(|it| it.trim_matches(BLANKS) == ALLOW_EMPTY);
        let read = if line.len() > MAX_LINE_BYTES {
            Err(LineError::TooLong)
        } else if entry.is_empty() || zone_comment.is_some() {
            continue;
        } else if format.is_none() && policy_zone::begins_with(entry) {
            Err(LineError::PolicyZone)
        } else {
            match format.get_or_insert_with(|| Format::of(entry)) {
                Format::Plain => plain_line(entry).map(|pattern| {
                    if summary.whole_domain.is_none() {
                        summary.whole_domain = whole_domain(&pattern).map(|domain| (index + 1, domain));
                    }
                    1
                }),
                Format::Hosts => hosts_line(entry),
            }
        };
        match read {
            Ok(names) => summary.names += names,
            Err(error) => {
                let column = content.chars().take_while(|c| BLANKS.contains(c)).count() + 1;
                let entry = entry.chars().take(MOST_SHOWN).collect();
                errors.push(ListError { line: index + 1, column, entry, error });
                if errors.len() == MAX_ERRORS || error == LineError::PolicyZone {
                    break;
                }
            }
        }
    }
    if errors.is_empty() { Ok(summary) } else { Err(errors) }
}

fn plain_line(entry: &str) -> Result<NamePattern, LineError> {
    let pattern = NamePattern::parse(entry)
        .map_err(|error| if entry.contains(SEPARATORS) { LineError::Several } else { LineError::Name(error) })?;
    strict_unicode(entry.trim_start_matches(['=', '*']).trim_start_matches('.'))?;
    Ok(pattern)
}

/// Returns the top-level domain of the Internet that a pattern covers as a whole.
fn whole_domain(pattern: &NamePattern) -> Option<String> {
    match pattern {
        NamePattern::Tree(name) | NamePattern::Below(name) => top_level_domain(name).map(str::to_owned),
        NamePattern::Exact(_) => None,
    }
}

/// Returns every name of a list that [`check`] accepts, in order.
pub(crate) fn names(text: &str) -> impl Iterator<Item = NamePattern> + '_ {
    let lines = text.strip_prefix('\u{feff}').unwrap_or(text).split('\n');
    let entries = lines.map(|line| line.split_once('#').map_or(line, |(content, _)| content).trim_matches(BLANKS));
    let mut format = None;
    entries.filter(|entry| !entry.is_empty() && !entry.starts_with(';')).flat_map(move |entry| {
        match format.get_or_insert_with(|| Format::of(entry)) {
            Format::Plain => NamePattern::parse(entry).ok().into_iter().collect(),
            Format::Hosts => {
                let names = entry.split(BLANKS).skip(1).filter(|word| word.contains('.'));
                names.filter_map(|name| HostName::parse(name).ok().map(NamePattern::Exact)).collect::<Vec<_>>()
            }
        }
    })
}

/// Counts the names of one line. Names without a dot belong to the machine itself and do not count.
fn hosts_line(entry: &str) -> Result<usize, LineError> {
    let mut words = entry.split(BLANKS).filter(|word| !word.is_empty());
    if !words.next().is_some_and(is_address) {
        return Err(LineError::NoAddress);
    }
    let mut words = words.peekable();
    words.peek().ok_or(LineError::NoName)?;
    let mut names = 0;
    for name in words.filter(|name| name.contains('.') && !["0.0.0.0", "localhost.localdomain"].contains(name)) {
        HostName::parse(name)?;
        strict_unicode(name)?;
        names += 1;
    }
    Ok(names)
}

/// Refuses Unicode that the DNS server refuses. It converts names as a resolver does for a query: without underscores,
/// and without hyphens in odd places.
fn strict_unicode(name: &str) -> Result<(), NameError> {
    if name.is_ascii() {
        return Ok(());
    }
    Uts46::new()
        .to_ascii(name.as_bytes(), AsciiDenyList::STD3, Hyphens::Check, DnsLength::Ignore)
        .map(|_| ())
        .map_err(|_| NameError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_comments_blank_lines_and_dos_line_ends_are_read() {
        let text = "\u{feff}# sites\r\nexample.org\r\n\r\n =www.example.net # only this\r\n*.example.com\r\n";
        assert_eq!(check(text), Ok(ListSummary { names: 3, may_be_empty: false, whole_domain: None }));
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

    /// The DNS server's own tests read the same file.
    #[test]
    fn a_line_that_the_dns_server_refuses_is_refused_here_too() {
        #[derive(serde::Deserialize)]
        struct Case {
            name: String,
            list: String,
            /// The line. None if the list is accepted, 0 if the list as a whole is refused.
            refused_at: Option<usize>,
        }
        let cases: Vec<Case> =
            serde_json::from_str(include_str!("../../../coredns-plugin/names/testdata/lists.json")).unwrap();
        for case in cases {
            let refused_at = match check(&case.list.replace("LONG", &"a".repeat(1 << 16))) {
                Ok(ListSummary { names: 0, may_be_empty: false, .. }) => Some(0),
                Ok(_) => None,
                Err(errors) => errors.first().map(|error| error.line),
            };
            assert_eq!(refused_at, case.refused_at, "{}", case.name);
        }
    }

    #[test]
    fn the_names_of_a_list_are_those_that_are_checked() {
        let shown = |text: &str| names(text).map(|name| name.to_string()).collect::<Vec<_>>();
        assert_eq!(
            shown("\u{feff}# a\r\n =a.example # b\n*.b.example\n\nc.example.\n"),
            ["=a.example", "*.b.example", "c.example"]
        );
        assert_eq!(shown("127.0.0.1 localhost\n0.0.0.0 a.example\tb.example\n"), ["=a.example", "=b.example"]);
    }

    #[test]
    fn a_set_of_names_covers_what_each_of_its_patterns_covers() {
        let pattern = |text: &str| NamePattern::parse(text).unwrap();
        let set = NameSet::of(["tree.example", "=exact.example", "*.below.example"].map(pattern));
        for (text, covered) in [
            ("tree.example", true),
            ("a.tree.example", true),
            ("*.tree.example", true),
            ("=tree.example", true),
            ("exact.example", false),
            ("=exact.example", true),
            ("*.exact.example", false),
            ("below.example", false),
            ("*.below.example", true),
            ("a.below.example", true),
            ("=below.example", false),
            ("other.example", false),
        ] {
            assert_eq!(set.covers(&pattern(text)), covered, "{text}");
        }
    }

    #[test]
    fn names_that_an_exception_covers_are_not_steered() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            vec![path]
        };
        let lists = file("list.txt", "a.example\n=b.example\nc.example\nx.d.example\n");
        let except = file("except.txt", "*.d.example\n");
        let names = ["a.example", "=c.example"].map(|name| NamePattern::parse(name).unwrap());
        let listed = Listed::read(&lists, &names, &except);
        assert_eq!(listed.steered().map(|name| name.to_string()).collect::<Vec<_>>(), ["=b.example", "c.example"]);
        assert!(Listed::read(&except[..0], &names, &except).is_empty());
    }

    #[test]
    fn names_behind_each_other_are_recognised_as_such() {
        for text in ["a.example b.example\n", "a.example,b.example\n", "a.example;\n", "a.example\tb.example\n"] {
            assert_eq!(check(text).unwrap_err()[0].error, LineError::Several, "{text}");
        }
    }

    #[test]
    fn an_empty_list_may_say_that_it_is_meant() {
        assert_eq!(check("# nothing yet\n"), Ok(ListSummary { names: 0, may_be_empty: false, whole_domain: None }));
        assert_eq!(check("# allow-empty\n"), Ok(ListSummary { names: 0, may_be_empty: true, whole_domain: None }));
    }
}
