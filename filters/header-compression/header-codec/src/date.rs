//! Converts dates in the preferred format (RFC 9110, 5.6.7), `Sun, 06 Nov 1994 08:49:37 GMT`, to seconds and back.
//!
//! Only a text that comes back byte for byte counts as a date. The codec treats anything else as text.

const WEEKDAYS: [&[u8]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const DAY: u64 = 86_400;
/// 31 December 9999, 23:59:59: the last second of a year with four digits.
pub(crate) const LAST_SECOND: u64 = 253_402_300_799;

/// Returns the seconds since 1970-01-01 00:00:00 UTC, if [`format()`] turns them back into exactly `text`.
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    let [w1, w2, w3, b',', b' ', d1, d2, b' ', m1, m2, m3, b' ', y @ .., b' ', b'G', b'M', b'T'] = text else {
        return None;
    };
    let [y1, y2, y3, y4, b' ', h1, h2, b':', n1, n2, b':', s1, s2] = y else {
        return None;
    };
    let number = |digits: &[&u8]| {
        digits.iter().try_fold(0_u64, |sum, digit| {
            digit.is_ascii_digit().then(|| sum * 10 + u64::from(digit.wrapping_sub(b'0')))
        })
    };
    let month = MONTHS.iter().position(|name| *name == [*m1, *m2, *m3])?;
    let (year, day) = (number(&[y1, y2, y3, y4])?, number(&[d1, d2])?);
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[n1, n2])?, number(&[s1, s2])?);
    if year < 1970 || day == 0 || day > 31 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days_before(year, u64::try_from(month).ok()? + 1, day) * DAY + hour * 3600 + minute * 60 + second;
    let mut again = Vec::with_capacity(29);
    format(seconds, &mut again);
    (again == text && again.starts_with(&[*w1, *w2, *w3])).then_some(seconds)
}

/// Appends the date that is `seconds` after the start of 1970. A time after [`LAST_SECOND`] becomes [`LAST_SECOND`].
pub(crate) fn format(seconds: u64, text: &mut Vec<u8>) {
    let seconds = seconds.min(LAST_SECOND);
    let (days, rest) = (seconds / DAY, seconds % DAY);
    let (year, month, day) = civil(days);
    let two = |text: &mut Vec<u8>, number: u64| {
        for divisor in [10, 1] {
            text.push(b'0' + u8::try_from(number / divisor % 10).unwrap_or(0));
        }
    };
    let name = |names: &[&'static [u8]], index: u64| {
        usize::try_from(index).ok().and_then(|index| names.get(index).copied()).unwrap_or_default()
    };
    text.extend_from_slice(name(&WEEKDAYS, days % 7));
    text.extend_from_slice(b", ");
    two(text, day);
    text.push(b' ');
    text.extend_from_slice(name(&MONTHS, month - 1));
    text.push(b' ');
    two(text, year / 100);
    two(text, year % 100);
    text.push(b' ');
    two(text, rest / 3600);
    text.push(b':');
    two(text, rest / 60 % 60);
    text.push(b':');
    two(text, rest % 60);
    text.extend_from_slice(b" GMT");
}

/// Returns the days from 1970-01-01 to a day of the Gregorian calendar. The year begins in March here, so that a leap
/// day comes last.
fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    (era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year).saturating_sub(719_468)
}

/// Returns the year, month and day that is `days` after 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let (month, next_year) = if march_month < 10 { (march_month + 3, 0) } else { (march_month - 9, 1) };
    (era * 400 + year_of_era + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_their_seconds() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
            ("Fri, 31 Dec 9999 23:59:59 GMT", LAST_SECOND),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(seconds), "{text}");
            let mut again = Vec::new();
            format(seconds, &mut again);
            assert_eq!(again, text.as_bytes());
        }
    }

    #[test]
    fn text_that_would_not_read_back_is_no_date() {
        for text in [
            "",
            "0",
            "-1",
            "Sat, 06 Nov 1994 08:49:37 GMT", // was a Sunday
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Wed, 30 Feb 2000 00:00:00 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_day_for_four_centuries_comes_back() {
        for day in 0..146_097 {
            let mut text = Vec::new();
            format(day * DAY + day, &mut text);
            assert_eq!(parse(&text), Some(day * DAY + day));
        }
    }
}
