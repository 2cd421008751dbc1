//! Which client used which site in an hour? One file holds an hour, a line for each client and site.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::billed::Moved;
use crate::access_log::bytes_in_words;
use crate::table;

/// The pairs of a client and a site that are counted apart in an hour. The rest of a client is one row.
const MOST: usize = 20_000;
/// The row of all further sites.
const OTHERS: &str = "others";
const HOUR_S: u64 = 3600;

/// The use of an hour.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WhoHour {
    /// The hour, in seconds since 1970.
    begin_s: u64,
    sums: BTreeMap<(IpAddr, String), (u64, u64)>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    client: IpAddr,
    site: String,
    down: u64,
    up: u64,
}

impl WhoHour {
    /// Returns the hour of a time in seconds since 1970. `before` is what its file has already.
    #[must_use]
    pub fn at(at_s: u64, before: &str) -> Self {
        let mut this = Self { begin_s: at_s - at_s % HOUR_S, sums: BTreeMap::new() };
        for Line { client, site, down, up } in lines(before) {
            this.add(&Moved { client, site, down, up });
        }
        this
    }

    /// Returns true if a time is within the hour.
    #[must_use]
    pub fn has(&self, at_s: u64) -> bool {
        at_s - at_s % HOUR_S == self.begin_s
    }

    /// Adds bytes.
    pub(super) fn add(&mut self, moved: &Moved) {
        if moved.down == 0 && moved.up == 0 {
            return;
        }
        let key = (moved.client, moved.site.clone());
        let key = if self.sums.len() < MOST || self.sums.contains_key(&key) {
            key
        } else {
            (moved.client, OTHERS.to_owned())
        };
        let (down, up) = self.sums.entry(key).or_default();
        (*down, *up) = (down.saturating_add(moved.down), up.saturating_add(moved.up));
    }

    /// Returns the name of its file.
    #[must_use]
    pub fn name(&self) -> String {
        Self::name_at(self.begin_s)
    }

    /// Returns the name of the file of the hour of a time in seconds since 1970, such as `2026-11-22T19.jsonl`. Names sort
    /// by time.
    #[must_use]
    pub fn name_at(at_s: u64) -> String {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(at_s);
        let text = humantime::format_rfc3339_seconds(time).to_string();
        format!("{}.jsonl", text.get(..13).unwrap_or(&text))
    }

    /// Returns the content of its file.
    ///
    /// # Errors
    /// A line cannot be written as JSON, which is a bug in this program.
    pub fn text(&self) -> serde_json::Result<String> {
        let mut text = String::new();
        for ((client, site), (down, up)) in &self.sums {
            text += &serde_json::to_string(&Line { client: *client, site: site.clone(), down: *down, up: *up })?;
            text.push('\n');
        }
        Ok(text)
    }
}

fn lines(text: &str) -> impl Iterator<Item = Line> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// The sums of several hours, for `longhaul log --who`.
#[derive(Debug, Clone, Default)]
pub struct WhoSums {
    site: Option<String>,
    sums: BTreeMap<(IpAddr, String), (u64, u64)>,
}

impl WhoSums {
    /// Returns sums of one site and names below it, or of all.
    #[must_use]
    pub fn of(site: Option<String>) -> Self {
        Self { site, sums: BTreeMap::new() }
    }

    /// Adds the content of a file.
    pub fn add(&mut self, text: &str) {
        let wished = self.site.clone();
        let is_wished = |site: &str| {
            wished.as_ref().is_none_or(|wished| {
                site == wished || site.strip_suffix(wished.as_str()).is_some_and(|rest| rest.ends_with('.'))
            })
        };
        for line in lines(text).filter(|line| is_wished(&line.site)) {
            let (down, up) = self.sums.entry((line.client, line.site)).or_default();
            (*down, *up) = (down.saturating_add(line.down), up.saturating_add(line.up));
        }
    }

    fn by_bytes(&self) -> Vec<Line> {
        let line = |((client, site), (down, up)): (&(IpAddr, String), &(u64, u64))| Line {
            client: *client,
            site: site.clone(),
            down: *down,
            up: *up,
        };
        let mut lines: Vec<Line> = self.sums.iter().map(line).collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.down.saturating_add(line.up)));
        lines
    }

    /// Returns a table, the rows with most bytes first.
    #[must_use]
    pub fn text(&self) -> String {
        let row = |line: Line| {
            let site: String = line.site.chars().filter(|one| !one.is_control()).collect();
            vec![line.client.to_string(), bytes_in_words(line.down), bytes_in_words(line.up), site]
        };
        let rows: Vec<Vec<String>> = self.by_bytes().into_iter().map(row).collect();
        table::table(&["client", "down", "up", "site"], &rows, 120)
    }

    /// Returns a JSON object a line, those with most bytes first.
    ///
    /// # Errors
    /// As [`WhoHour::text`].
    pub fn json(&self) -> serde_json::Result<String> {
        let lines: Vec<String> = self.by_bytes().iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        Ok(lines.into_iter().map(|line| line + "\n").collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(client: &str, site: &str, down: u64) -> Moved {
        Moved { client: client.parse().unwrap(), site: site.to_owned(), down, up: 1 }
    }

    #[test]
    fn an_hour_goes_on_behind_a_restart_and_sums_add_up() {
        let mut hour = WhoHour::at(1_800_000_000, "");
        assert!(hour.has(1_800_003_599) && !hour.has(1_800_003_600));
        assert_eq!(hour.name(), "2027-01-15T08.jsonl");
        hour.add(&moved("192.0.2.7", "www.example.org", 100));
        let mut again = WhoHour::at(1_800_000_100, &hour.text().unwrap());
        again.add(&moved("192.0.2.7", "www.example.org", 23));
        again.add(&moved("192.0.2.8", "other.test", 5));
        again.add(&Moved { up: 0, ..moved("192.0.2.9", "other.test", 0) });
        let mut sums = WhoSums::of(None);
        sums.add(&again.text().unwrap());
        let lines: Vec<(u64, u64)> = sums.by_bytes().iter().map(|line| (line.down, line.up)).collect();
        assert_eq!(lines, [(123, 2), (5, 1)]);
        assert!(sums.text().contains("www.example.org") && sums.json().unwrap().lines().count() == 2);
        let mut one = WhoSums::of(Some("example.org".to_owned()));
        one.add(&again.text().unwrap());
        assert_eq!(one.by_bytes().len(), 1);
    }
}
