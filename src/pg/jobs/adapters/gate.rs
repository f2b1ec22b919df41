//! Decides from the plan of a query whether it may run, so that a system with a million rows is not slowed by monitoring.
//!
//! Scans of relations of more than [`LARGE`] rows are judged. Queries are planned with sequential scans disabled, so a
//! sequential scan means that no index would do. A plan does not show correlations, so each query that runs is also timed
//! and paused in proportion.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

/// A relation of up to this many rows may be read in any way.
pub const LARGE: f64 = 100_000.0;
/// Largest number of rows of a scan that nothing ends early.
const ROWS: f64 = 10_001.0;
/// Largest cost to fill a LIMIT from filtered rows.
const FILLING: f64 = 10_000.0;
/// Largest cost of a whole plan.
const WHOLE: f64 = 100_000.0;
/// The planner adds this for each disabled node, up to PostgreSQL 17 (`disable_cost` in
/// `src/backend/optimizer/path/costsize.c`).
const DISABLED: f64 = 1e10;

/// The result of `assets/sql/adapters_sizes.sql`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Sizes {
    relations: Vec<GateRelation>,
    partial: BTreeSet<String>,
}

/// With its rows from the planner's statistics.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct GateRelation {
    schema: String,
    name: String,
    rows: f64,
}

impl Sizes {
    /// None if the JSON is not valid.
    pub fn parse(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// Zero if no relation is known.
    pub fn largest(&self) -> f64 {
        self.relations.iter().map(|one| one.rows).fold(0.0, f64::max)
    }

    /// An unknown relation counts as large, unless it is a catalog.
    fn is_large(&self, schema: &str, name: &str) -> bool {
        let known = self.relations.iter().rfind(|one| one.schema == schema && one.name == name);
        known.map_or(schema != "pg_catalog", |one| one.rows > LARGE)
    }
}

/// The cost of a plan in the planner's units (about one page read sequentially), without the penalty for disabled nodes.
///
/// # Errors
/// The reason why the query does not run, in one line.
pub fn judge(plan: &str, sizes: &Sizes) -> Result<f64, String> {
    let plan: Value =
        serde_json::from_str(plan).map_err(|error| format!("its plan cannot be read: {error}"))?;
    let root = plan.get(0).and_then(|first| first.get("Plan")).ok_or("its plan cannot be read")?;
    let mut walk = Walk { sizes, has_large: false };
    walk.node(root, None)?;
    let whole = cost(root);
    if walk.has_large && whole > WHOLE {
        return Err(format!("its plan costs {whole:.0}, more than {WHOLE}"));
    }
    Ok(whole)
}

struct Walk<'a> {
    sizes: &'a Sizes,
    has_large: bool,
}

impl Walk<'_> {
    /// `limit` is the cost of the LIMIT above, if no node in between must read all rows before it returns one.
    fn node(&mut self, node: &Value, limit: Option<f64>) -> Result<(), String> {
        let kind = text(node, "Node Type");
        if let (Some(relation), false) =
            (node.get("Relation Name").and_then(Value::as_str), kind == "ModifyTable")
            && self.sizes.is_large(text(node, "Schema"), relation)
        {
            self.has_large = true;
            self.scan(node, kind, relation, limit)?;
        }
        let limit = match kind {
            "Limit" => Some(cost(node)),
            "Sort" | "Incremental Sort" | "Aggregate" | "Group" | "Hash" | "WindowAgg" | "Materialize"
            | "SetOp" => None,
            _ => limit,
        };
        for child in node.get("Plans").and_then(Value::as_array).into_iter().flatten() {
            let is_part = !matches!(text(child, "Parent Relationship"), "InitPlan" | "SubPlan");
            self.node(child, limit.filter(|_| is_part))?;
        }
        Ok(())
    }

    fn scan(&self, node: &Value, kind: &str, relation: &str, limit: Option<f64>) -> Result<(), String> {
        let has_filter = node.get("Filter").is_some();
        let is_whole = node.get("Index Cond").is_none()
            && !self.sizes.partial.contains(text(node, "Index Name"))
            && (has_filter || limit.is_none());
        match kind {
            "Index Scan" | "Index Only Scan" if is_whole => {
                return Err(format!(
                    "it would read all of {relation}: none of its conditions can use an index"
                ));
            }
            "Index Scan" | "Index Only Scan" | "Tid Scan" => {}
            "Bitmap Heap Scan" if number(node, "Plan Rows") <= ROWS => {}
            _ => return Err(format!("it would read all of {relation}: no index matches its conditions")),
        }
        let rows = number(node, "Plan Rows");
        if rows > ROWS && limit.is_none() {
            return Err(format!(
                "it would read {rows:.0} rows of {relation}, more than {ROWS}, without a LIMIT"
            ));
        }
        // The scan must continue until it has found as many rows as are wanted.
        let filling = limit.unwrap_or_else(|| cost(node));
        if has_filter && filling > FILLING {
            return Err(format!(
                "finding its rows in {relation} would cost {filling:.0}, more than {FILLING}"
            ));
        }
        Ok(())
    }
}

fn text<'a>(node: &'a Value, key: &str) -> &'a str {
    node.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn number(node: &Value, key: &str) -> f64 {
    node.get(key).and_then(Value::as_f64).unwrap_or(f64::INFINITY)
}

fn cost(node: &Value) -> f64 {
    number(node, "Total Cost") % DISABLED
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sizes() -> Sizes {
        let told = json!({"relations": [{"schema": "s", "name": "big", "rows": 1_000_000}, {"schema": "s", "name": "small", "rows": 100_000}],
                          "partial": ["part"]});
        Sizes::parse(&told.to_string()).unwrap()
    }

    fn scan(kind: &str, index: &str, more: impl std::borrow::Borrow<Value>) -> Value {
        let mut node = json!({"Node Type": kind, "Schema": "s", "Relation Name": "big", "Index Name": index,
                              "Plan Rows": 100, "Total Cost": 10.0});
        node.as_object_mut().unwrap().extend(more.borrow().as_object().unwrap().clone());
        node
    }

    fn above(kind: &str, cost: f64, child: &Value) -> Value {
        json!({"Node Type": kind, "Total Cost": cost, "Plan Rows": 1, "Plans": [child]})
    }

    fn judged(node: &Value) -> Result<f64, String> {
        judge(&json!([{"Plan": node}]).to_string(), &sizes())
    }

    #[test]
    fn scans_of_large_relations_have_to_be_short() {
        let cond = || json!({"Index Cond": "x"});
        let many = || json!({"Index Cond": "x", "Plan Rows": 500_000, "Total Cost": 20_000.0});
        let filtered = || json!({"Index Cond": "x", "Filter": "y", "Total Cost": 50_000.0});
        let whole = |index: &str| scan("Index Scan", index, json!({}));
        for (what, node, expected) in [
            (
                "a sequential scan",
                scan("Seq Scan", "", json!({"Total Cost": 1e10})),
                Some("no index matches"),
            ),
            (
                "the same under a limit",
                above("Limit", 5.0, &scan("Seq Scan", "", json!({}))),
                Some("no index matches"),
            ),
            ("by an index", scan("Index Scan", "i", cond()), None),
            ("a whole index", whole("i"), Some("none of its conditions can use an index")),
            ("a whole index that is partial", whole("part"), None),
            ("a whole index under a limit", above("Limit", 5.0, &whole("i")), None),
            (
                "the same, filtered",
                above("Limit", 5.0, &scan("Index Scan", "i", json!({"Filter": "y"}))),
                Some("none of its conditions can use an index"),
            ),
            (
                "a whole index under a sort under a limit",
                above("Limit", 5.0, &above("Sort", 9.0, &whole("i"))),
                Some("none of its conditions can use an index"),
            ),
            ("many rows", scan("Index Scan", "i", many()), Some("without a LIMIT")),
            ("many rows under a limit", above("Limit", 5.0, &scan("Index Scan", "i", many())), None),
            (
                "many rows that are counted",
                above("Aggregate", 5.0, &scan("Index Only Scan", "i", many())),
                Some("without a LIMIT"),
            ),
            (
                "a count of a limit",
                above("Aggregate", 5.0, &above("Limit", 5.0, &scan("Index Scan", "i", many()))),
                None,
            ),
            (
                "a limit that is hard to fill",
                above("Limit", 10_001.0, &scan("Index Scan", "i", filtered())),
                Some("would cost 10001"),
            ),
            (
                "a limit that is soon filled",
                above("Limit", 100.0, &scan("Index Scan", "i", filtered())),
                None,
            ),
            ("a filter without a limit", scan("Index Scan", "i", filtered()), Some("would cost 50000")),
            ("a bitmap of few", scan("Bitmap Heap Scan", "", json!({"Plan Rows": 10})), None),
            (
                "a bitmap of many",
                scan("Bitmap Heap Scan", "", json!({"Plan Rows": 20_000})),
                Some("no index matches"),
            ),
            (
                "a dear plan",
                above("Limit", 200_000.0, &scan("Index Scan", "i", cond())),
                Some("its plan costs 200000"),
            ),
        ] {
            let found = judged(&node);
            match expected {
                None => assert!(found.is_ok(), "{what}: {found:?}"),
                Some(words) => {
                    assert!(found.as_ref().is_err_and(|error| error.contains(words)), "{what}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn a_subquery_has_to_end_by_itself() {
        let mut inner = scan("Index Scan", "i", json!({"Index Cond": "x", "Plan Rows": 500_000}));
        inner["Parent Relationship"] = "SubPlan".into();
        assert!(judged(&above("Limit", 5.0, &inner)).is_err());
        inner["Parent Relationship"] = "Outer".into();
        assert!(judged(&above("Limit", 5.0, &inner)).is_ok());
    }

    #[test]
    fn small_relations_and_catalogs_may_be_read_in_any_way() {
        let small = json!({"Relation Name": "small", "Total Cost": 1e10 + 5.0});
        assert_eq!(judged(&scan("Seq Scan", "", small)), Ok(5.0));
        assert!(
            judged(&scan("Seq Scan", "", json!({"Schema": "pg_catalog", "Relation Name": "pg_class"})))
                .is_ok()
        );
        assert!(judged(&scan("Seq Scan", "", json!({"Relation Name": "unknown"}))).is_err());
        assert!(judge("[]", &sizes()).is_err() && judge("x", &sizes()).is_err());
        assert!(sizes().largest() > 999_999.0);
    }
}
