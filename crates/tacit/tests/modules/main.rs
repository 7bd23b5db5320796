//! No module of a crate takes part in an import cycle of more than two.
//!
//! Two modules that use each other can be read together; three or more cannot be
//! understood, tested or moved one at a time. The same holds for the folders below `src`, each
//! with all its files. A module is a file (a folder's `mod.rs` is the module of that folder),
//! inline modules belong to their file, tests are left out.
//! `mod child;` is not a use of the child; `use super::Item` is a use of the parent. An
//! item that is re-exported counts for the module that defines it.

#![allow(clippy::unwrap_used, missing_docs)]

mod cycles;
mod graph;
mod source;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use self::cycles::{Graph, components, cycle};
use self::graph::Crate;

/// The most modules in one cycle.
const LARGEST: usize = 2;

/// The cycles of a crate that have more than [`LARGEST`] modules, or folders: their members, and
/// one way around.
fn knots(files: &BTreeMap<String, String>) -> Vec<String> {
    let modules = Crate::load(files);
    let folders = knots_of(&modules.folders(), "folders");
    knots_of(&modules.edges(), "modules").into_iter().chain(folders).collect()
}

fn knots_of(graph: &Graph<source::Path>, kind: &str) -> Vec<String> {
    let named = |path: &source::Path| match path.join("::") {
        root if root.is_empty() => "crate".to_owned(),
        path => path,
    };
    let described = |component: BTreeSet<source::Path>| {
        let members: Vec<String> = component.iter().map(named).collect();
        let around: Vec<String> = cycle(graph, &component).iter().map(named).collect();
        format!("{} {kind}: {}; {}", members.len(), members.join(", "), around.join(" -> "))
    };
    let knots = components(graph).into_iter().filter(|component| component.len() > LARGEST);
    knots.map(described).collect()
}

/// Adds the Rust files below `folder` to `files`.
fn read(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            read(&path, &format!("{name}/"), files);
        } else if name.ends_with(".rs") {
            files.insert(name, std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn no_cycle_of_more_than_two_modules() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seen = 0;
    let mut faults = String::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let source = folder.path().join("src");
        if !source.join("lib.rs").exists() {
            continue;
        }
        let mut files = BTreeMap::new();
        read(&source, "", &mut files);
        for knot in knots(&files) {
            faults += &format!("\n{name}, at most {LARGEST} allowed, {knot}");
        }
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} crates found");
    assert!(faults.is_empty(), "import cycles:{faults}");
}

/// What is wrong with a made-up crate.
fn made_up(files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    knots(&files.collect())
}

#[test]
fn a_pair_passes_and_three_do_not() {
    let root = ("lib.rs", "mod a; mod b; mod c; pub use a::A;");
    let pair = made_up(&[
        root,
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::{A, c::C}; pub struct B;"),
        ("c.rs", "pub struct C;"),
    ]);
    assert!(pair.is_empty(), "{pair:?}");
    let three = made_up(&[
        root,
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "pub struct B(crate::c::C);"),
        ("c.rs", "use super::A; pub struct C;"),
    ]);
    let found = ["modules", "folders"].map(|kind| format!("3 {kind}: a, b, c; a -> b -> c -> a"));
    assert_eq!(three, found);
}

#[test]
fn parents_and_children_count_by_what_they_use() {
    let root = ("lib.rs", "mod p;");
    let (x, y) = (("p/x.rs", "use super::P;"), ("p/y.rs", "use super::P;"));
    let declared = made_up(&[root, ("p/mod.rs", "mod x; mod y; pub struct P;"), x, y]);
    assert!(declared.is_empty(), "{declared:?}");
    let used = made_up(&[root, ("p.rs", "mod x; mod y; pub struct P; fn f() { y::g(); }"), x, y]);
    assert!(used.is_empty(), "{used:?}");
    let y = ("p/y.rs", "use super::x::X;");
    let three = made_up(&[root, ("p.rs", "mod x; mod y; pub struct P; fn f() { y::g(); }"), x, y]);
    assert_eq!(three, ["3 modules: p, p::x, p::y; p -> p::y -> p::x -> p"]);
}

#[test]
fn folders_count_with_all_their_files() {
    let crate_with = |c| {
        made_up(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "mod x; mod y;"),
            ("a/x.rs", "use crate::b::B;"),
            ("a/y.rs", "pub struct Y;"),
            ("b.rs", "use crate::c::C; pub struct B;"),
            ("c.rs", c),
        ])
    };
    let three = crate_with("use crate::a::y::Y; pub struct C;");
    assert_eq!(three, ["3 folders: a, b, c; a -> b -> c -> a"], "no file is in a cycle");
    assert!(crate_with("pub struct C;").is_empty());
}

#[test]
fn a_public_import_counts_for_the_module_that_defines() {
    let crate_with = |p| {
        made_up(&[
            ("lib.rs", "mod p;"),
            ("p.rs", p),
            ("p/x.rs", "use super::P;"),
            ("p/y.rs", "use super::x::X; pub struct P;"),
        ])
    };
    let public = crate_with("mod x; mod y; pub use y::P;");
    assert!(public.is_empty(), "x and y use each other, p is in between by name only: {public:?}");
    assert_eq!(crate_with("mod x; mod y; use y::P;").len(), 1);
}

#[test]
fn renamed_modules_and_inline_modules_are_seen_through() {
    let three = made_up(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b as other; fn f() { other::g(); }"),
        ("b.rs", "mod inner { use super::super::c::{self, H}; }"),
        ("c.rs", "#[cfg(not(test))] mod k { pub(crate) use crate::a; } use self::k::a::f;"),
    ]);
    assert_eq!(three.len(), 2, "by module and by folder: {three:?}");
    let none = made_up(&[
        ("lib.rs", "mod a; #[cfg(test)] mod b; mod c;"),
        ("a.rs", "use crate::c::C; #[cfg(test)] mod tests { use crate::b; } // crate::b::d"),
        ("c.rs", "pub struct C(super::a::A); #[cfg(test)] use super::b::x;"),
    ]);
    assert!(none.is_empty(), "{none:?}");
}
