//! Merges kept rows with received ones.

use std::sync::Arc;

/// The kept rows of `before` and the received rows. If the received rows equal those not kept, the result is the same
/// vector as before: most polls of a large lock table change nothing, and later steps can detect that at once.
pub(super) fn merge<T: Copy + PartialEq>(
    before: &Arc<Vec<T>>,
    stays: impl Fn(&T) -> bool,
    mut came: Vec<T>,
) -> Arc<Vec<T>> {
    if before.iter().filter(|row| !stays(row)).eq(&came) {
        return Arc::clone(before);
    }
    let staying = before.iter().filter(|row| stays(row)).count();
    if staying == 0 {
        came.shrink_to_fit();
        return Arc::new(came);
    }
    let mut rows = Vec::with_capacity(staying + came.len());
    rows.extend(before.iter().filter(|row| stays(row)));
    rows.extend(came);
    Arc::new(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_those_that_stay_and_those_that_came() {
        let before = Arc::new(vec![1, 2, 3]);
        for came in [&[][..], &[1], &[1, 2, 3], &[1, 2, 3, 4], &[1, 3], &[0, 1, 2, 3], &[3, 2, 1]] {
            assert_eq!(*merge(&before, |_| false, came.to_vec()), came);
            assert_eq!(*merge(&Arc::default(), |_| true, came.to_vec()), came);
        }
        assert_eq!(*merge(&before, |row| *row == 2, vec![3, 4]), [2, 3, 4]);
        assert_eq!(*merge(&before, |_| true, vec![4]), [1, 2, 3, 4]);
    }

    #[test]
    fn the_same_rows_are_the_same_vector() {
        let before = Arc::new(vec![1, 2, 3]);
        assert!(Arc::ptr_eq(&before, &merge(&before, |_| false, vec![1, 2, 3])));
        assert!(Arc::ptr_eq(&before, &merge(&before, |row| *row == 2, vec![1, 3])));
        assert!(Arc::ptr_eq(&before, &merge(&before, |_| true, Vec::new())));
    }
}
