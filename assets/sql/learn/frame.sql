-- One message, and so one transaction that nothing can come between and that is over with it, failed or not.
-- $before, $columns, $query, $names and $settings are replaced before sending. A name comes as the hexadecimal digits of its
-- bytes, for it may be in any encoding; the last statement makes the session's own settings again,
-- whatever the query has set.
SET TRANSACTION READ ONLY;
SET LOCAL statement_timeout TO 1000;
SET LOCAL lock_timeout TO 100;
$before
DECLARE locktop_learn NO SCROLL CURSOR FOR
SELECT $columns FROM (
$query
) AS query ($names);
FETCH FORWARD 10001 FROM locktop_learn;
CLOSE locktop_learn;
$settings
