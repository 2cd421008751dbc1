//! Parses Prometheus' text format as Envoy and CoreDNS write it, and sums over it.

use std::collections::BTreeMap;

/// One page of metrics.
#[derive(Debug, Default, PartialEq)]
pub struct Scrape(Vec<Sample>);

#[derive(Debug, PartialEq)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Scrape {
    /// Parses a page. Skips lines that are no sample, because a newer program may write lines of unknown form.
    pub fn parse(text: &str) -> Self {
        Self(text.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect())
    }

    /// Returns the sum of `name` over all samples whose labels satisfy `holds`. 0 if there are none.
    pub(crate) fn sum_where(&self, name: &str, holds: impl Fn(&dyn Fn(&str) -> Option<String>) -> bool) -> u64 {
        let matching = self.0.iter().filter(|sample| sample.name == name && holds(&|label| sample.label(label)));
        whole(matching.map(|sample| sample.value).sum())
    }

    /// Returns the sum of `name` over all labels.
    pub fn sum(&self, name: &str) -> u64 {
        self.sum_where(name, |_| true)
    }

    /// Returns the sum of `name` over the samples whose `label` is `value`.
    pub fn sum_of(&self, name: &str, label: &str, value: &str) -> u64 {
        self.sum_where(name, |of| of(label).as_deref() == Some(value))
    }

    /// Returns true if any name begins with `beginning`.
    pub(crate) fn has(&self, beginning: &str) -> bool {
        self.0.iter().any(|sample| sample.name.starts_with(beginning))
    }

    /// Returns `name` by the values of `label`, in the order of these.
    pub(crate) fn values(&self, name: &str, label: &str) -> Vec<(String, u64)> {
        self.values_where(name, label, |_| true)
    }

    /// Returns `name` by the values of `label`, over the samples whose labels satisfy `holds`.
    pub(crate) fn values_where(
        &self,
        name: &str,
        label: &str,
        holds: impl Fn(&dyn Fn(&str) -> Option<String>) -> bool,
    ) -> Vec<(String, u64)> {
        let mut sums = BTreeMap::new();
        for sample in self.0.iter().filter(|sample| sample.name == name && holds(&|label| sample.label(label))) {
            let Some(value) = sample.label(label) else { continue };
            *sums.entry(value).or_insert(0.0) += sample.value;
        }
        sums.into_iter().map(|(value, sum)| (value, whole(sum))).collect()
    }

    /// Returns `name` by the values of `label`, largest first, without zeros.
    pub(crate) fn by(&self, name: &str, label: &str) -> Vec<(String, u64)> {
        let mut found = self.values(name, label);
        found.retain(|(_, sum)| *sum > 0);
        found.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        found
    }

    /// Returns the value of `label` in the first sample of `name`.
    pub(crate) fn label(&self, name: &str, label: &str) -> Option<String> {
        self.0.iter().find(|sample| sample.name == name)?.label(label)
    }
}

impl Sample {
    fn label(&self, name: &str) -> Option<String> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.clone())
    }
}

/// Converts a counter. Counters are whole numbers written as floating point.
fn whole(value: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and below 2^53")]
    let whole = value.max(0.0) as u64;
    whole
}

/// Parses `NAME{LABEL="VALUE",...} NUMBER`. The braces are optional, and a time may follow.
fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' ']).filter(|end| *end > 0)?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

/// Parses labels up to the closing brace. Returns them with the rest of the line.
fn labels(mut rest: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        labels.push((name.to_owned(), value));
        rest = after;
    }
}

/// Parses a value up to its closing quote and resolves its escapes. Returns it with the rest of the line.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"# TYPE a_total counter
a_total{reason="csp",to="x"} 3
a_total{reason="cors",} 1.2e1
a_total{reason="none"} 0
b{} 7
c 8 1795254311415
d{path="C:\\x,\"y\"}"} 1
no sample at all
broken{a="b 1
"#;

    #[test]
    fn samples_are_summed_and_parted_by_their_labels() {
        let scrape = Scrape::parse(PAGE);
        assert_eq!(scrape.sum("a_total"), 15);
        assert_eq!(scrape.sum_of("a_total", "reason", "csp"), 3);
        assert_eq!(scrape.by("a_total", "reason"), [("cors".to_owned(), 12), ("csp".to_owned(), 3)]);
        assert_eq!((scrape.sum("b"), scrape.sum("c"), scrape.sum("absent")), (7, 8, 0));
    }

    #[test]
    fn a_label_may_hold_quotes_commas_and_braces() {
        let scrape = Scrape::parse(PAGE);
        assert_eq!(scrape.label("d", "path").as_deref(), Some(r#"C:\x,"y"}"#));
    }

    #[test]
    fn lines_that_are_no_samples_are_left_out() {
        for line in ["no sample at all", "broken{a=\"b 1", "{} 1 1", " 1", ""] {
            assert_eq!(Scrape::parse(line), Scrape::default(), "{line}");
        }
    }
}
