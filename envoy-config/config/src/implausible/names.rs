//! Names: a whole top-level domain in place of a site.

use crate::allowlist::NamePattern;
use crate::contradictions::Places;
use crate::diagnostic::Problem;
use crate::names::HostName;
use crate::settings::Draft;
use crate::top_level_domain::{instead_of_domain, top_level_domain};

pub(super) fn check(places: &Places<'_>, draft: &Draft) -> Vec<Problem> {
    let excepted = draft.dns.iter().flat_map(|dns| &dns.except_names).filter_map(|pattern| match pattern {
        NamePattern::Tree(name) | NamePattern::Below(name) => Some(name),
        NamePattern::Exact(_) => None,
    });
    let untouched = draft.rewrite.iter().flat_map(|rewrite| &rewrite.exclude);
    let images = draft.images.iter().flat_map(|images| &images.exclude);
    let mut found = Vec::new();
    found.extend(excepted.filter_map(|name| of(places, &["dns", "except"], name)));
    found.extend(untouched.filter_map(|name| of(places, &["rewrite", "exclude"], name)));
    found.extend(images.filter_map(|name| of(places, &["page", "images", "exclude"], name)));
    found
}

fn of(places: &Places<'_>, path: &[&str], name: &HostName) -> Option<Problem> {
    let domain = top_level_domain(name)?;
    let title = format!("`{}`: `{domain}` is a whole top-level domain", path.join("."));
    let problem = Problem::warning(title, places.item(path, domain), "it stands for every name below it");
    Some(problem.help(instead_of_domain(domain)))
}
