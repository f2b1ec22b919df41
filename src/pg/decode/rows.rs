//! Rows that are mostly those of the poll before.

use std::sync::Arc;

/// Rows as they come. For as long as they are those of the poll before they are only counted, and when all were the
/// result is the same vector: most polls of a large lock table change nothing, and everybody after can see that at once.
#[derive(Debug)]
pub(super) struct Rows<T> {
    before: Arc<Vec<T>>,
    same: usize,
    own: Option<Vec<T>>,
}

impl<T: Copy + PartialEq> Rows<T> {
    /// No rows yet; `before` are those of the poll before.
    pub(super) fn after(before: &Arc<Vec<T>>) -> Self {
        Self { before: Arc::clone(before), same: 0, own: None }
    }

    #[inline]
    pub(super) fn push(&mut self, row: T) {
        match &mut self.own {
            Some(rows) => rows.push(row),
            None if self.before.get(self.same) == Some(&row) => self.same += 1,
            None => self.own = Some(self.changed(row)),
        }
    }

    #[cold]
    fn changed(&self, row: T) -> Vec<T> {
        let mut rows = Vec::with_capacity(self.before.len() + 64);
        rows.extend(self.before.iter().take(self.same));
        rows.push(row);
        rows
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.own.as_ref().map_or(self.same, Vec::len)
    }

    pub(super) fn finish(self) -> Arc<Vec<T>> {
        match self.own {
            Some(rows) => Arc::new(rows),
            None if self.same == self.before.len() => self.before,
            None => Arc::new(self.before.iter().take(self.same).copied().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(before: &Arc<Vec<u8>>, rows: &[u8]) -> Arc<Vec<u8>> {
        let mut reader = Rows::after(before);
        for row in rows {
            reader.push(*row);
        }
        assert_eq!(reader.len(), rows.len());
        reader.finish()
    }

    #[test]
    fn the_rows_are_those_that_came_whatever_was_before() {
        let before = Arc::new(vec![1, 2, 3]);
        for rows in [&[][..], &[1], &[1, 2, 3], &[1, 2, 3, 4], &[1, 3], &[0, 1, 2, 3], &[3, 2, 1]] {
            assert_eq!(*read(&before, rows), rows);
            assert_eq!(*read(&Arc::default(), rows), rows);
        }
    }

    #[test]
    fn the_same_rows_are_the_same_vector() {
        let before = Arc::new(vec![1, 2, 3]);
        assert!(Arc::ptr_eq(&before, &read(&before, &[1, 2, 3])));
    }
}
