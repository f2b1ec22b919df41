//! The kinds of waits, and random states of each.

/// A kind of wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// One transaction has locked each row.
    Rows,
    /// Several transactions have locked a row that children refer to.
    Shared,
    Tables,
    Advisory,
    Upgrades,
    Prepared,
    /// CREATE, DROP and REINDEX INDEX CONCURRENTLY.
    Index,
    Slot,
    /// SERIALIZABLE READ ONLY DEFERRABLE, as `pg_dump` can begin its transaction.
    SafeSnapshot,
    /// Commits with NOTIFY behind a commit that waits for a standby.
    Notify,
    Mixed,
}

/// The statements of one session: some that complete at once, and one that may have to wait.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) before: Vec<String>,
    pub(super) then: Option<String>,
    /// The gid under which its transaction is prepared in the end.
    pub(super) gid: Option<String>,
}

impl Step {
    fn idle(statements: &[&str]) -> Self {
        Self { before: statements.iter().map(ToString::to_string).collect(), ..Self::default() }
    }

    /// In a transaction block, or as a transaction of its own.
    fn asks(is_block: bool, before: &[&str], then: impl Into<String>) -> Self {
        let begin = is_block.then_some("BEGIN").into_iter();
        let before = begin.chain(before.iter().copied()).map(str::to_owned).collect();
        Self { before, then: Some(then.into()), gid: None }
    }
}

/// Random numbers that depend only on a seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn of(kind: Kind, seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (kind as u64) << 32);
        random.below(2);
        random
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mix = self.0;
        mix = (mix ^ mix >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mix = (mix ^ mix >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mix ^ mix >> 31) % u64::try_from(limit).unwrap()).unwrap()
    }

    pub(super) fn one_in(&mut self, limit: usize) -> bool {
        self.below(limit) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn range(&mut self, from: usize, to: usize) -> usize {
        from + self.below(to - from + 1)
    }
}

const MODES: [&str; 8] = [
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
];

impl Kind {
    pub(super) const ALL: &[Self] = &[
        Self::Rows,
        Self::Shared,
        Self::Tables,
        Self::Advisory,
        Self::Upgrades,
        Self::Prepared,
        Self::Index,
        Self::Slot,
        Self::SafeSnapshot,
        Self::Notify,
        Self::Mixed,
    ];

    /// The tables that exist before the first session.
    pub(super) fn tables(self) -> &'static str {
        match self {
            Self::Shared => {
                "CREATE TABLE parent (id int PRIMARY KEY, note text);
                 CREATE TABLE child (id serial, parent int REFERENCES parent);
                 INSERT INTO parent SELECT i FROM generate_series(1, 3) AS i"
            }
            Self::Index => {
                "CREATE TABLE t0 (id int, v int); INSERT INTO t0 SELECT i, i FROM generate_series(1, 100) AS i;
                 CREATE INDEX old ON t0 (id); CREATE TABLE t1 (id int)"
            }
            _ => {
                "CREATE TABLE t0 (id int PRIMARY KEY, v int); INSERT INTO t0 SELECT i, 0 FROM generate_series(1, 5) AS i;
                 CREATE TABLE t1 (id int PRIMARY KEY, v int); INSERT INTO t1 SELECT i, 0 FROM generate_series(1, 5) AS i;
                 CREATE TABLE t2 (id int PRIMARY KEY, v int)"
            }
        }
    }

    pub(super) fn steps(self, random: &mut Random) -> Vec<Step> {
        match self {
            Self::Rows => rows(random),
            Self::Shared => shared(random),
            Self::Tables => tables(random),
            Self::Advisory => advisory(random),
            Self::Upgrades => upgrades(random),
            Self::Prepared => prepared(random),
            Self::Index => index(random),
            Self::Slot => slot(random),
            Self::SafeSnapshot => safe_snapshot(random),
            Self::Notify => Vec::new(),
            Self::Mixed => mixed(random),
        }
    }
}

fn row_statement(random: &mut Random, table: usize, row: usize) -> String {
    match random.below(4) {
        0 => format!("SELECT * FROM t{table} WHERE id = {row} FOR UPDATE"),
        1 => format!("DELETE FROM t{table} WHERE id = {row}"),
        _ => format!("UPDATE t{table} SET v = v + 1 WHERE id = {row}"),
    }
}

fn rows(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for row in 1..=random.range(1, 2) {
        steps.push(Step::idle(&["BEGIN", &format!("UPDATE t0 SET v = 1 WHERE id = {row}")]));
        // A unique key that does not exist yet.
        if random.one_in(4) {
            steps.push(Step::idle(&["BEGIN", &format!("INSERT INTO t2 VALUES ({row}, 0)")]));
            steps.push(Step::asks(random.one_in(2), &[], format!("INSERT INTO t2 VALUES ({row}, 1)")));
        }
        for _ in 0..random.range(1, 4) {
            let statement = format!("UPDATE t0 SET v = v + 1 WHERE id = {row}");
            steps.push(Step::asks(random.one_in(2), &[], statement));
        }
        if random.one_in(2) {
            steps.push(Step::asks(random.one_in(2), &[], row_statement(random, 0, row)));
        }
    }
    steps
}

fn shared(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    // With one holder the numbers are exact.
    for _ in 0..random.range(1, 3) {
        steps.push(Step::idle(&["BEGIN", "INSERT INTO child (parent) VALUES (1)"]));
    }
    let statements = [
        "UPDATE parent SET note = 'x' WHERE id = 1",
        "SELECT * FROM parent WHERE id = 1 FOR UPDATE",
        "DELETE FROM parent WHERE id = 1 AND note = 'never'",
    ];
    for _ in 0..random.range(1, 3) {
        steps.push(Step::asks(random.one_in(2), &[], *random.pick(&statements)));
    }
    steps
}

fn tables(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for number in 0..random.range(1, 3) {
        let lock = format!("LOCK TABLE t0 IN {} MODE", MODES[random.below(4)]);
        steps.push(match random.below(4) {
            // One active statement that is the whole transaction; if it had to wait, it would sleep when it
            // continues.
            0 if number == 0 => {
                Step::asks(false, &[], format!("DO $$ BEGIN {lock}; PERFORM pg_sleep(600); END $$"))
            }
            _ => Step::asks(true, &[], lock),
        });
    }
    if random.one_in(2) {
        // A convoy: readers behind a request that waits itself.
        steps.push(Step::asks(random.one_in(2), &[], "ALTER TABLE t0 ADD COLUMN IF NOT EXISTS note text"));
    }
    for _ in 0..random.range(2, 6) {
        let statement = match random.below(3) {
            0 => "SELECT count(*) FROM t0".to_owned(),
            1 => format!("UPDATE t0 SET v = 1 WHERE id = {}", 1_000 + random.below(9)),
            _ => format!("DO $$ BEGIN LOCK TABLE t0 IN {} MODE; END $$", random.pick(&MODES)),
        };
        steps.push(Step::asks(random.one_in(2), &[], statement));
    }
    steps
}

fn key_statement(random: &mut Random, key: usize) -> String {
    let (shared, xact) = (random.one_in(3), random.one_in(2));
    let (shared, xact) = (if shared { "_shared" } else { "" }, if xact { "_xact" } else { "" });
    format!("SELECT pg_advisory{xact}_lock{shared}({key})")
}

fn advisory(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for key in 1..=random.range(1, 2) {
        steps.push(match random.below(3) {
            0 => Step::asks(false, &[], format!("SELECT pg_advisory_lock({key})")),
            1 => Step::asks(true, &[], format!("SELECT pg_advisory_xact_lock({key})")),
            _ => Step::asks(false, &[], format!("SELECT pg_advisory_lock_shared({key})")),
        });
        for _ in 0..random.range(1, 5) {
            let statement = key_statement(random, key);
            steps.push(Step::asks(random.one_in(2), &[], statement));
        }
    }
    steps
}

/// A session that already holds a lock on the table requests a stronger one. Only one session does: two would
/// be a deadlock.
fn upgrades(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..random.range(1, 3) {
        steps.push(Step::asks(true, &[], "LOCK TABLE t0 IN ACCESS SHARE MODE"));
    }
    let stronger = random.pick(&["ACCESS EXCLUSIVE", "EXCLUSIVE", "SHARE"]);
    let more = format!("LOCK TABLE t0 IN {stronger} MODE");
    if random.one_in(2) {
        steps.push(Step::asks(true, &[], "LOCK TABLE t0 IN ROW EXCLUSIVE MODE"));
    }
    steps.push(Step::asks(true, &["LOCK TABLE t0 IN ACCESS SHARE MODE"], more));
    for _ in 0..random.range(1, 4) {
        let taken = random.pick(&MODES);
        steps.push(Step::asks(
            random.one_in(2),
            &[],
            format!("DO $$ BEGIN LOCK TABLE t0 IN {taken} MODE; END $$"),
        ));
    }
    steps
}

fn prepared(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for number in 0..random.range(1, 2) {
        let row = 1 + number;
        let statement = match random.below(2) {
            0 => format!("UPDATE t0 SET v = 1 WHERE id = {row}"),
            _ => format!("SELECT pg_advisory_xact_lock({row})"),
        };
        let gid = Some(format!("gid {number}"));
        steps.push(Step { gid, ..Step::idle(&["BEGIN", &statement]) });
    }
    // A session that gets the lock on a table may need a row next, which no view shows before it waits for
    // it.
    let is_table = random.one_in(2);
    for _ in 0..random.range(2, 5) {
        let row = random.range(1, 2);
        let statement = match random.below(3) {
            0 => format!("SELECT pg_advisory_xact_lock({row})"),
            1 if is_table => "ALTER TABLE t0 ADD COLUMN IF NOT EXISTS note text".to_owned(),
            _ if is_table => "SELECT count(*) FROM t0".to_owned(),
            _ => format!("UPDATE t0 SET v = v + 1 WHERE id = {row}"),
        };
        steps.push(Step::asks(random.one_in(2), &[], statement));
    }
    steps
}

fn index(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    let holders = [
        ["BEGIN", "INSERT INTO t0 VALUES (7, 7)"],
        ["BEGIN", "SELECT count(*) FROM t0"],
        ["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM t1"],
        ["BEGIN", "UPDATE t0 SET v = 1 WHERE id = 1"],
    ];
    for _ in 0..random.range(1, 4) {
        steps.push(Step::idle(&holders[random.below(holders.len())]));
    }
    let statement = *random.pick(&[
        "CREATE INDEX CONCURRENTLY new ON t0 (v)",
        "DROP INDEX CONCURRENTLY old",
        "REINDEX INDEX CONCURRENTLY old",
    ]);
    steps.push(Step::asks(false, &[], statement));
    if random.one_in(2) {
        steps.push(Step::asks(false, &[], "ALTER TABLE t0 ADD COLUMN IF NOT EXISTS note text"));
        steps.push(Step::asks(false, &[], "SELECT count(*) FROM t0"));
    }
    steps
}

fn slot(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for row in 1..=random.range(1, 4) {
        let statement = match random.below(3) {
            0 => format!("INSERT INTO t2 VALUES ({row}, 0)"),
            1 => "SELECT pg_current_xact_id()".to_owned(),
            _ => format!("UPDATE t0 SET v = 1 WHERE id = {row}"),
        };
        steps.push(Step::idle(&["BEGIN", &statement]));
    }
    if random.one_in(3) {
        steps.push(Step::idle(&["BEGIN", "SELECT count(*) FROM t0"]));
    }
    let create = "SELECT pg_create_logical_replication_slot('slot', 'test_decoding', true)";
    steps.push(Step::asks(false, &[], create));
    steps
}

fn safe_snapshot(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    let serializable = "BEGIN ISOLATION LEVEL SERIALIZABLE";
    for row in 1..=random.range(1, 3) {
        let statement = match random.below(3) {
            0 => "SELECT count(*) FROM t0".to_owned(),
            1 => format!("UPDATE t0 SET v = v + 1 WHERE id = {row}"),
            _ => format!("INSERT INTO t1 VALUES ({}, 0)", 10 + row),
        };
        let mut step = Step::idle(&[serializable, &statement]);
        // The server does not show whether a prepared transaction is serializable.
        step.gid = (row == 1 && random.one_in(4)).then(|| "serializable".to_owned());
        steps.push(step);
    }
    if random.one_in(2) {
        // One of them waits itself.
        steps.push(Step::idle(&["BEGIN", "UPDATE t1 SET v = 1 WHERE id = 5"]));
        steps.push(Step {
            before: vec![serializable.to_owned()],
            then: Some("UPDATE t1 SET v = 2 WHERE id = 5".to_owned()),
            gid: None,
        });
    }
    if random.one_in(2) {
        steps.push(Step::idle(&["BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY", "SELECT count(*) FROM t1"]));
        steps.push(Step::idle(&["BEGIN", "UPDATE t0 SET v = 1 WHERE id = 5"]));
    }
    for _ in 0..random.range(1, 2) {
        steps.push(Step {
            before: vec![format!("{serializable} READ ONLY DEFERRABLE")],
            then: Some("SELECT count(*) FROM t2".to_owned()),
            gid: None,
        });
    }
    steps
}

/// Tables, rows and keys, which all sessions request in the same order, so that there is no deadlock.
fn mixed(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..random.range(4, 8) {
        let first = random.below(4);
        let statement = |random: &mut Random, kind: usize| match kind {
            0 => format!("SELECT pg_advisory_xact_lock({})", 1 + random.below(2)),
            1 => format!("UPDATE t0 SET v = v + 1 WHERE id = {}", 1 + random.below(2)),
            2 => format!("UPDATE t1 SET v = v + 1 WHERE id = {}", 1 + random.below(2)),
            _ => format!("DO $$ BEGIN LOCK TABLE t2 IN {} MODE; END $$", random.pick(&MODES)),
        };
        let mut asked = vec![statement(random, first)];
        if first < 3 && random.one_in(2) {
            let next = random.range(first + 1, 3);
            asked.push(statement(random, next));
        }
        let then = asked.pop();
        let before = std::iter::once("BEGIN".to_owned()).chain(asked).collect();
        steps.push(Step { before, then, gid: None });
    }
    steps
}
