//! Parses YAML into a tree that holds the place of every value.
//!
//! Scalars stay text. The reader of a key decides if `8080` is a port or a name, and YAML's own guesses (`no`, `1e3`,
//! `0x10`) would only be in the way. Anchors, aliases and tags are refused: a value that is written elsewhere has no
//! place to which an error could point.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use super::diagnostic::{Place, Problem};
use super::slips;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: NodeValue,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeValue {
    /// An empty value, `~` or `null`, unquoted.
    Null,
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// `key: value` of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_place: Place,
    pub(super) node: Node,
}

/// The bound on recursion. No valid file is as deep.
const MAX_DEPTH: usize = 16;

/// Parses one document. Adds problems of form (not YAML, duplicate keys, anchors) to `problems`. Returns None if no
/// tree could be made.
pub(super) fn parse(text: &str, problems: &mut Vec<Problem>) -> Option<Node> {
    let mut builder = Builder { text, offsets: char_offsets(text), parser: Parser::new_from_str(text), problems };
    builder.document()
}

/// Returns the byte offset of every character, and of the end. The YAML parser counts characters, and everything else
/// here counts bytes.
fn char_offsets(text: &str) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()
}

struct Builder<'t, 'p> {
    text: &'t str,
    offsets: Vec<usize>,
    parser: Parser<'t, saphyr_parser::StrInput<'t>>,
    problems: &'p mut Vec<Problem>,
}

impl<'t> Builder<'t, '_> {
    fn document(&mut self) -> Option<Node> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                other if root.is_none() => root = Some(self.node(other, span, 0)?),
                _ => {
                    let place = self.place(span);
                    self.problems.push(
                        Problem::error("a second YAML document", place, "starts here")
                            .help("keep one document in the file"),
                    );
                    return None;
                }
            }
        }
        if root.is_none() {
            self.problems.push(
                Problem::error("the file is empty", 0..0, "expected settings such as `role: edge`")
                    .help("longhaul.yaml(5) lists all keys"),
            );
        }
        root
    }

    fn next(&mut self) -> Option<(Event<'t>, Span)> {
        match self.parser.next_event()? {
            Ok(event) => Some(event),
            Err(error) => {
                let at = self.offset(*error.marker());
                self.problems.push(slips::of_not_yaml(self.text, at, error.info()));
                None
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Option<Node> {
        let place = self.place(span);
        if depth > MAX_DEPTH {
            self.problems.push(Problem::error("nested too deeply", place, "no setting lies this deep"));
            return None;
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_anchor_or_tag(anchor, tag.is_some(), &place);
                let plain = style == ScalarStyle::Plain;
                let null = plain && matches!(text.as_ref(), "" | "~" | "null");
                let value = if null { NodeValue::Null } else { NodeValue::Scalar(text.into_owned()) };
                Some(Node { place, value })
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_anchor_or_tag(anchor, tag.is_some(), &place);
                self.list(place, depth)
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_anchor_or_tag(anchor, tag.is_some(), &place);
                self.map(place, depth)
            }
            Event::Alias(_) => {
                self.problems.push(no_anchors(place.clone()));
                Some(Node { place, value: NodeValue::Null })
            }
            _ => None,
        }
    }

    fn list(&mut self, start: Place, depth: usize) -> Option<Node> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                let place = start.start..self.place(span).end.max(start.end);
                return Some(Node { place, value: NodeValue::List(items) });
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn map(&mut self, start: Place, depth: usize) -> Option<Node> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let key_place = self.place(span);
            let key = match event {
                Event::MappingEnd => {
                    let place = start.start..key_place.end.max(start.end);
                    return Some(Node { place, value: NodeValue::Map(entries) });
                }
                Event::Scalar(text, ..) => Some(text.into_owned()),
                other => {
                    if let Some(slip) = slips::of_key(self.text, key_place.start) {
                        self.problems.push(slip);
                        return None;
                    }
                    self.node(other, span, depth + 1)?;
                    self.problems.push(Problem::error(
                        "a key that is not a word",
                        key_place.clone(),
                        "expected a name here",
                    ));
                    None
                }
            };
            let (event, span) = self.next()?;
            let node = self.node(event, span, depth + 1)?;
            let Some(key) = key else { continue };
            if let Some(number) = entries.last_mut().filter(|last| self.is_decimal_comma(last, &key_place, &node)) {
                number.node.join(&key, key_place.end);
                continue;
            }
            if let Some(first) = entries.iter().find(|entry| entry.key == key) {
                self.problems.push(
                    Problem::error(format!("`{key}` is set twice"), key_place, "again here")
                        .and(first.key_place.clone(), "first here")
                        .help("keep one of the two"),
                );
                continue;
            }
            entries.push(Entry { key, key_place, node });
        }
    }

    /// Returns true if `last` is the number before a decimal comma, and the next entry the rest: `{ rtt: 0,6s }`. YAML reads
    /// the comma as the end of the value.
    fn is_decimal_comma(&self, last: &Entry, next_key: &Place, next: &Node) -> bool {
        let digit_at =
            |at: Option<usize>| at.and_then(|at| self.text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
        let comma = last.node.place.end;
        let is_number = matches!(&last.node.value, NodeValue::Scalar(text) if text.parse::<u64>().is_ok());
        is_number
            && next.value == NodeValue::Null
            && self.text.get(comma..next_key.start) == Some(",")
            && digit_at(comma.checked_sub(1))
            && digit_at(Some(next_key.start))
    }

    fn refuse_anchor_or_tag(&mut self, anchor: usize, tagged: bool, place: &Place) {
        if anchor != 0 {
            self.problems.push(no_anchors(place.clone()));
        }
        if tagged {
            self.problems.push(
                Problem::error("a YAML tag", place.clone(), "no `!tag` is known here").help("write the plain value"),
            );
        }
    }

    fn place(&self, span: Span) -> Place {
        let start = self.offset(span.start);
        // Block collections end at the next token, so their place is cut at the end of the first line.
        let end = self.offset(span.end).max(start);
        let shown = self.text.get(start..end).unwrap_or_default();
        let shown = shown.split(['\n', '\r']).next().unwrap_or_default().trim_end();
        start..start + shown.len()
    }

    fn offset(&self, marker: Marker) -> usize {
        self.offsets.get(marker.index()).copied().unwrap_or(self.text.len())
    }
}

fn no_anchors(place: Place) -> Problem {
    Problem::error("YAML anchors and aliases are not accepted", place, "used here")
        .help("write the value out where it is used")
}

impl Node {
    /// Adds the rest of a number behind a decimal comma, which ends at `end`. No number has a comma, so its reader refuses it
    /// as a whole.
    fn join(&mut self, rest: &str, end: usize) {
        if let NodeValue::Scalar(text) = &mut self.value {
            text.push(',');
            text.push_str(rest);
            self.place.end = end;
        }
    }

    /// Returns the entry of `key` if this is a mapping that has it.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            NodeValue::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// Describes the value, for "found ...".
    pub(super) fn found(&self) -> String {
        match &self.value {
            NodeValue::Null => "nothing".to_owned(),
            NodeValue::Scalar(text) => format!("`{text}`"),
            NodeValue::List(items) if items.is_empty() => "an empty list".to_owned(),
            NodeValue::List(_) => "a list".to_owned(),
            NodeValue::Map(_) => "a group of keys".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> (Option<Node>, Vec<Problem>) {
        let mut problems = Vec::new();
        let node = parse(text, &mut problems);
        (node, problems)
    }

    fn slice<'t>(text: &'t str, node: &Node, path: &[&str]) -> &'t str {
        let mut node = node;
        for key in path {
            node = &node.entry(key).unwrap().node;
        }
        &text[node.place.clone()]
    }

    #[test]
    fn places_are_byte_exact_behind_characters_of_several_bytes() {
        let text = "# größe\nlink: { rtt: 600ms, down: \"20mbit\" }\nproxy:\n  addresses: [198.51.100.12]\n";
        let (node, problems) = parsed(text);
        let node = node.unwrap();
        assert_eq!(problems, []);
        assert_eq!(slice(text, &node, &["link", "rtt"]), "600ms");
        assert_eq!(slice(text, &node, &["link", "down"]), "\"20mbit\"");
        assert_eq!(slice(text, &node, &["proxy", "addresses"]), "[198.51.100.12]");
    }

    #[test]
    fn yaml_without_places_or_with_two_meanings_is_refused() {
        for (text, title) in [
            ("a: 1\na: 2\n", "`a` is set twice"),
            ("a: &x 1\n", "YAML anchors and aliases are not accepted"),
            ("a: !int 1\n", "a YAML tag"),
            ("a: 1\n---\nb: 2\n", "a second YAML document"),
            ("a: [1, 2\nb: 3\n", "`[` is not closed"),
            ("a: b: c\n", "this is not YAML"),
            ("? [a]\n: 1\n", "a key that is not a word"),
            ("# nothing\n", "the file is empty"),
        ] {
            let (_, problems) = parsed(text);
            assert_eq!(problems.iter().map(|p| p.title.as_str()).collect::<Vec<_>>(), [title], "{text}");
        }
    }

    #[test]
    fn a_number_with_a_decimal_comma_is_one_value() {
        let text = "{ rtt: 0,6s, down: 50,000, up: 1, 2x: , id: a,7 }";
        let node = parsed(text).0.unwrap();
        assert_eq!(slice(text, &node, &["rtt"]), "0,6s");
        assert_eq!(slice(text, &node, &["down"]), "50,000");
        assert_eq!(slice(text, &node, &["up"]), "1", "a blank behind the comma begins a key");
        assert_eq!(slice(text, &node, &["id"]), "a");
    }

    #[test]
    fn absence_is_null_and_a_quoted_word_is_not() {
        let (node, _) = parsed("a:\nb: null\nc: 'null'\n");
        let node = node.unwrap();
        assert_eq!(node.entry("a").unwrap().node.value, NodeValue::Null);
        assert_eq!(node.entry("b").unwrap().node.value, NodeValue::Null);
        assert_eq!(node.entry("c").unwrap().node.value, NodeValue::Scalar("null".into()));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic_and_every_place_lies_within_it(text in "[a-z:{}\\[\\], \n\"'&*!ü-]{0,60}") {
            let (node, problems) = parsed(&text);
            for problem in &problems {
                prop_assert!(text.get(problem.place.clone()).is_some());
            }
            if let Some(node) = node {
                prop_assert!(text.get(node.place.clone()).is_some());
            }
        }
    }
}
