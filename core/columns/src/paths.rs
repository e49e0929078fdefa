//! Fields within fields: a column that is named `event.time` is found as `time` in the object `event`.

use crate::json_key::JsonKey;

/// The fields that lead to columns, as a tree.
pub(crate) struct Paths {
    nodes: Vec<PathNode>,
    /// Positions of the fields that a row has itself.
    roots: Vec<usize>,
}

pub(crate) struct PathNode {
    name: Vec<u8>,
    pub(crate) key: JsonKey,
    /// The column that the field itself goes to.
    pub(crate) column: Option<usize>,
    /// Positions of the fields within this field.
    pub(crate) children: Vec<usize>,
}

impl Paths {
    /// Builds the tree for columns with these names; `None` if no column lies within another field.
    pub(crate) fn new<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Option<Self> {
        let mut paths = Paths { nodes: Vec::new(), roots: Vec::new() };
        for (column, name) in names.clone().enumerate().filter(|(_, name)| name.contains('.')) {
            let mut parent = None;
            for part in name.split('.') {
                parent = Some(paths.node(parent, part));
            }
            paths.nodes[parent?].column = Some(column);
        }
        // The whole of an object may be wanted beside what is in it.
        for &root in &paths.roots {
            let node = &mut paths.nodes[root];
            node.column = node.column.or_else(|| names.clone().position(|name| name.as_bytes() == node.name));
        }
        (!paths.roots.is_empty()).then_some(paths)
    }

    fn node(&mut self, parent: Option<usize>, name: &str) -> usize {
        if let Some(known) = self.child(self.children(parent), name.as_bytes()) {
            return known;
        }
        let node = PathNode { name: name.into(), key: JsonKey::new(name), column: None, children: Vec::new() };
        self.nodes.push(node);
        let added = self.nodes.len() - 1;
        match parent {
            Some(parent) => self.nodes[parent].children.push(added),
            None => self.roots.push(added),
        }
        added
    }

    fn children(&self, parent: Option<usize>) -> &[usize] {
        parent.map_or(&self.roots, |parent| &self.nodes[parent].children)
    }

    pub(crate) fn get(&self, node: usize) -> Option<&PathNode> {
        self.nodes.get(node)
    }

    /// Returns a row's own field, in which others lie, by its name.
    pub(crate) fn root(&self, name: &[u8]) -> Option<usize> {
        self.child(&self.roots, name)
    }

    pub(crate) fn child(&self, children: &[usize], name: &[u8]) -> Option<usize> {
        children.iter().copied().find(|child| self.nodes[*child].name == name)
    }
}
