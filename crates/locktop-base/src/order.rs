//! Stable sorting by one routine for all types: each copy of the standard library's takes 6 kB of the program.

use std::cmp::Ordering;

pub trait SortExt<T> {
    /// As [`slice::sort_by`].
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// As [`slice::sort_by_key`].
    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|one, other| key(one).cmp(&key(other)));
    }

    /// As [`slice::sort_by_cached_key`].
    fn order_by_cached_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> SortExt<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let swaps = swaps(self.len(), &mut |one, other| match (self.get(one), self.get(other)) {
            (Some(one), Some(other)) => compare(one, other),
            _ => Ordering::Equal,
        });
        swaps.into_iter().enumerate().for_each(|(at, with)| self.swap(at, with));
    }

    fn order_by_cached_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K) {
        let keys: Vec<K> = self.iter().map(key).collect();
        let swaps = swaps(self.len(), &mut |one, other| keys.get(one).cmp(&keys.get(other)));
        swaps.into_iter().enumerate().for_each(|(at, with)| self.swap(at, with));
    }
}

/// For each place in turn, the place to swap it with.
fn swaps(length: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..length).collect();
    places.sort_by(|one, other| compare(*one, *other));
    for at in 0..length {
        let of = |place: usize| places.get(place).copied().unwrap_or(at);
        let mut from = of(at);
        // An earlier swap has moved that element.
        while from < at {
            from = of(from);
        }
        if let Some(place) = places.get_mut(at) {
            *place = from;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library(rows in prop::collection::vec((0_u8..9, any::<u8>()), 0..60)) {
            let mut wanted = rows.clone();
            wanted.sort_by_key(|row| row.0);
            let (mut by, mut by_key, mut by_cached_key) = (rows.clone(), rows.clone(), rows);
            by.order_by(|one, other| one.0.cmp(&other.0));
            by_key.order_by_key(|row| row.0);
            by_cached_key.order_by_cached_key(|row| row.0);
            prop_assert!([by, by_key, by_cached_key].iter().all(|rows| *rows == wanted));
        }
    }
}
