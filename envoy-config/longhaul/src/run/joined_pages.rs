//! Several pages of metrics in Prometheus' text format as one page.

use std::collections::{HashMap, HashSet};

/// Joins pages to one. Programs may count under one name (`process_...`): its samples then stand together, below the
/// first page's description, because a page describes a name once.
pub(super) fn joined<'p>(pages: impl Iterator<Item = &'p str>) -> String {
    let mut families: Vec<Family<'p>> = Vec::new();
    let mut places: HashMap<&'p str, usize> = HashMap::new();
    let mut size = 0;
    for page in pages {
        size += page.len() + 1;
        let mut here = HashSet::new();
        // The family of the lines since the last description. Lines before the first description have none.
        let mut present = None;
        for line in page.lines().filter(|line| !line.is_empty()) {
            if let Some(name) = described(line) {
                let place = *places.entry(name).or_insert_with(|| {
                    here.insert(name);
                    families.push(Family::default());
                    families.len() - 1
                });
                present = Some(place);
                if here.contains(name)
                    && let Some(family) = families.get_mut(place)
                {
                    family.description.push(line);
                }
                continue;
            }
            let place = *present.get_or_insert_with(|| {
                families.push(Family::default());
                families.len() - 1
            });
            if let Some(family) = families.get_mut(place) {
                family.samples.push(line);
            }
        }
    }
    let mut text = String::with_capacity(size);
    for line in families.iter().flat_map(|family| family.description.iter().chain(&family.samples)) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// The lines about one name.
#[derive(Default)]
struct Family<'p> {
    description: Vec<&'p str>,
    samples: Vec<&'p str>,
}

/// Returns the name in `# TYPE NAME ...` or `# HELP NAME ...`.
fn described(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("# TYPE ").or_else(|| line.strip_prefix("# HELP "))?;
    rest.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn joined_pages_describe_a_name_once_and_keep_every_sample_below_it() {
        let one = "# HELP up Up.\n# TYPE up gauge\nup 1\n# TYPE a counter\na{x=\"1\"} 2\na{x=\"2\"} 3\n";
        let other = "# TYPE b gauge\nb 4\n# HELP up Also up.\n# TYPE up gauge\nup{of=\"b\"} 5\n";
        assert_eq!(
            joined([one, other].into_iter()),
            "# HELP up Up.\n# TYPE up gauge\nup 1\nup{of=\"b\"} 5\n# TYPE a counter\na{x=\"1\"} 2\na{x=\"2\"} 3\n\
             # TYPE b gauge\nb 4\n"
        );
        assert_eq!(joined(["loose 1\n", one].into_iter()), format!("loose 1\n{one}"));
        assert_eq!(joined([].into_iter()), "");
    }
}
