//! Shared by the tests of header policy.

#![allow(dead_code, unreachable_pub)] // each test uses its part
#![allow(clippy::unwrap_used)] // clippy.toml does not see that this is a test

use std::rc::Rc;
use url_rewriting::Plan;
use url_rewriting::headers::{Edit, Fields};

/// Returns a plan with an https name and an http address. Objects move to the name.
pub fn plan(level: &str) -> Rc<Plan> {
    let json = format!(
        r#"{{"targets": {{"https": ["pep.example.net"], "http": []}}, "own": ["pep.example.net", "198.51.100.12:8080"],
            "level": "{level}", "exclude": ["bank.example"], "ports": [80, 443, 8080]}}"#
    );
    Plan::from_json(json.as_bytes()).unwrap()
}

pub fn fields<'a>(list: &[(&'a str, &'a str)]) -> Fields<'a> {
    list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
}

/// An edit that is short to write.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    Set(String, String),
    Add(String, String),
    Remove(String),
}

impl Change {
    pub fn name(&self) -> &str {
        match self {
            Self::Set(name, _) | Self::Add(name, _) | Self::Remove(name) => name,
        }
    }
}

pub fn changes(edits: &[Edit]) -> Vec<Change> {
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    edits
        .iter()
        .map(|edit| match edit {
            Edit::Set(name, value) => Change::Set((*name).to_owned(), text(value)),
            Edit::Add(name, value) => Change::Add((*name).to_owned(), text(value)),
            Edit::Remove(name) => Change::Remove(name.to_string()),
        })
        .collect()
}

/// Returns a header list after edits, as a client would receive it.
pub fn edited(list: &[(&str, &str)], edits: &[Edit]) -> Vec<(String, String)> {
    let mut list: Vec<_> = list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    for change in changes(edits) {
        match change {
            Change::Remove(name) => list.retain(|(other, _)| *other != name),
            Change::Add(name, value) => list.push((name, value)),
            Change::Set(name, value) => {
                list.retain(|(other, _)| *other != name);
                list.push((name, value));
            }
        }
    }
    list
}
