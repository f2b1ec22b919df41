use super::net::Adjacency;

/// A search that can be repeated without clearing its memory.
#[derive(Debug)]
pub(super) struct Search {
    seen: Vec<usize>,
    round: usize,
    todo: Vec<usize>,
}

impl Search {
    pub(super) fn new(nodes: usize) -> Self {
        Self { seen: vec![0; nodes], round: 0, todo: Vec::new() }
    }

    /// Every group that can be reached from `start`, except itself.
    pub(super) fn from(&mut self, start: usize, along: &Adjacency, groups: usize) -> Vec<usize> {
        self.beyond(&[start], along, groups)
    }

    /// Every group that can be reached from one of `starts`, which are ascending, except themselves.
    pub(super) fn beyond(&mut self, starts: &[usize], along: &Adjacency, groups: usize) -> Vec<usize> {
        self.round += 1;
        for start in starts {
            self.visit(*start);
        }
        let mut found = Vec::new();
        while let Some(node) = self.todo.pop() {
            if node < groups && starts.binary_search(&node).is_err() {
                found.push(node);
            }
            for next in along.of(node) {
                self.visit(*next);
            }
        }
        found
    }

    fn visit(&mut self, node: usize) {
        if let Some(seen) = self.seen.get_mut(node)
            && *seen != self.round
        {
            *seen = self.round;
            self.todo.push(node);
        }
    }
}

pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
