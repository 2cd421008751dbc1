//! Finds the slip behind a YAML error. A parser often stumbles lines after the slip, and then names another fault.

use super::diagnostic::{Place, Problem};
use super::keys::KEYS;

/// The lines above an error that are searched for the slip.
const LINES_BACK: usize = 4;

/// A line of the file, without its end, and the offset of its start in bytes.
#[derive(Clone, Copy)]
struct Line<'t> {
    text: &'t str,
    start: usize,
}

impl<'t> Line<'t> {
    fn indentation(self) -> &'t str {
        let content = self.text.trim_start_matches([' ', '\t']);
        self.text.get(..self.text.len() - content.len()).unwrap_or_default()
    }

    /// Returns the text without indentation, list dash and comment.
    fn content(self) -> &'t str {
        let text = self.text.trim_start_matches([' ', '\t']);
        let text = text.strip_prefix("- ").unwrap_or(text);
        if text.starts_with('#') { "" } else { text.split(" #").next().unwrap_or(text).trim_end() }
    }

    /// Returns the place of `part`, which is a slice of this line.
    fn place_of(self, part: &str) -> Place {
        let offset = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let start = self.start + offset.min(self.text.len());
        start..start + part.len()
    }
}

/// Returns the problem for text that is not YAML. The parser failed at the byte `at` with `message`.
pub(super) fn of_not_yaml(text: &str, at: usize, message: &str) -> Problem {
    let (failed, above) = around(text, at);
    let near: Vec<Line<'_>> = failed.into_iter().chain(above.iter().rev().copied()).collect();
    let searched = || near.iter().copied().filter(|line| !line.content().is_empty()).take(LINES_BACK);
    tab(&near)
        .or_else(|| searched().find_map(tab_behind_colon))
        .or_else(|| searched().find_map(variable))
        .or_else(|| searched().find_map(no_space))
        .or_else(|| searched().find_map(needs_quotes))
        .or_else(|| unclosed(text, at))
        .or_else(|| indentation(failed, &above))
        .unwrap_or_else(|| {
            let place = failed.map_or(at..at, |line| at..(line.start + line.text.len()).max(at));
            Problem::error("this is not YAML", place, message.to_owned())
                .help("check indentation, brackets and quotes at and above this line")
        })
}

/// Returns the problem for a key at the byte `at` that is not a word: a variable, or an IPv6 address without quotes.
pub(super) fn of_key(text: &str, at: usize) -> Option<Problem> {
    let line = around(text, at).0?;
    variable(line).or_else(|| needs_quotes(line))
}

/// Returns the problem for a file that is one word, because no colon in it makes a key.
pub(super) fn of_no_keys(text: &str) -> Option<Problem> {
    lines(text).into_iter().find_map(no_space)
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let split = text.split('\n').map(|line| {
        let this = Line { text: line.trim_end_matches('\r'), start };
        start += line.len() + 1;
        this
    });
    split.collect()
}

/// Returns the line with the byte `at`, and the lines above it.
fn around(text: &str, at: usize) -> (Option<Line<'_>>, Vec<Line<'_>>) {
    let mut above = lines(text);
    above.retain(|line| line.start <= at);
    let failed = above.pop();
    (failed, above)
}

fn is_known(word: &str) -> bool {
    KEYS.iter().any(|key| key.name.split('.').any(|part| part == word))
}

/// A known key with a value directly behind the colon, or with an equals sign.
fn no_space(line: Line<'_>) -> Option<Problem> {
    let content = line.content();
    let end = content.find([':', '='])?;
    let (key, rest) = content.split_at_checked(end)?;
    let value = rest.get(1..)?;
    let equals = rest.starts_with('=');
    let directly = !value.is_empty() && !value.starts_with([' ', '\t']);
    if !is_known(key.trim_end()) || !(equals || directly) || value.starts_with("//") {
        return None;
    }
    let (key, value) = (key.trim_end(), value.trim());
    let (title, label) = match () {
        () if equals => (format!("`=` after `{key}`"), "expected a colon and a space"),
        () if rest.chars().nth(1).is_some_and(char::is_whitespace) => {
            (format!("no space after `{key}:`"), "the character behind the colon is a no-break space")
        }
        () => (format!("no space after `{key}:`"), "expected a space behind the colon"),
    };
    let place = line.place_of(content);
    Some(Problem::error(title, place, label).help(format!("write `{key}: {value}`")))
}

fn tab(near: &[Line<'_>]) -> Option<Problem> {
    let line = near.iter().take(2).find(|line| line.indentation().contains('\t'))?;
    let tab = line.indentation().find('\t')?;
    let place = line.start + tab..line.start + tab + 1;
    Some(
        Problem::error("a tab in the indentation", place, "a tab stands here")
            .help("indent with two spaces for each level"),
    )
}

/// A tab behind a colon. YAML permits it, but the parser does not read it everywhere.
fn tab_behind_colon(line: Line<'_>) -> Option<Problem> {
    let content = line.content();
    let (key, rest) = content.split_once(":\t")?;
    let key = key.rsplit([' ', '{', ',']).next().filter(|key| is_known(key))?;
    let value = rest.split([',', '}']).next().unwrap_or(rest).trim_end();
    let place = line.place_of(key).start..line.place_of(value).end;
    let value = value.trim_start();
    let problem = Problem::error(format!("a tab behind `{key}:`"), place, "expected a space, not a tab");
    Some(problem.help(format!("write `{key}: {value}`, with a space")))
}

/// A variable without quotes. Its braces mean something else to YAML.
fn variable(line: Line<'_>) -> Option<Problem> {
    let content = line.content();
    let marks = [("${", "}"), ("{{", "}}")].into_iter();
    let found = marks.filter_map(|(opening, closing)| Some((content.find(opening)?, closing)));
    let (start, closing) = found.min()?;
    let rest = content.get(start..)?;
    let end = rest.find(closing).map_or(rest.len(), |end| end + closing.len());
    let word = rest.get(..end)?;
    let problem = Problem::error(format!("`{word}` is not replaced"), line.place_of(word), "expected a value");
    Some(problem.help("variables are not expanded: write the value itself, or render the file before"))
}

/// A value that begins with a character of YAML: `*.example.org`, `[::]:80`, `@`, `%`.
fn needs_quotes(line: Line<'_>) -> Option<Problem> {
    let content = line.content();
    let words = content.split([' ', ',', '{', '}']).map(|word| word.trim_start_matches('[').trim_end_matches(']'));
    let starred = words.clone().find(|word| word.starts_with("*."));
    let address = content.split([' ', ',', '{', '}']).find_map(bracketed_socket);
    let other = words.clone().find(|word| word.starts_with(['@', '`', '%']));
    let word = starred.or(address).or(other)?;
    let place = line.place_of(word);
    Some(
        Problem::error("a value without quotes", place, "YAML gives its first character another meaning")
            .help(format!("write it in quotes: \"{word}\"")),
    )
}

/// Returns the IPv6 address with a port in a word, without the brackets of a list around it: `[::]:80` of `[[::]:80]`.
fn bracketed_socket(word: &str) -> Option<&str> {
    let closing = word.find("]:")?;
    let opening = word.get(..closing)?.rfind('[')?;
    let port = word.get(closing + 2..)?;
    let digits = port.bytes().take_while(u8::is_ascii_digit).count();
    word.get(opening..closing + 2 + digits)
}

/// A bracket or a quote that is not closed before the parser failed.
fn unclosed(text: &str, at: usize) -> Option<Problem> {
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut quote: Option<(char, usize)> = None;
    let mut before = '\n';
    let mut comment = false;
    for (offset, character) in text.char_indices().take_while(|(offset, _)| *offset <= at) {
        let starts_word = before.is_whitespace() || matches!(before, '[' | '{' | ',');
        match (quote, character) {
            _ if comment => comment = character != '\n',
            (Some((mark, _)), _) if character == mark => quote = None,
            (None, '#') if before.is_whitespace() => comment = true,
            (None, '"' | '\'') if starts_word => quote = Some((character, offset)),
            (None, '[' | '{') if starts_word => open.push((character, offset)),
            (None, ']' | '}') if offset < at => drop(open.pop()),
            _ => {}
        }
        before = character;
    }
    let (mark, offset) = quote.or_else(|| open.pop())?;
    let line_end = |from: usize| text.get(from..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| from + end);
    // An opening bracket on the line of the error may be closed behind it.
    let another = text.get(at..).is_some_and(|rest| rest.starts_with([']', '}']));
    if quote.is_none() && at < line_end(offset) && !another {
        return None;
    }
    let closing = match mark {
        '[' => ']',
        '{' => '}',
        other => other,
    };
    let problem = Problem::error(format!("`{mark}` is not closed"), offset..offset + 1, "opened here");
    Some(problem.help(format!("add `{closing}` at the end of the value")))
}

/// A line that is indented differently from the key above it.
fn indentation(failed: Option<Line<'_>>, above: &[Line<'_>]) -> Option<Problem> {
    let failed = failed?;
    let last = above.iter().rev().find(|line| !line.content().is_empty())?;
    let key = failed.content().split(':').next().filter(|key| is_known(key))?;
    let (found, wanted) = (failed.indentation().len(), last.indentation().len());
    if found == wanted || last.content().ends_with(':') {
        return None;
    }
    let place = failed.place_of(key);
    let label = format!("indented by {found} spaces, the line above by {wanted}");
    Some(
        Problem::error(format!("`{key}` is indented differently from the line above"), place, label)
            .help("indent the keys of a group by the same number of spaces"),
    )
}
