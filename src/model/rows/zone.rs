//! Time zone of input and output, with daylight saving time.

use chrono::{FixedOffset, NaiveDate, NaiveDateTime, Offset, TimeDelta, TimeZone, Utc, offset::LocalResult};

use crate::model::Timestamp;

#[derive(Debug, Clone, Copy)]
pub enum Zone {
    /// A fixed offset such as `+02:00`.
    Fixed(FixedOffset),
    /// The zone of this machine, from `TZ` or `/etc/localtime`.
    Local,
    /// An IANA zone from the system's database. It is kept until the program ends.
    Named(&'static tz::TimeZone),
}

/// UTC.
impl Default for Zone {
    fn default() -> Self {
        Self::Fixed(Utc.fix())
    }
}

impl Zone {
    /// Parses a file below `/usr/share/zoneinfo`; None if it is not such a file.
    pub fn of_file(bytes: &[u8]) -> Option<Self> {
        let zone = tz::TimeZone::from_tz_data(bytes).ok()?;
        // Leaked on purpose: a program has one zone.
        Some(Self::Named(Box::leak(Box::new(zone))))
    }

    fn at(self, moment: NaiveDateTime) -> FixedOffset {
        match self {
            Self::Fixed(offset) => offset,
            Self::Local => chrono::Local.offset_from_utc_datetime(&moment).fix(),
            Self::Named(zone) => {
                let found = zone.find_local_time_type(moment.and_utc().timestamp()).ok();
                found.and_then(|found| FixedOffset::east_opt(found.ut_offset())).unwrap_or_else(|| Utc.fix())
            }
        }
    }

    /// The moment of a local time. For a repeated hour, the moment within the span, else the first; None for a skipped hour.
    pub fn moment(self, local: NaiveDateTime, (first, last): (Timestamp, Timestamp)) -> Option<Timestamp> {
        let within = self.moments(local).find(|at| (first..=last).contains(at));
        within.or_else(|| self.moments(local).next())
    }

    /// The moments of a local time in order: two for a repeated hour, none for a skipped one.
    pub fn moments(self, local: NaiveDateTime) -> impl DoubleEndedIterator<Item = Timestamp> {
        let found = local.and_local_timezone(self);
        let second = found.latest().filter(|_| matches!(found, LocalResult::Ambiguous(..)));
        [found.earliest(), second].into_iter().flatten().map(|at| at.to_utc())
    }
}

impl From<FixedOffset> for Zone {
    fn from(offset: FixedOffset) -> Self {
        Self::Fixed(offset)
    }
}

impl TimeZone for Zone {
    type Offset = FixedOffset;

    fn from_offset(offset: &FixedOffset) -> Self {
        Self::Fixed(*offset)
    }

    fn offset_from_local_date(&self, local: &NaiveDate) -> LocalResult<FixedOffset> {
        self.offset_from_local_datetime(&local.and_time(chrono::NaiveTime::MIN))
    }

    fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> LocalResult<FixedOffset> {
        // No zone changes twice within two days.
        let around = [TimeDelta::days(-1), TimeDelta::days(1)].map(|days| {
            let near = local.checked_add_signed(days).unwrap_or(*local);
            let offset = self.at(near);
            let moment = local.checked_sub_offset(offset)?;
            (self.at(moment) == offset).then_some(offset)
        });
        match around {
            [Some(one), Some(other)] if one == other => LocalResult::Single(one),
            [Some(one), Some(other)] => LocalResult::Ambiguous(one, other),
            [Some(one), None] | [None, Some(one)] => LocalResult::Single(one),
            [None, None] => LocalResult::None,
        }
    }

    fn offset_from_utc_date(&self, utc: &NaiveDate) -> FixedOffset {
        self.at(utc.and_time(chrono::NaiveTime::MIN))
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> FixedOffset {
        self.at(*utc)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Central Europe by the rule alone, as at the end of a version 2 file.
    pub(crate) fn berlin() -> Zone {
        let rule = "CET-1CEST,M3.5.0,M10.5.0/3";
        let zone = tz::TimeZoneSettings::new(&[], |_| Err("no files".into()));
        Zone::Named(Box::leak(Box::new(zone.parse_posix_tz(rule).unwrap())))
    }

    fn utc(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn each_time_has_the_offset_of_its_season() {
        for (at, expected) in [
            ("2026-06-01T12:00:00Z", "14:00 +02:00"),
            ("2026-12-01T12:00:00Z", "13:00 +01:00"),
            ("2026-10-25T00:59:59Z", "02:59 +02:00"),
            ("2026-10-25T01:00:00Z", "02:00 +01:00"),
        ] {
            assert_eq!(utc(at).with_timezone(&berlin()).format("%H:%M %:z").to_string(), expected, "{at}");
        }
    }

    #[test]
    fn a_local_time_may_occur_twice_or_not_at_all() {
        let local = |text: &str| text.parse::<NaiveDateTime>().unwrap();
        let all = (utc("2026-01-01T00:00:00Z"), utc("2027-01-01T00:00:00Z"));
        let of = |text: &str, span| berlin().moment(local(text), span);
        assert_eq!(of("2026-06-01T14:00:00", all), Some(utc("2026-06-01T12:00:00Z")));
        assert_eq!(of("2026-12-01T13:00:00", all), Some(utc("2026-12-01T12:00:00Z")));
        assert_eq!(of("2026-03-29T02:30:00", all), None, "the clocks skip it");
        let twice = "2026-10-25T02:30:00";
        assert_eq!(of(twice, all), Some(utc("2026-10-25T00:30:00Z")), "the first");
        let second = (utc("2026-10-25T01:10:00Z"), utc("2026-10-25T02:00:00Z"));
        assert_eq!(of(twice, second), Some(utc("2026-10-25T01:30:00Z")), "the one within the recording");
    }

    #[test]
    fn a_file_that_is_not_a_time_zone_is_rejected() {
        for bytes in [&b""[..], b"TZif", b"TZif2\0\0\0", b"root:x:0:0"] {
            assert!(Zone::of_file(bytes).is_none());
        }
    }
}
