//! Days, weeks and months in UTC.

use longhaul_config::Period;

const DAY_S: u64 = 24 * 60 * 60;

/// Returns the number of the day, week or month of a time in seconds since 1970. The next one has the next number.
pub(super) fn number(period: Period, at_s: u64) -> u64 {
    let day = at_s / DAY_S;
    match period {
        Period::Day => day,
        // 1 January 1970 was a Thursday, three days behind a Monday.
        Period::Week => (day + 3) / 7,
        Period::Month => month(day),
    }
}

/// Returns the months since year 0 of a day since 1970, by Hinnant's `civil_from_days`.
fn month(day: u64) -> u64 {
    let shifted = day + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // March is 0, so that a leap day is the last one.
    let from_march = (5 * day_of_year + 2) / 153;
    (era * 400 + year_of_era) * 12 + from_march + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> u64 {
        humantime::parse_rfc3339(text).unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
    }

    #[test]
    fn each_period_turns_at_midnight_in_utc_and_no_other_time() {
        let table = [
            (Period::Day, "2026-11-28T23:59:59Z", "2026-11-29T00:00:00Z"),
            (Period::Week, "2026-11-29T23:59:59Z", "2026-11-30T00:00:00Z"),
            (Period::Month, "2026-11-30T23:59:59Z", "2026-12-01T00:00:00Z"),
            (Period::Month, "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z"),
            (Period::Month, "2028-02-29T23:59:59Z", "2028-03-01T00:00:00Z"),
        ];
        for (period, last, first) in table {
            assert_eq!(number(period, at(first)), number(period, at(last)) + 1, "{first}");
        }
        let same = |period, one, other| number(period, at(one)) == number(period, at(other));
        assert!(same(Period::Week, "2026-11-23T00:00:00Z", "2026-11-29T23:59:59Z"));
        assert!(same(Period::Month, "2028-02-01T00:00:00Z", "2028-02-29T23:59:59Z"));
        assert!(same(Period::Day, "2026-11-28T00:00:00Z", "2026-11-28T23:59:59Z"));
    }
}
