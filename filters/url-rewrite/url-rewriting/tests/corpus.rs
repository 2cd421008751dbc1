//! Rewrites every saved real page. The pieces do not change the output, only URLs change, and they lead back.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use common::undo;
use common::{Dice, corpora, files_below, page, page_at, plan, rewrite, rewrite_in, rewrite_pieces};

struct Page {
    name: String,
    host: String,
    bytes: Vec<u8>,
}

fn pages() -> Vec<Page> {
    let Some(folder) = corpora("html") else { return Vec::new() };
    let stats = std::fs::read_to_string(folder.join("page-stats.csv")).unwrap_or_default();
    files_below(&folder, "html")
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
            let row = stats.lines().find(|row| row.starts_with(&format!("{name},")));
            let host = row.and_then(|row| row.split(',').nth(2)).filter(|host| host.contains('.'));
            Page { host: host.unwrap_or("www.test.example").to_owned(), bytes: std::fs::read(&path).unwrap(), name }
        })
        .collect()
}

#[test]
fn only_urls_of_real_pages_change_and_they_lead_back() {
    let mut moved = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        for level in ["safe", "full"] {
            let plan = plan(level);
            let done = rewrite(&plan, page_at(&page.host), &page.bytes);
            if let Some(cause) = done.bail_out {
                wrong.push(format!("{} at {level} stopped: {cause}", page.name));
            }
            if let Err(fault) = undo::only_moved_urls_differ(&page.bytes, &done.bytes, &done.seen, plan.mapper()) {
                wrong.push(format!("{} at {level}: {fault}", page.name));
            }
            moved += done.seen.iter().filter(|url| url.moved().is_some()).count();
        }
    }
    assert!(wrong.is_empty(), "{} of the pages:\n{}", wrong.len(), wrong.join("\n"));
    eprintln!("{moved} URLs moved");
}

#[test]
fn real_pages_come_out_the_same_however_they_arrive() {
    let plan = plan("full");
    for (seed, page) in pages().into_iter().enumerate() {
        let whole = rewrite(&plan, page_at(&page.host), &page.bytes);
        for most in [7, 300, 20_000] {
            let mut dice = Dice::new(seed as u64);
            let pieces = dice.cut(&page.bytes, most);
            let cut = rewrite_pieces(&plan, page_at(&page.host), pieces.into_iter());
            assert!(whole == cut, "{} in pieces of up to {most} bytes", page.name);
        }
        if page.bytes.len() < 20_000 {
            assert!(whole == rewrite_in(&plan, page_at(&page.host), &page.bytes, 1), "{} byte by byte", page.name);
        }
    }
}

#[test]
fn real_pages_are_untouched_when_nothing_moves() {
    let plan = plan("off");
    for one in pages() {
        let done = rewrite(&plan, page(), &one.bytes);
        assert!(done.bytes == one.bytes, "{}", one.name);
    }
}

#[test]
fn rewriting_a_rewritten_real_page_changes_nothing() {
    let plan = plan("full");
    for one in pages() {
        let once = rewrite(&plan, page_at(&one.host), &one.bytes);
        let twice = rewrite(&plan, page_at(&one.host), &once.bytes);
        let differ = once.bytes.iter().zip(&twice.bytes).position(|(one, two)| one != two);
        let around =
            differ.map(|at| String::from_utf8_lossy(&twice.bytes[at.saturating_sub(150)..at + 100]).into_owned());
        assert!(once.bytes == twice.bytes, "{}: {around:?}", one.name);
    }
}
