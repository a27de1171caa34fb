//! The time of `strftime_now`.

use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::{Error, ErrorKind};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Formats a time in UTC as C's `strftime` does, with English names.
pub(super) fn format(format: &str, seconds: Option<i64>) -> Result<String, Error> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64);
    let seconds = seconds.unwrap_or_else(now);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let (year, month, day) = civil(days);
    let weekday = (days + 4).rem_euclid(7) as usize;
    let month_name = MONTHS.get(month as usize - 1).copied().unwrap_or_default();
    let day_name = DAYS.get(weekday).copied().unwrap_or_default();
    let day_of_year = days - days_of(year, 1, 1) + 1;
    let mut text = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let mut directive = letters.next();
        let is_padded = directive != Some('-');
        if !is_padded {
            directive = letters.next();
        }
        let two = |number: i64| if is_padded { format!("{number:02}") } else { number.to_string() };
        text += &match directive {
            Some('Y') => year.to_string(),
            Some('y') => two(year.rem_euclid(100)),
            Some('m') => two(month),
            Some('d') => two(day),
            Some('e') if is_padded => format!("{day:2}"),
            Some('e') => day.to_string(),
            Some('H') => two(hour),
            Some('I') => two((hour + 11) % 12 + 1),
            Some('M') => two(minute),
            Some('S') => two(second),
            Some('j') if is_padded => format!("{day_of_year:03}"),
            Some('j') => day_of_year.to_string(),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            Some('B') => month_name.to_owned(),
            Some('b' | 'h') => month_name.chars().take(3).collect(),
            Some('A') => day_name.to_owned(),
            Some('a') => day_name.chars().take(3).collect(),
            Some('F') => format!("{year}-{month:02}-{day:02}"),
            Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
            Some('Z') => "UTC".to_owned(),
            Some('z') => "+0000".to_owned(),
            Some('%') => "%".to_owned(),
            other => {
                let directive = other.map(String::from).unwrap_or_default();
                let text = format!("strftime_now with %{directive}, which is not supported");
                return Err(Error::new(ErrorKind::InvalidOperation, text));
            }
        };
    }
    Ok(text)
}

/// Returns the year, the month from 1 and the day of days since 1970, by the algorithm of Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns the days since 1970 of a date, the inverse of [`civil`].
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, wanted) in [
            (0, "1970-01-01 Thursday 001"),
            (951_782_400, "2000-02-29 Tuesday 060"),
            (1_735_603_200, "2024-12-31 Tuesday 366"),
            (-1, "1969-12-31 Wednesday 365"),
            (4_107_542_400, "2100-03-01 Monday 060"),
        ] {
            assert_eq!(format("%F %A %j", Some(seconds)).unwrap(), wanted);
        }
        let time = Some(1_721_999_045);
        assert_eq!(
            format("%d %b %Y, %-d %B %y %I:%M:%S %p %H%% %a", time).unwrap(),
            "26 Jul 2024, 26 July 24 01:04:05 PM 13% Fri"
        );
        assert!(format("%Q", time).unwrap_err().to_string().contains("%Q"));
        assert!(format("%", time).is_err());
    }
}
