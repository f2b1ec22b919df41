use super::index::Index;
use super::net::Net;

/// The strongly connected components of the net.
#[derive(Debug, Default)]
pub(super) struct Components {
    /// The component of each node.
    pub(super) of: Vec<usize>,
    /// The components with more than one group. The longest wait comes first, in each and among them.
    pub(super) cycles: Vec<Vec<usize>>,
}

const UNSEEN: usize = usize::MAX;

/// Tarjan's algorithm, with an explicit stack: a chain of waits may be too long for recursion.
struct Tarjan<'a> {
    net: &'a Net,
    /// The order in which the nodes were found.
    order: Vec<usize>,
    /// The earliest node that it leads back to.
    low: Vec<usize>,
    component: Vec<usize>,
    components: usize,
    found: usize,
    /// Nodes whose component is not known yet.
    open: Vec<usize>,
    /// `(node, successors already followed)`.
    path: Vec<(usize, usize)>,
}

pub(super) fn components(index: &Index, net: &Net) -> Components {
    let nodes = net.forward.len();
    let mut tarjan = Tarjan {
        net,
        order: vec![UNSEEN; nodes],
        low: vec![UNSEEN; nodes],
        component: vec![UNSEEN; nodes],
        components: 0,
        found: 0,
        open: Vec::new(),
        path: Vec::new(),
    };
    let mut cycles = Vec::new();
    for group in 0..index.len() {
        if get(&tarjan.order, group) == UNSEEN {
            tarjan.run(group, index.len(), &mut cycles);
        }
    }
    for cycle in &mut cycles {
        cycle.sort_by_key(|group| index.age(*group));
    }
    cycles.sort_by_key(|cycle| cycle.first().map(|group| index.age(*group)));
    Components { of: tarjan.component, cycles }
}

impl Tarjan<'_> {
    fn run(&mut self, start: usize, groups: usize, cycles: &mut Vec<Vec<usize>>) {
        self.enter(start);
        while let Some((node, followed)) = self.path.last_mut() {
            let node = *node;
            if let Some(next) = self.net.forward.of(node).get(*followed).copied() {
                *followed += 1;
                if get(&self.order, next) == UNSEEN {
                    self.enter(next);
                } else if get(&self.component, next) == UNSEEN {
                    self.lower(node, get(&self.order, next));
                }
                continue;
            }
            self.path.pop();
            if let Some((before, _)) = self.path.last() {
                self.lower(*before, get(&self.low, node));
            }
            if get(&self.low, node) == get(&self.order, node) {
                self.close(node, groups, cycles);
            }
        }
    }

    fn enter(&mut self, node: usize) {
        set(&mut self.order, node, self.found);
        set(&mut self.low, node, self.found);
        self.found += 1;
        self.open.push(node);
        self.path.push((node, 0));
    }

    fn lower(&mut self, node: usize, to: usize) {
        if let Some(low) = self.low.get_mut(node) {
            *low = to.min(*low);
        }
    }

    fn close(&mut self, last: usize, groups: usize, cycles: &mut Vec<Vec<usize>>) {
        let mut members = Vec::new();
        while let Some(node) = self.open.pop() {
            set(&mut self.component, node, self.components);
            if node < groups {
                members.push(node);
            }
            if node == last {
                break;
            }
        }
        self.components += 1;
        if members.len() > 1 {
            cycles.push(members);
        }
    }
}

fn get(values: &[usize], at: usize) -> usize {
    values.get(at).copied().unwrap_or(UNSEEN)
}

fn set(values: &mut [usize], at: usize, to: usize) {
    if let Some(value) = values.get_mut(at) {
        *value = to;
    }
}
