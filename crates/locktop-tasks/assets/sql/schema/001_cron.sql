-- Cron expressions of five fields, by the rules of crontab(5).

-- The numbers that one field stands for.
CREATE FUNCTION @schema@.cron_field(p_field text, p_name text, p_low integer, p_high integer, p_words text[])
RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_part text;
    v_match text[];
    v_ends integer[];
    v_end text;
    v_step integer;
    v_values integer[] := '{}';
BEGIN
    -- What most fields are.
    IF p_field ~ '^[0-9]{1,2}$' AND p_field::integer BETWEEN p_low AND p_high THEN
        RETURN ARRAY[p_field::integer];
    END IF;
    FOREACH v_part IN ARRAY string_to_array(lower(p_field), ',') LOOP
        -- 1: *, or 2: the first, 3: the last; 4: the step.
        v_match := regexp_match(v_part, '^(?:(\*)|([0-9]{1,4}|[a-z]{3})(?:-([0-9]{1,4}|[a-z]{3}))?)(?:/([0-9]{1,4}))?$');
        IF v_match IS NULL THEN
            RAISE EXCEPTION 'cron expression: "%" is no value of the field %', v_part, p_name
                USING ERRCODE = 'invalid_parameter_value',
                      HINT = 'A field is *, a number, a range 1-5, a step */5 or 10-40/5, or several of them with commas.';
        END IF;
        v_ends := '{}';
        IF v_match[1] IS NOT NULL THEN
            v_ends := ARRAY[p_low, p_high];
        ELSE
            FOREACH v_end IN ARRAY array_remove(v_match[2:3], NULL) LOOP
                IF v_end ~ '^[a-z]' THEN
                    v_ends := v_ends || (array_position(p_words, v_end) - 1 + CASE p_name WHEN 'month' THEN 1 ELSE 0 END);
                ELSE
                    v_ends := v_ends || v_end::integer;
                END IF;
                IF v_ends[cardinality(v_ends)] IS NULL OR v_ends[cardinality(v_ends)] NOT BETWEEN p_low AND p_high THEN
                    RAISE EXCEPTION 'cron expression: "%" is no % (% to %)', v_end, p_name, p_low, p_high
                        USING ERRCODE = 'invalid_parameter_value';
                END IF;
            END LOOP;
            IF v_match[4] IS NOT NULL AND v_match[3] IS NULL THEN
                RAISE EXCEPTION 'cron expression: "%" has a step and no range', v_part
                    USING ERRCODE = 'invalid_parameter_value', HINT = format('Write %s-%s/%s.', v_match[2], p_high, v_match[4]);
            END IF;
            v_ends := ARRAY[v_ends[1], coalesce(v_ends[2], v_ends[1])];
        END IF;
        v_step := coalesce(v_match[4], '1')::integer;
        IF v_step = 0 OR v_ends[1] > v_ends[2] THEN
            RAISE EXCEPTION 'cron expression: "%" has %', v_part,
                CASE WHEN v_step = 0 THEN 'a step of 0' ELSE 'a range that ends before it begins' END
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        v_values := v_values || ARRAY(SELECT generate_series(v_ends[1], v_ends[2], v_step));
    END LOOP;
    RETURN v_values;
END
$body$;
COMMENT ON FUNCTION @schema@.cron_field(text, text, integer, integer, text[]) IS 'The numbers that a field of a cron expression stands for';

-- The five fields of an expression, or of one of the names for one.
CREATE FUNCTION @schema@.cron_fields(p_expression text)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_fields text[];
BEGIN
    v_fields := regexp_split_to_array(CASE lower(btrim(p_expression, E' \t\n'))
        WHEN '@yearly' THEN '0 0 1 1 *'
        WHEN '@annually' THEN '0 0 1 1 *'
        WHEN '@monthly' THEN '0 0 1 * *'
        WHEN '@weekly' THEN '0 0 * * 0'
        WHEN '@daily' THEN '0 0 * * *'
        WHEN '@midnight' THEN '0 0 * * *'
        WHEN '@hourly' THEN '0 * * * *'
        ELSE btrim(p_expression, E' \t\n') END, '[ \t\n]+');
    IF cardinality(v_fields) <> 5 THEN
        RAISE EXCEPTION 'cron expression "%" has % fields in place of 5', p_expression, cardinality(v_fields)
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'The fields are minute, hour, day of month, month and day of week; @hourly to @yearly stand for five.';
    END IF;
    RETURN v_fields;
END
$body$;
COMMENT ON FUNCTION @schema@.cron_fields(text) IS 'The five fields of a cron expression';

-- The first time after p_after that an expression names, on the clocks of p_zone.
--
-- When both the day of month and the day of week are restricted (neither begins with *), either suffices. Where the minute or the
-- hour begins with *, the expression follows elapsed time: an hour that comes twice counts twice, one that is skipped does not
-- count. A fixed time of day comes once a day: one that the clocks skip comes as much later as they were put forward, and of one
-- that comes twice the second counts.
CREATE FUNCTION @schema@.cron_next(p_expression text, p_after timestamptz, p_zone text DEFAULT 'UTC')
RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE STRICT
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    -- Every date and day of week has come together after 40 years, a century without a leap day included.
    c_years CONSTANT integer := 41;
    v_fields text[] := CASE WHEN p_expression ~ '^[^@ \t\n]+( [^ \t\n]+){4}$' THEN string_to_array(p_expression, ' ')
                            ELSE cron_fields(p_expression) END;
    -- Null for every value. This runs at the end of each task, so a field that says nothing is not looked into.
    v_minutes integer[] := CASE WHEN v_fields[1] <> '*' THEN cron_field(v_fields[1], 'minute', 0, 59, NULL) END;
    v_hours integer[] := CASE WHEN v_fields[2] <> '*' THEN cron_field(v_fields[2], 'hour', 0, 23, NULL) END;
    v_days integer[] := CASE WHEN v_fields[3] <> '*' THEN cron_field(v_fields[3], 'day of month', 1, 31, NULL) END;
    v_months integer[] := CASE WHEN v_fields[4] <> '*' THEN cron_field(v_fields[4], 'month', 1, 12,
        '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}') END;
    v_weekdays integer[] := CASE WHEN v_fields[5] <> '*' THEN cron_field(v_fields[5], 'day of week', 0, 7,
        '{sun,mon,tue,wed,thu,fri,sat}') END;
    v_either boolean := v_fields[3] !~ '^\*' AND v_fields[5] !~ '^\*';
    v_elapsed boolean := v_fields[1] ~ '^\*' OR v_fields[2] ~ '^\*';
    v_day date;
    v_last date;
    v_is_day boolean;
    v_is_weekday boolean;
    v_local timestamp;
    v_hour integer;
    v_minute integer;
    v_named integer;
    v_ahead integer;
    v_step interval;
    v_time timestamptz;
    v_next timestamptz;
BEGIN
    IF NOT isfinite(p_after) THEN
        RAISE EXCEPTION 'there is no time after %', p_after USING ERRCODE = 'datetime_field_overflow';
    END IF;
    IF 7 = ANY (v_weekdays) THEN
        v_weekdays := v_weekdays || 0;
    END IF;
    -- From the day before: a time that the clocks skip may come after midnight.
    v_day := (p_after AT TIME ZONE p_zone)::date - 1;
    v_last := v_day + make_interval(years => c_years);
    WHILE v_day <= v_last LOOP
        IF v_months IS NOT NULL AND NOT extract(month FROM v_day)::integer = ANY (v_months) THEN
            v_day := date_trunc('month', v_day::timestamp) + interval '1 month';
            CONTINUE;
        END IF;
        v_is_day := v_days IS NULL OR extract(day FROM v_day)::integer = ANY (v_days);
        v_is_weekday := v_weekdays IS NULL OR extract(dow FROM v_day)::integer = ANY (v_weekdays);
        IF v_is_day AND v_is_weekday OR v_either AND (v_is_day OR v_is_weekday) THEN
            IF v_elapsed THEN
                -- From before midnight, since the hour after it may come twice.
                v_next := greatest(date_trunc('minute', p_after, 'UTC') + interval '1 minute',
                                   v_day::timestamp AT TIME ZONE p_zone - interval '1 hour');
                LOOP
                    v_local := v_next AT TIME ZONE p_zone;
                    EXIT WHEN v_local::date > v_day;
                    IF v_local::date < v_day OR v_hours IS NOT NULL AND NOT extract(hour FROM v_local)::integer = ANY (v_hours) THEN
                        v_next := v_next + make_interval(mins => 60 - extract(minute FROM v_local)::integer);
                        CONTINUE;
                    END IF;
                    v_minute := extract(minute FROM v_local)::integer;
                    IF v_minutes IS NULL OR v_minute = ANY (v_minutes) THEN
                        RETURN v_next;
                    END IF;
                    -- To the next minute that is named, or the next hour, unless the clocks are changed in between.
                    v_ahead := 60;
                    FOREACH v_named IN ARRAY v_minutes LOOP
                        IF v_named BETWEEN v_minute AND v_ahead THEN
                            v_ahead := v_named;
                        END IF;
                    END LOOP;
                    v_step := make_interval(mins => v_ahead - v_minute);
                    IF (v_next + v_step) AT TIME ZONE p_zone <> v_local + v_step THEN
                        v_step := interval '1 minute';
                    END IF;
                    v_next := v_next + v_step;
                END LOOP;
            ELSE
                v_next := NULL;
                FOREACH v_hour IN ARRAY v_hours LOOP
                    FOREACH v_minute IN ARRAY v_minutes LOOP
                        v_time := (v_day + make_interval(hours => v_hour, mins => v_minute)) AT TIME ZONE p_zone;
                        IF v_time > p_after THEN
                            v_next := least(v_next, v_time);
                        END IF;
                    END LOOP;
                END LOOP;
                IF v_next IS NOT NULL THEN
                    RETURN v_next;
                END IF;
            END IF;
        END IF;
        v_day := v_day + 1;
    END LOOP;
    RAISE EXCEPTION 'cron expression "%" names a date that never comes', p_expression
        USING ERRCODE = 'invalid_parameter_value',
              DETAIL = format('There is none within %s years.', c_years);
END
$body$;
COMMENT ON FUNCTION @schema@.cron_next(text, timestamptz, text) IS
    'The first time after the given one that a five-field cron expression names, in UTC unless a time zone is given';
