use super::super::super::confirm;
use super::super::{Failure, say};
use super::shown;
use crate::cli::schema::AdoptArgs;
use crate::schema::{self, Adopt, Adopted, Schema, Taken};
use crate::text::{count, one_line};

pub(super) async fn run(
    client: &mut tokio_postgres::Client,
    place: &Schema,
    arguments: &AdoptArgs,
) -> Result<(String, u8), Failure> {
    let asked =
        Adopt { source: arguments.source.clone(), enable: arguments.enable, dry_run: arguments.dry_run };
    if !arguments.dry_run && !arguments.yes {
        let would = schema::adopt(client, place, &Adopt { dry_run: true, ..asked.clone() }).await?;
        let mut lines = lines(&would);
        if !would.is_change() {
            return Ok((said(lines, place, &asked, &would), 0));
        }
        if asked.enable {
            lines.push(
                "Stop all workers of the old tables first: a task that is enabled in both schemas runs twice."
                    .to_owned(),
            );
        }
        let question = format!("Copy this from {} into {}?", shown(&asked.source), shown(&place.name));
        if !confirm::ask(&lines, &question)? {
            say("nothing was copied");
            return Ok((String::new(), 1));
        }
    }
    let done = schema::adopt(client, place, &asked).await?;
    Ok((said(lines(&done), place, &asked, &done), 0))
}

fn lines(adopted: &Adopted) -> Vec<String> {
    adopted.tables.iter().flat_map(of_table).collect()
}

fn of_table(taken: &Taken) -> Vec<String> {
    let mut parts = vec![format!("{} taken", count(taken.rows.unsigned_abs()))];
    if taken.enabled > 0 {
        parts.push(format!("{} enabled that already existed", count(taken.enabled.unsigned_abs())));
    }
    let mut lines = vec![format!("{}: {}", taken.table, parts.join(", "))];
    lines.extend(taken.notes.iter().map(|note| format!("  {}", one_line(note))));
    lines
}

fn said(mut lines: Vec<String>, place: &Schema, asked: &Adopt, adopted: &Adopted) -> String {
    let (from, to) = (shown(&asked.source), shown(&place.name));
    if asked.dry_run {
        lines.push("Nothing was changed: this was a dry run.".to_owned());
        return lines.join("\n");
    }
    if !adopted.is_change() {
        lines.push("Nothing to copy.".to_owned());
    }
    let skipped: i64 = adopted.tables.iter().map(|taken| taken.skipped).sum();
    lines.push(if adopted.disabled > 0 || adopted.open > 0 {
        format!(
            "The tables of {from} are unchanged and stay in use. To move: stop their workers, then run this again \
             with --enable, which enables in {to} the tasks that are enabled there, and copies the pending items."
        )
    } else if skipped > 0 {
        let (rows, are) = if skipped == 1 { ("row", "is") } else { ("rows", "are") };
        let skipped = count(skipped.unsigned_abs());
        format!("The tables of {from} are unchanged. Do not drop them yet: {skipped} {rows} {are} only there (see above).")
    } else {
        format!("The tables of {from} are unchanged: stop their workers, then drop them.")
    });
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_table_and_what_is_left_to_do() {
        let taken = |rows, enabled, notes: &[&str]| Taken {
            table: "scheduled_tasks",
            rows,
            enabled,
            skipped: 0,
            notes: notes.iter().map(ToString::to_string).collect(),
        };
        let asked = Adopt { source: "public".parse().unwrap(), enable: false, dry_run: false };
        let adopted = Adopted { tables: vec![taken(1200, 0, &["a", "b\u{1b}[2J"])], disabled: 1, open: 0 };
        let text = said(lines(&adopted), &Schema::default(), &asked, &adopted);
        assert!(
            text.starts_with("scheduled_tasks: 1,200 taken\n  a\n  b") && !text.contains('\u{1b}'),
            "{text}"
        );
        assert!(text.contains("with --enable"), "{text}");
        let adopted = Adopted { tables: vec![taken(0, 2, &[])], disabled: 0, open: 0 };
        let text = said(lines(&adopted), &Schema::default(), &asked, &adopted);
        assert_eq!(
            text,
            "scheduled_tasks: 0 taken, 2 enabled that already existed\n\
             The tables of \"public\" are unchanged: stop their workers, then drop them."
        );
        let left =
            Adopted { tables: vec![Taken { skipped: 3, ..taken(0, 0, &["3 skipped"]) }], ..adopted.clone() };
        let text = said(lines(&left), &Schema::default(), &asked, &left);
        assert!(
            text.contains("Do not drop them yet: 3 rows are only there") && !text.contains("then drop"),
            "{text}"
        );
        let dry = Adopt { dry_run: true, ..asked };
        assert!(said(lines(&adopted), &Schema::default(), &dry, &adopted).ends_with("this was a dry run."));
    }
}
