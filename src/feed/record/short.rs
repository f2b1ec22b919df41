//! Cuts long statements of a snapshot that is too large.

use std::sync::Arc;

use crate::model::backend::Backend;
use crate::model::blame::Key;
use crate::model::past::{Look, Past};
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::model::{QueryText, Text};

/// Cuts each statement to `most` characters. Also returns how many statements of sessions were cut.
pub(super) fn cut(look: &Look, most: usize) -> (Look, u64) {
    let mut view = View::clone(&look.view);
    let mut past = Past::clone(&look.past);
    let mut count = 0;
    if let Some(snapshot) = look.view.snapshot.as_deref() {
        let mut snapshot = Snapshot::clone(snapshot);
        count = cut_all(snapshot.backends.rows_mut(), most);
        view.snapshot = Some(Arc::new(snapshot));
    }
    if let Some(graph) = &mut past.graph_from {
        cut_all(&mut graph.backends, most);
    }
    let shorter = |text: &Text| shortened(text, most).unwrap_or_else(|| Text::clone(text));
    let key = |key: &Key| Key { statement: shorter(&key.statement), ..key.clone() };
    view.blame = Arc::new(view.blame.with_statements(key, shorter));
    (Look { view: Arc::new(view), past: Arc::new(past), notes: Arc::clone(&look.notes) }, count)
}

fn cut_all(backends: &mut Arc<Vec<Backend>>, most: usize) -> u64 {
    let mut count = 0;
    for query in Arc::make_mut(backends).iter_mut().filter_map(|backend| backend.query.as_mut()) {
        if let Some(shorter) = shortened(query.unredacted(), most) {
            *query = QueryText::from(shorter);
            count += 1;
        }
    }
    count
}

/// `None` if it is short enough. The cut text is marked.
fn shortened(text: &str, most: usize) -> Option<Text> {
    let (end, _) = text.char_indices().nth(most)?;
    let rest = crate::text::count((text.len() - end) as u64);
    Some(format!("{} … (cut: {rest} bytes more)", text.get(..end)?).into())
}
