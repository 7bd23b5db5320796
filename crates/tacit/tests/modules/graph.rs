//! The graph of imports between the modules of a crate.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Import, Path, Source};

/// How often a path may lead to another import before it counts as unknown.
const LONGEST_CHAIN: usize = 16;

/// The modules of a crate that have a file of their own, by path; the root is empty.
pub(crate) struct Crate {
    modules: BTreeMap<Path, Source>,
}

impl Crate {
    /// Follows the `mod name;` lines from `lib.rs` on. `files` holds texts by their path
    /// below `src`, with `/` between folders.
    pub(crate) fn load(files: &BTreeMap<String, String>) -> Self {
        let mut modules = BTreeMap::new();
        let mut open = vec![(Path::new(), "lib.rs".to_owned())];
        while let Some((path, file)) = open.pop() {
            let source = Source::parse(&files[&file]);
            for child in &source.children {
                let child = [&path[..], child].concat();
                let stem = child.join("/");
                let candidates = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
                let found = candidates.into_iter().find(|file| files.contains_key(file));
                assert!(found.is_some(), "{file} declares {stem}, which has no file");
                open.extend(found.map(|file| (child, file)));
            }
            modules.insert(path, source);
        }
        Self { modules }
    }

    /// For each module the modules that it uses.
    pub(crate) fn edges(&self) -> BTreeMap<Path, BTreeSet<Path>> {
        let targets = |(from, source): (&Path, &Source)| {
            let imports = source.imports.iter().map(|i| (&i.scope, &i.path));
            let mentions = source.mentions.iter().map(|m| (&m.scope, &m.path));
            let found = imports.chain(mentions);
            let found = found.filter_map(|(scope, path)| self.resolve(from, scope, path, 0));
            (from.clone(), found.filter(|to| to != from).collect())
        };
        self.modules.iter().map(targets).collect()
    }

    /// For each top-level folder, or file without one, those that it uses. The root, which joins
    /// them, is left out.
    pub(crate) fn folders(&self) -> BTreeMap<Path, BTreeSet<Path>> {
        let folder = |module: &Path| module.first().map(|name| vec![name.clone()]);
        let mut folders: BTreeMap<Path, BTreeSet<Path>> = BTreeMap::new();
        for (from, targets) in self.edges() {
            let Some(from) = folder(&from) else { continue };
            let targets = targets.iter().filter_map(folder).filter(|to| *to != from);
            folders.entry(from.clone()).or_default().extend(targets);
        }
        folders
    }

    /// The module that defines what `path` names inside `scope` of module `from`; none for
    /// other crates and for local names.
    fn resolve(
        &self,
        from: &Path,
        scope: &[String],
        path: &[String],
        chain: usize,
    ) -> Option<Path> {
        let first = path.first()?;
        if chain > LONGEST_CHAIN {
            return None;
        }
        let here = [from, scope].concat();
        if !["crate", "self", "super"].contains(&first.as_str()) {
            if self.modules.contains_key(&[&here[..], &path[..1]].concat()) {
                return self.walk(here, path, chain);
            }
            let import = self.import(from, first)?;
            return self.follow(from, import, &path[1..], chain);
        }
        let mut at = here;
        let mut rest = path;
        while let Some((name, later)) = rest.split_first() {
            match name.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                _ => break,
            }
            rest = later;
        }
        self.walk(at, rest, chain)
    }

    /// Goes down from module `at` as far as there are modules, through public imports.
    fn walk(&self, mut at: Path, path: &[String], chain: usize) -> Option<Path> {
        for (place, name) in path.iter().enumerate() {
            let below = [&at[..], std::slice::from_ref(name)].concat();
            if self.modules.contains_key(&below) {
                at = below;
                continue;
            }
            let file = self.file(at);
            let exported = self.import(&file, name).filter(|import| import.public);
            let found = exported.and_then(|i| self.follow(&file, i, &path[place + 1..], chain));
            return found.or(Some(file));
        }
        Some(self.file(at))
    }

    /// What `rest` names below an import of module `from`.
    fn follow(&self, from: &Path, import: &Import, rest: &[String], chain: usize) -> Option<Path> {
        self.resolve(from, &import.scope, &[&import.path, rest].concat(), chain + 1)
    }

    fn import(&self, module: &Path, name: &str) -> Option<&Import> {
        self.modules.get(module)?.imports.iter().find(|import| import.name == name)
    }

    /// The innermost module around `at` that has a file.
    fn file(&self, mut at: Path) -> Path {
        while !self.modules.contains_key(&at) && at.pop().is_some() {}
        at
    }
}
