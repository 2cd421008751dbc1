//! The record of problems: which ones stand, and which ones ended. Pure, so that tests set the clock.

use longhaul_observe::report::{ProblemKind, ProblemRecord};

/// The problems that ended and are remembered.
const REMEMBERED: usize = 20;
/// The states in a row that must show a beginning or an end. A program that is restarted is away for one.
const SEEN: u32 = 2;
/// A problem that says itself that it has stood for so many seconds is believed at once.
const STOOD_S: u64 = 2;

/// A change of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    /// A problem stands.
    Began(ProblemRecord),
    /// It ended.
    Ended(ProblemRecord),
}

/// A problem and the states in a row that contradict its record.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Doubt {
    problem: ProblemRecord,
    states: u32,
}

/// The record of problems.
#[derive(Debug, Default)]
pub(super) struct ProblemLog {
    /// The last one to begin is first.
    records: Vec<ProblemRecord>,
    /// Problems that were seen too seldom to be recorded.
    coming: Vec<Doubt>,
    /// Problems of the record that are not seen any more, with the time of the first such state.
    going: Vec<Doubt>,
}

impl ProblemLog {
    /// Continues the record of an earlier run. A problem that stood then and stands now is one.
    pub(super) fn of(records: Vec<ProblemRecord>) -> Self {
        Self { records, ..Self::default() }
    }

    /// Returns the record.
    pub(super) fn records(&self) -> &[ProblemRecord] {
        &self.records
    }

    /// Adds the problems of a state at `now`, in seconds since 1970. Returns what is new.
    pub(super) fn add(&mut self, now: u64, present: Vec<ProblemRecord>) -> Vec<News> {
        // A box that drains is about to end, and its programs with it.
        if present.iter().any(|problem| problem.kind == ProblemKind::Draining) {
            return Vec::new();
        }
        let mut news = self.ends(now, &present);
        news.extend(self.beginnings(now, present));
        let ended = |record: &ProblemRecord| record.ended.is_some();
        let mut kept = 0;
        self.records.retain(|record| {
            kept += usize::from(ended(record));
            !ended(record) || kept <= REMEMBERED
        });
        news
    }

    fn ends(&mut self, now: u64, present: &[ProblemRecord]) -> Vec<News> {
        let mut news = Vec::new();
        let before = std::mem::take(&mut self.going);
        for record in self.records.iter_mut().filter(|record| record.ended.is_none()) {
            if let Some(same) = present.iter().find(|problem| problem.is_like(record)) {
                record.text.clone_from(&same.text);
                continue;
            }
            let gone = before.iter().find(|doubt| doubt.problem.is_like(record));
            let first = gone.map_or(now, |doubt| doubt.problem.began);
            let states = gone.map_or(0, |doubt| doubt.states) + 1;
            if states >= SEEN {
                record.ended = Some(first);
                news.push(News::Ended(record.clone()));
            } else {
                self.going.push(Doubt { problem: ProblemRecord { began: first, ..record.clone() }, states });
            }
        }
        news
    }

    fn beginnings(&mut self, now: u64, present: Vec<ProblemRecord>) -> Vec<News> {
        let mut news = Vec::new();
        let before = std::mem::take(&mut self.coming);
        for problem in present {
            if self.records.iter().any(|record| record.ended.is_none() && record.is_like(&problem)) {
                continue;
            }
            let seen = before.iter().find(|doubt| doubt.problem.is_like(&problem));
            let began = seen.map_or(problem.began, |doubt| doubt.problem.began.min(problem.began));
            let states = seen.map_or(0, |doubt| doubt.states) + 1;
            let problem = ProblemRecord { began, ..problem };
            if states >= SEEN || now.saturating_sub(began) >= STOOD_S {
                self.records.insert(0, problem.clone());
                news.push(News::Began(problem));
            } else {
                self.coming.push(Doubt { problem, states });
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: ProblemKind, began: u64) -> ProblemRecord {
        ProblemRecord { kind, of: String::new(), text: kind.label().to_owned(), began, ended: None }
    }

    #[test]
    fn a_problem_begins_and_ends_once_with_its_times() {
        let mut log = ProblemLog::default();
        let silent = |now| vec![problem(ProblemKind::LinkSilent, now)];
        assert_eq!(log.add(98, silent(97)), []);
        assert_eq!(log.add(102, silent(97)), [News::Began(problem(ProblemKind::LinkSilent, 97))]);
        assert_eq!(log.add(104, silent(97)), []);
        assert_eq!(log.add(150, Vec::new()), []);
        let ended = ProblemRecord { ended: Some(150), ..problem(ProblemKind::LinkSilent, 97) };
        assert_eq!(log.add(152, Vec::new()), [News::Ended(ended.clone())]);
        assert_eq!(log.add(154, Vec::new()), []);
        assert_eq!(log.records(), [ended]);
    }

    #[test]
    fn what_is_there_for_one_state_is_no_problem_and_what_is_away_for_one_is_no_end() {
        let mut log = ProblemLog::default();
        let down = || vec![problem(ProblemKind::ProgramDown, 0)];
        for now in 0..10 {
            let present = if now % 2 == 0 { vec![problem(ProblemKind::ProgramDown, now)] } else { Vec::new() };
            assert_eq!(log.add(now, present), [], "{now}");
        }
        assert_eq!(log.add(20, down()).len(), 1, "it has stood for long");
        for now in 22..30 {
            let present = if now % 2 == 0 { Vec::new() } else { down() };
            assert_eq!(log.add(now, present), [], "{now}");
        }
    }

    #[test]
    fn the_parts_of_one_kind_are_told_apart_and_an_earlier_run_is_continued() {
        let of = |of: &str| ProblemRecord { of: of.to_owned(), ..problem(ProblemKind::ResolverDown, 5) };
        let mut log = ProblemLog::of(vec![of("192.0.2.1:53")]);
        let both = || vec![of("192.0.2.1:53"), of("192.0.2.2:53")];
        assert_eq!(log.add(6, both()), []);
        assert_eq!(log.add(7, both()), [News::Began(of("192.0.2.2:53"))]);
        assert_eq!(log.add(14, vec![problem(ProblemKind::Draining, 14)]), []);
        assert_eq!(log.records().iter().filter(|record| record.ended.is_some()).count(), 0);
    }

    #[test]
    fn the_record_is_bounded_and_keeps_what_stands() {
        let mut log = ProblemLog::of(vec![problem(ProblemKind::CacheDisk, 0)]);
        let stands = || problem(ProblemKind::CacheDisk, 0);
        for round in 1..60 {
            let now = round * 10;
            let both = || vec![stands(), problem(ProblemKind::LinkSilent, now)];
            log.add(now, both());
            log.add(now + 2, both());
            log.add(now + 4, vec![stands()]);
            log.add(now + 6, vec![stands()]);
        }
        assert_eq!(log.records().len(), REMEMBERED + 1);
        assert_eq!(log.records()[0].began, 590);
        assert!(log.records().iter().any(|record| record.ended.is_none()));
    }
}
