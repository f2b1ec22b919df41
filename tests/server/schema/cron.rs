//! The meaning of cron expressions.

use super::db::{Session, installed};
use super::support::{oldest, versions};

/// Expression, zone, after, next.
const TIMES: [(&str, &str, &str, &str); 40] = [
    ("* * * * *", "UTC", "2026-03-01 00:00:00", "2026-03-01 00:01:00"),
    ("* * * * *", "UTC", "2026-03-01 00:00:59.9", "2026-03-01 00:01:00"),
    ("*/5 * * * *", "UTC", "2026-03-01 00:05:00", "2026-03-01 00:10:00"),
    ("*/5 * * * *", "UTC", "2026-12-31 23:57:00", "2027-01-01 00:00:00"),
    ("0 * * * *", "UTC", "2026-03-01 00:00:00", "2026-03-01 01:00:00"),
    ("0 2 * * *", "UTC", "2026-03-01 02:00:00", "2026-03-02 02:00:00"),
    ("0 2 * * *", "UTC", "2026-03-01 01:59:59", "2026-03-01 02:00:00"),
    ("7-11/2,50 4,22 * * *", "UTC", "2026-03-01 04:09:00", "2026-03-01 04:11:00"),
    ("7-11/2,50 4,22 * * *", "UTC", "2026-03-01 04:11:00", "2026-03-01 04:50:00"),
    ("7-11/2,50 4,22 * * *", "UTC", "2026-03-01 04:50:00", "2026-03-01 22:07:00"),
    ("0 */6 * * *", "UTC", "2026-03-01 12:00:00", "2026-03-01 18:00:00"),
    ("30 3 * jan,JUL *", "UTC", "2026-03-01 00:00:00", "2026-07-01 03:30:00"),
    ("0 0 * * mon-fri", "UTC", "2026-03-06 00:00:00", "2026-03-09 00:00:00"),
    ("0 0 * * 0", "UTC", "2026-03-02 00:00:00", "2026-03-08 00:00:00"),
    ("0 0 * * 7", "UTC", "2026-03-02 00:00:00", "2026-03-08 00:00:00"),
    ("0 0 * * 5-7", "UTC", "2026-03-07 00:00:00", "2026-03-08 00:00:00"),
    // Both days restricted: either. 2026-03-13 is a Friday.
    ("0 0 20 * fri", "UTC", "2026-03-13 00:00:00", "2026-03-20 00:00:00"),
    ("0 0 15 * fri", "UTC", "2026-03-13 00:00:00", "2026-03-15 00:00:00"),
    ("0 0 13 * fri", "UTC", "2026-03-14 00:00:00", "2026-03-20 00:00:00"),
    // One begins with *: both.
    ("0 0 */2 * fri", "UTC", "2026-03-06 00:00:00", "2026-03-13 00:00:00"),
    ("0 0 13 * */5", "UTC", "2026-03-14 00:00:00", "2026-09-13 00:00:00"),
    ("0 0 31 * *", "UTC", "2026-03-31 00:00:00", "2026-05-31 00:00:00"),
    ("0 0 29 2 *", "UTC", "2026-03-01 00:00:00", "2028-02-29 00:00:00"),
    ("0 0 29 2 *", "UTC", "2096-03-01 00:00:00", "2104-02-29 00:00:00"),
    ("0 0 30 2 fri", "UTC", "2026-02-14 00:00:00", "2026-02-20 00:00:00"),
    ("@yearly", "UTC", "2026-03-01 00:00:00", "2027-01-01 00:00:00"),
    ("@Monthly", "UTC", "2026-03-01 00:00:00", "2026-04-01 00:00:00"),
    ("@weekly", "UTC", "2026-03-01 00:00:00", "2026-03-08 00:00:00"),
    ("@daily", "UTC", "2026-03-01 00:00:00", "2026-03-02 00:00:00"),
    ("@hourly", "UTC", "2026-03-01 00:00:00", "2026-03-01 01:00:00"),
    ("  0\t2  * * * ", "UTC", "2026-03-01 00:00:00", "2026-03-01 02:00:00"),
    // Berlin: an hour ahead in winter, two in summer. On 2026-03-29 2:00 to 3:00 is skipped, on 2026-10-25 it
    // occurs twice.
    ("0 8 * * *", "Europe/Berlin", "2026-01-10 00:00:00", "2026-01-10 07:00:00"),
    ("0 8 * * *", "Europe/Berlin", "2026-07-10 00:00:00", "2026-07-10 06:00:00"),
    ("30 2 * * *", "Europe/Berlin", "2026-03-28 12:00:00", "2026-03-29 01:30:00"),
    ("30 2 * * *", "Europe/Berlin", "2026-03-29 01:30:00", "2026-03-30 00:30:00"),
    ("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00:00", "2026-10-25 01:30:00"),
    ("30 2 * * *", "Europe/Berlin", "2026-10-25 01:30:00", "2026-10-26 01:30:00"),
    ("*/30 * * * *", "Europe/Berlin", "2026-03-29 00:30:00", "2026-03-29 01:00:00"),
    ("*/30 * * * *", "Europe/Berlin", "2026-10-25 00:30:00", "2026-10-25 01:00:00"),
    ("15 * * * *", "Australia/Lord_Howe", "2026-10-03 15:20:00", "2026-10-03 16:15:00"),
];

const MISTAKES: [(&str, &str); 22] = [
    ("", "has 1 fields in place of 5"),
    ("* * * *", "has 4 fields in place of 5"),
    ("* * * * * *", "has 6 fields in place of 5"),
    ("60 * * * *", "\"60\" is no minute (0 to 59)"),
    ("* 24 * * *", "\"24\" is no hour (0 to 23)"),
    ("* * 0 * *", "\"0\" is no day of month (1 to 31)"),
    ("* * 32 * *", "\"32\" is no day of month"),
    ("* * * 13 *", "\"13\" is no month (1 to 12)"),
    ("* * * 0 *", "\"0\" is no month"),
    ("* * * * 8", "\"8\" is no day of week (0 to 7)"),
    ("* * * * foo", "\"foo\" is no day of week"),
    ("mon * * * *", "\"mon\" is no minute"),
    ("*/0 * * * *", "a step of 0"),
    ("5-1 * * * *", "a range that ends before it begins"),
    ("5/10 * * * *", "a step and no range"),
    ("1,,2 * * * *", "\"\" is no value of the field minute"),
    ("-1 * * * *", "\"-1\" is no value"),
    ("? * * * *", "\"?\" is no value"),
    ("* * L * *", "\"l\" is no value"),
    ("@reboot", "has 1 fields"),
    ("0 0 30 2 *", "names a date that never comes"),
    ("0 0 31 4,6,9,11 *", "names a date that never comes"),
];

#[tokio::test]
async fn the_next_time() {
    for version in versions() {
        let session = Session::open(&installed(version).await).await;
        // The session's settings for times and names make no difference.
        session.run("SET TimeZone = 'Asia/Tokyo'; SET search_path = pg_temp").await;
        for (expression, zone, after, next) in TIMES {
            let sql = format!(
                "SELECT locktop.cron_next('{expression}', '{after}+00', '{zone}') AT TIME ZONE 'UTC'"
            );
            assert_eq!(session.ask(&sql).await, next, "{version}: {expression} {zone} after {after}");
        }
        let utc = "SELECT locktop.cron_next('0 2 * * *', '2026-03-01 00:00+00') = '2026-03-01 02:00+00'";
        assert_eq!(session.ask(utc).await, "t", "UTC without a zone");
        assert_eq!(session.ask("SELECT locktop.cron_next(NULL, now())").await, "-");
    }
}

#[tokio::test]
async fn mistakes_are_named() {
    for version in versions() {
        let session = Session::open(&installed(version).await).await;
        for (expression, part) in MISTAKES {
            let error = session.refused(&format!("SELECT cron_next('{expression}', now())")).await;
            assert!(error.starts_with("22023 ") && error.contains(part), "{version}: {expression}: {error}");
        }
        let error = session.refused("SELECT cron_next('* * * * *', now(), 'Mars')").await;
        assert!(error.contains("Mars"), "{error}");
        let error = session.refused("SELECT cron_next('* * * * *', 'infinity')").await;
        assert!(error.starts_with("22008 "), "{error}");
    }
}

/// Every minute that an expression names is found, and no other: against the fields of each minute.
#[tokio::test]
async fn no_minute_is_left_out() {
    let session = Session::open(&installed(oldest()).await).await;
    for (expression, condition) in [
        ("*/7 1-3 * * *", "minute % 7 = 0 AND hour BETWEEN 1 AND 3"),
        ("3,58 */5 */9 * *", "minute IN (3, 58) AND hour % 5 = 0 AND (day - 1) % 9 = 0"),
        ("0 12 1 * tue", "minute = 0 AND hour = 12 AND (day = 1 OR dow = 2)"),
    ] {
        let sql = format!(
            "WITH RECURSIVE run (at) AS (
                 SELECT cron_next('{expression}', '2027-12-31 23:59+00')
                 UNION ALL SELECT cron_next('{expression}', at) FROM run WHERE at < '2028-03-05+00'),
             minutes AS (
                 SELECT at, extract(minute FROM at)::int AS minute, extract(hour FROM at)::int AS hour,
                        extract(day FROM at)::int AS day, extract(dow FROM at)::int AS dow
                   FROM (SELECT g AT TIME ZONE 'UTC' AS at
                           FROM generate_series('2028-01-01 00:00+00', '2028-03-04 23:59+00'::timestamptz, '1 minute') g) m)
             SELECT (SELECT count(*) FROM run WHERE at < '2028-03-05+00') > 5,
                    (SELECT array_agg(at AT TIME ZONE 'UTC' ORDER BY at) FROM run WHERE at < '2028-03-05+00')
                    = (SELECT array_agg(at ORDER BY at) FROM minutes WHERE {condition})"
        );
        assert_eq!(session.ask(&sql).await, "t|t", "{expression}");
    }
}

/// The same on clocks that are changed, by an hour, by a half and a quarter of one, and by a day: what
/// follows elapsed time skips none of the existing minutes, and repeats none.
#[tokio::test]
async fn no_minute_is_left_out_when_the_clocks_are_changed() {
    let session = Session::open(&installed(oldest()).await).await;
    for (zone, from) in [
        ("Europe/Berlin", "2026-03-28 18:00"),
        ("Europe/Berlin", "2026-10-24 18:00"),
        ("Australia/Lord_Howe", "2026-04-04 06:00"),
        ("Australia/Lord_Howe", "2026-10-03 06:00"),
        ("Asia/Kathmandu", "1985-12-31 12:00"),
        ("Pacific/Apia", "2011-12-29 18:00"),
        ("Asia/Beirut", "2025-10-25 12:00"),
    ] {
        for (expression, condition) in [
            ("*/7 * * * *", "minute % 7 = 0"),
            ("50,5,20-22 * * * *", "minute IN (5, 20, 21, 22, 50)"),
            ("45 */2 * * *", "minute = 45 AND hour % 2 = 0"),
            ("* 0-3 * * *", "hour <= 3"),
        ] {
            let sql = format!(
                "WITH RECURSIVE run (at) AS (
                     SELECT cron_next('{expression}', '{from}+00', '{zone}')
                     UNION ALL SELECT cron_next('{expression}', at, '{zone}') FROM run WHERE at < '{from}+00'::timestamptz + interval '1 day'),
                 minutes AS (
                     SELECT at, extract(minute FROM local)::int AS minute, extract(hour FROM local)::int AS hour
                       FROM (SELECT g AS at, g AT TIME ZONE '{zone}' AS local
                               FROM generate_series('{from}+00'::timestamptz + interval '1 minute', '{from}+00'::timestamptz + interval '1 day', '1 minute') g) m)
                 SELECT (SELECT array_agg(at ORDER BY at) FROM run WHERE at <= '{from}+00'::timestamptz + interval '1 day')
                        = (SELECT array_agg(at ORDER BY at) FROM minutes WHERE {condition})"
            );
            assert_eq!(session.ask(&sql).await, "t", "{expression} in {zone} from {from}");
        }
    }
}
