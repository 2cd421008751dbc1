//! Rewrites the `Link` field of a page (RFC 8288). Only the targets change; the rest of the value stays.

use super::csp::Policies;
use crate::plan::Plan;
use crate::preloads::{Preloads, may_lack_consumer};
use page_scanner::links::{self, Purpose};
use std::ops::Range;
use url_mapping::{Base, Object, Outcome, Reason};

/// The characters between links.
const BETWEEN: [char; 3] = [' ', '\t', ','];

/// One link of the header's value.
struct Link<'a> {
    /// The bytes of the link, without the comma.
    whole: Range<usize>,
    /// The bytes of its target, without the brackets.
    target: Range<usize>,
    parameters: Vec<(&'a str, &'a str)>,
}

/// Moves the targets that may move, and returns the new value if it differs. A value that is not a list of links stays.
///
/// Links to compression dictionaries are removed. Otherwise browsers would offer a dictionary for bodies that are not
/// the origin's.
///
/// Adds preloads that could move to `preloads`. They stay, and so do later uses of the same objects.
pub(crate) fn rewrite(
    plan: &Plan,
    base: &Base,
    policies: &Policies,
    preloads: &mut Preloads,
    value: &[u8],
) -> Option<Vec<u8>> {
    let value = std::str::from_utf8(value).ok()?;
    let mut out = String::with_capacity(value.len());
    let mut copied = 0;
    for link in parse(value)? {
        if link.has_rel("compression-dictionary") {
            out.push_str(value.get(copied..link.whole.start)?);
            let rest = value.get(link.whole.end..)?;
            copied = value.len() - rest.trim_start_matches(BETWEEN).len();
            continue;
        }
        let target = value.get(link.target.clone())?;
        let outcome = match link.purpose() {
            Ok(Purpose { usage, .. }) => {
                let permit = |object: &Object<'_>| policies.permit(usage, object);
                plan.mapper().forward_if(base, target, usage, permit)
            }
            Err(reason) => Outcome::Left(reason),
        };
        let mut moves = |moved: &str| match link.purpose() {
            Ok(purpose) if purpose.is_preload && may_lack_consumer(purpose.usage) => preloads.may_move_preload(moved),
            _ => preloads.may_move(moved),
        };
        if let Some(moved) = outcome.replacement().filter(|moved| moves(moved)) {
            out.push_str(value.get(copied..link.target.start)?);
            out.push_str(moved);
            copied = link.target.end;
        }
    }
    out.push_str(value.get(copied..)?);
    (out != value).then(|| out.trim_end_matches(BETWEEN).as_bytes().to_vec())
}

impl Link<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    fn has_rel(&self, rel: &str) -> bool {
        self.get("rel").is_some_and(|value| value.split_ascii_whitespace().any(|token| token.eq_ignore_ascii_case(rel)))
    }

    /// Returns the use of the target, by the rules of the `link` element: only objects fetched without conditions move.
    fn purpose(&self) -> Result<Purpose, Reason> {
        let purpose = links::purpose(
            self.get("rel").unwrap_or_default().as_bytes(),
            self.get("as").unwrap_or_default().as_bytes(),
        )?;
        if self.get("integrity").is_some_and(|value| !value.is_empty()) {
            Err(Reason::Integrity)
        } else if self.get("crossorigin").is_some() {
            Err(Reason::Cors)
        } else if self.get("anchor").is_some() {
            Err(Reason::LinkRel)
        } else if self.get("imagesrcset").is_some() {
            Err(Reason::Preload)
        } else {
            Ok(purpose)
        }
    }
}

/// Returns every link of a value, or `None` if it is not a list of links.
fn parse(value: &str) -> Option<Vec<Link<'_>>> {
    let mut links = Vec::new();
    let mut scanner = Scanner { value, at: 0 };
    loop {
        scanner.skip(BETWEEN);
        if scanner.rest().is_empty() {
            return Some(links);
        }
        let start = scanner.at;
        scanner.expect('<')?;
        let target = scanner.until(['>'])?;
        scanner.expect('>')?;
        let mut parameters = Vec::new();
        loop {
            scanner.skip([' ', '\t']);
            if scanner.expect(';').is_none() {
                break;
            }
            scanner.skip([' ', '\t']);
            let name = scanner.token([';', ',', '=', ' ', '\t']);
            scanner.skip([' ', '\t']);
            let mut text = "";
            if scanner.expect('=').is_some() {
                scanner.skip([' ', '\t']);
                text = scanner.parameter_value()?;
            }
            parameters.push((name, text));
        }
        if !scanner.rest().is_empty() && !scanner.rest().starts_with(',') {
            return None;
        }
        links.push(Link { whole: start..scanner.at, target, parameters });
    }
}

struct Scanner<'a> {
    value: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        self.value.get(self.at..).unwrap_or_default()
    }

    fn skip<const N: usize>(&mut self, characters: [char; N]) {
        self.at = self.value.len() - self.rest().trim_start_matches(characters).len();
    }

    fn expect(&mut self, character: char) -> Option<()> {
        self.rest().strip_prefix(character)?;
        self.at += character.len_utf8();
        Some(())
    }

    /// Skips to one of `ends` and returns the range before it. `None` if no such character follows.
    fn until<const N: usize>(&mut self, ends: [char; N]) -> Option<Range<usize>> {
        let length = self.rest().find(ends)?;
        let start = self.at;
        self.at += length;
        Some(start..self.at)
    }

    /// Returns the text before one of `ends`, or before the end.
    fn token<const N: usize>(&mut self, ends: [char; N]) -> &'a str {
        let length = self.rest().find(ends).unwrap_or(self.rest().len());
        let token = self.rest().get(..length).unwrap_or_default();
        self.at += length;
        token
    }

    /// Returns a token or a quoted string, without unescaping it. The values that this module compares need no escapes.
    fn parameter_value(&mut self) -> Option<&'a str> {
        if self.expect('"').is_none() {
            return Some(self.token([';', ',', ' ', '\t']));
        }
        let start = self.at;
        let mut escaped = false;
        let length = self.rest().find(|character| {
            let ends = character == '"' && !escaped;
            escaped = character == '\\' && !escaped;
            ends
        })?;
        self.at += length;
        let text = self.value.get(start..self.at);
        self.expect('"')?;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use url_mapping::Scheme;

    fn rewritten(value: &str) -> Option<String> {
        let plan = Plan::from_json(
            br#"{"targets": {"https": ["pep.example.net"]}, "own": ["pep.example.net"], "level": "safe", "ports": [80, 443]}"#,
        )
        .unwrap();
        let base = Base::new(Scheme::Http, "www.foo.example", "/a/").unwrap();
        let changed = rewrite(&plan, &base, &Policies::default(), &mut Preloads::default(), value.as_bytes());
        changed.map(|value| String::from_utf8(value).unwrap())
    }

    #[test]
    fn a_link_goes_where_its_consumer_goes_and_nothing_else_of_the_value_changes() {
        for (value, expected) in [
            (
                "<http://cdn.example/a.css>; rel=\"stylesheet preconnect\"",
                "<https://pep.example.net/cdn.example/a.css>; rel=\"stylesheet preconnect\"",
            ),
            (
                "<//cdn.example/a,b;c.css> ;\trel=\"Preload  STYLESHEET\";x=\"a,\\\"<b>\",</b.css>;rel=stylesheet",
                "<https://pep.example.net/cdn.example/a,b;c.css> ;\trel=\"Preload  STYLESHEET\";x=\"a,\\\"<b>\",</b.css>;rel=stylesheet",
            ),
            (
                "<x.css>; rel=stylesheet, <https://cdn.example/x.css>; rel=stylesheet; nopush",
                "<x.css>; rel=stylesheet, <https://pep.example.net/cdn.example:443/x.css>; rel=stylesheet; nopush",
            ),
        ] {
            assert_eq!(rewritten(value).as_deref(), Some(expected));
        }
    }

    #[test]
    fn links_of_other_kinds_or_with_conditions_stay() {
        for value in [
            "",
            "<http://cdn.example/m.js>; rel=modulepreload",
            "<http://cdn.example/>; rel=preconnect",
            "<http://cdn.example/x>; rel=canonical",
            "<http://cdn.example/x.css>; rel=preload; as=style; integrity=\"sha256-abc\"",
            "<http://cdn.example/x.js>; rel=preload; as=script; crossorigin",
            "<http://cdn.example/f>; rel=preload; as=fetch",
            "<http://cdn.example/x.css>; rel=stylesheet; anchor=\"#a\"",
            "<http://cdn.example/x.png>; rel=preload; as=image; imagesrcset=\"http://cdn.example/y.png 2x\"",
            "<http://cdn.example/f.woff2>; rel=preload; as=font",
            "http://cdn.example/x.css; rel=stylesheet",
            "<http://cdn.example/x.css>; rel=preload; as=style",
            "<http://cdn.example/x.css>; rel=preload; as=style, <http://cdn.example/x.css>; rel=stylesheet",
            "<http://cdn.example/x.css; rel=stylesheet",
            "<http://cdn.example/x.css>; rel=\"stylesheet",
            "<http://cdn.example/x.css> rel=stylesheet",
        ] {
            assert_eq!(rewritten(value), None, "{value}");
        }
    }

    #[test]
    fn dictionaries_are_not_offered() {
        for (value, expected) in [
            ("</d>; rel=compression-dictionary", ""),
            ("</a>; rel=next, </d>; rel=\"compression-dictionary\", </b>; rel=prev", "</a>; rel=next, </b>; rel=prev"),
            ("</d>; rel=compression-dictionary, </b>; rel=prev", "</b>; rel=prev"),
        ] {
            assert_eq!(rewritten(value).as_deref(), Some(expected));
        }
    }
}
