//! Strongly connected components of a graph, and a cycle through one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The nodes that each node leads to; every target is a node itself.
pub(crate) type Graph<N> = BTreeMap<N, BTreeSet<N>>;

/// The components in which every node reaches every other, single nodes included
/// (R. Tarjan, "Depth-first search and linear graph algorithms", 1972).
pub(crate) fn components<N: Ord + Clone>(graph: &Graph<N>) -> Vec<BTreeSet<N>> {
    let mut search = Search {
        graph,
        seen: BTreeMap::new(),
        stack: Vec::new(),
        closed: BTreeSet::new(),
        found: Vec::new(),
    };
    for node in graph.keys() {
        search.visit(node);
    }
    search.found
}

struct Search<'a, N> {
    graph: &'a Graph<N>,
    /// The order in which nodes were met.
    seen: BTreeMap<&'a N, usize>,
    stack: Vec<&'a N>,
    /// The nodes whose component is known.
    closed: BTreeSet<&'a N>,
    found: Vec<BTreeSet<N>>,
}

impl<'a, N: Ord + Clone> Search<'a, N> {
    /// Returns the earliest open node that `node` reaches.
    fn visit(&mut self, node: &'a N) -> usize {
        if let Some(order) = self.seen.get(node) {
            return if self.closed.contains(node) { usize::MAX } else { *order };
        }
        let order = self.seen.len();
        let height = self.stack.len();
        self.seen.insert(node, order);
        self.stack.push(node);
        let mut lowest = order;
        for next in &self.graph[node] {
            lowest = lowest.min(self.visit(next));
        }
        if lowest == order {
            let members = self.stack.split_off(height);
            self.found.push(members.iter().map(|member| (*member).clone()).collect());
            self.closed.extend(members);
        }
        lowest
    }
}

/// A shortest cycle inside `component` of three nodes or more, or of two where all ways back
/// are that short. The first node is repeated at the end.
pub(crate) fn cycle<N: Ord + Clone>(graph: &Graph<N>, component: &BTreeSet<N>) -> Vec<N> {
    let cycles = component.iter().filter_map(|start| cycle_through(graph, component, start));
    cycles.min_by_key(|cycle| (cycle.len() <= 3, cycle.len())).unwrap_or_default()
}

/// A shortest way from `start` back to it.
fn cycle_through<N: Ord + Clone>(
    graph: &Graph<N>,
    component: &BTreeSet<N>,
    start: &N,
) -> Option<Vec<N>> {
    let mut from: BTreeMap<&N, &N> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(node) = open.pop_front() {
        for next in graph[node].intersection(component) {
            if from.contains_key(next) {
                continue;
            }
            from.insert(next, node);
            open.push_back(next);
        }
    }
    let mut way = vec![start.clone()];
    let mut at = *from.get(start)?;
    while at != start {
        way.push(at.clone());
        at = from.get(at)?;
    }
    way.push(start.clone());
    way.reverse();
    Some(way)
}
