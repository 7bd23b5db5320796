//! What one source file says about modules: those it declares, imports and names.

use super::tokens::tokens;

/// The names on the way to a module or an item.
pub(crate) type Path = Vec<String>;

/// What a file declares and mentions outside its tests.
#[derive(Default)]
pub(crate) struct Source {
    /// The modules declared by `mod name;`, behind the inline modules around them.
    pub(crate) children: Vec<Path>,
    pub(crate) imports: Vec<Import>,
    /// The paths of two names or more in expressions and types.
    pub(crate) mentions: Vec<Mention>,
}

/// One leaf of a `use` tree.
#[derive(Debug, PartialEq)]
pub(crate) struct Import {
    pub(crate) scope: Path,
    pub(crate) path: Path,
    /// The name under which it is known here; `*` for all names of a module.
    pub(crate) name: String,
    /// Whether there is a `pub` of any kind in front of it.
    pub(crate) public: bool,
}

/// A path, and the inline modules around it.
pub(crate) struct Mention {
    pub(crate) scope: Path,
    pub(crate) path: Path,
}

impl Source {
    pub(crate) fn parse(text: &str) -> Self {
        let mut parser = Parser {
            tokens: tokens(text),
            at: 0,
            depth: 0,
            scope: Vec::new(),
            source: Self::default(),
        };
        parser.run();
        parser.source
    }
}

struct Parser<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    depth: usize,
    /// The inline modules around this place, with the depth outside each.
    scope: Vec<(&'a str, usize)>,
    source: Source,
}

impl<'a> Parser<'a> {
    fn run(&mut self) {
        let mut public = false;
        while self.at < self.tokens.len() {
            let is_public = std::mem::take(&mut public);
            match self.token(0) {
                "#" => self.attribute(),
                "pub" => {
                    self.visibility();
                    public = true;
                }
                "use" if self.token(1) != "<" => {
                    self.at += 1;
                    self.import(&[], is_public);
                }
                "mod" if self.token(2) == ";" => {
                    let name = self.token(1);
                    self.source.children.push(self.inside(name));
                    self.at += 3;
                }
                "mod" if self.token(2) == "{" => {
                    self.scope.push((self.token(1), self.depth));
                    self.depth += 1;
                    self.at += 3;
                }
                "{" => {
                    self.depth += 1;
                    self.at += 1;
                }
                "}" => self.close(),
                _ => self.mention(),
            }
        }
    }

    /// The token `ahead` places from here, or nothing behind the end.
    fn token(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).copied().unwrap_or_default()
    }

    fn scope(&self) -> Path {
        self.scope.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    fn inside(&self, name: &str) -> Path {
        let mut path = self.scope();
        path.push(name.to_owned());
        path
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.scope.pop_if(|(_, depth)| *depth == self.depth);
        self.at += 1;
    }

    /// Passes over `pub`, `pub(crate)` or `pub(in path)`.
    fn visibility(&mut self) {
        self.at += 1;
        if self.token(0) == "(" && ["crate", "super", "self", "in"].contains(&self.token(1)) {
            self.brackets();
        }
    }

    /// Passes over a bracket and all that it holds; returns that.
    fn brackets(&mut self) -> Vec<&'a str> {
        let start = self.at;
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            match self.token(0) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        self.tokens[start..self.at].to_vec()
    }

    /// Passes over an attribute, and over the item behind it when that is for tests only.
    /// Code under `feature = "testing"` comes with `test` in the same condition.
    fn attribute(&mut self) {
        self.at += 1;
        let whole_file = self.token(0) == "!";
        self.at += usize::from(whole_file);
        if self.token(0) != "[" {
            return;
        }
        let attribute = self.brackets();
        let tests = attribute.get(1) == Some(&"cfg")
            && attribute.contains(&"test")
            && !attribute.contains(&"not");
        if tests && whole_file {
            self.at = self.tokens.len();
        } else if tests {
            self.item();
        }
    }

    /// Passes over an item, a statement or a field.
    fn item(&mut self) {
        while self.token(0) == "#" {
            self.at += 1;
            self.brackets();
        }
        if self.token(0) == "pub" {
            self.visibility();
        }
        let field = self.token(1) == ":";
        while self.at < self.tokens.len() {
            match self.token(0) {
                "}" => return,
                ";" => break,
                "," if field => break,
                "{" => {
                    self.brackets();
                    return;
                }
                "(" | "[" => {
                    self.brackets();
                }
                _ => self.at += 1,
            }
        }
        self.at += 1;
    }

    /// One branch of a `use` tree below `prefix`; ends behind the branch.
    fn import(&mut self, prefix: &[String], public: bool) {
        let mut path = prefix.to_vec();
        loop {
            match self.token(0) {
                "{" => {
                    self.at += 1;
                    while !["}", ""].contains(&self.token(0)) {
                        self.import(&path, public);
                        self.at += usize::from(self.token(0) == ",");
                    }
                    self.at += 1;
                    return;
                }
                "," | ";" | "}" | "as" | "" => break,
                "::" => {}
                "self" if !path.is_empty() => {}
                name => path.push(name.to_owned()),
            }
            self.at += 1;
        }
        let mut name = path.last().cloned().unwrap_or_default();
        path.pop_if(|last| last == "*");
        if self.token(0) == "as" {
            name = self.token(1).to_owned();
            self.at += 2;
        }
        self.source.imports.push(Import { scope: self.scope(), path, name, public });
    }

    /// A path such as `crate::a::b`, or any other token.
    fn mention(&mut self) {
        let is_name = |token: &str| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let before = self.at.checked_sub(1).map_or("", |at| self.tokens[at]);
        let first = self.token(0);
        self.at += 1;
        if !is_name(first) || [".", "::"].contains(&before) {
            return;
        }
        let mut path = vec![first.to_owned()];
        while self.token(0) == "::" && is_name(self.token(1)) {
            path.push(self.token(1).to_owned());
            self.at += 2;
        }
        if path.len() > 1 {
            self.source.mentions.push(Mention { scope: self.scope(), path });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(text: &str) -> Vec<String> {
        let source = Source::parse(text);
        let written = |i: &Import| format!("{} as {}", i.path.join("::"), i.name);
        source.imports.iter().map(written).collect()
    }

    #[test]
    fn use_trees_are_taken_apart() {
        let text = "pub(crate) use crate::a::{\n self, b::{C, D as E},\n f::*,\n};\nuse super::g;";
        let found = imports(text);
        let wanted =
            ["crate::a as a", "crate::a::b::C as C", "crate::a::b::D as E", "crate::a::f as *"];
        assert_eq!(found[..4], wanted);
        assert_eq!(found[4..], ["super::g as g"]);
        let public = Source::parse(text).imports.iter().filter(|i| i.public).count();
        assert_eq!(public, 4);
        assert_eq!(
            imports("use self::h as i; fn f() -> impl Sized + use<'_> {}"),
            ["self::h as i"]
        );
    }

    #[test]
    fn paths_are_found_in_types_and_expressions() {
        let text = "fn f(x: crate::a::T) { x.y::<u8>(); <crate::b::U as V>::w(); $crate::c::d!(); }
            pub(in crate::nothing) struct S(pub crate::e::F); pub struct G(pub (u8, h::I));";
        let source = Source::parse(text);
        let found: Vec<String> = source.mentions.iter().map(|m| m.path.join("::")).collect();
        assert_eq!(found, ["crate::a::T", "crate::b::U", "crate::c::d", "crate::e::F", "h::I"]);
    }

    #[test]
    fn tests_are_left_out() {
        let text = "#[cfg(test)] mod a; #[cfg(any(test, feature = \"testing\"))] pub mod b; mod c;
            #[cfg(test)] mod tests { use crate::a; fn f() { crate::b::c(); } }
            struct S { #[cfg(test)] x: crate::d::E, y: crate::f::G }
            #[cfg(test)] use crate::h::{I, J}; #[cfg(not(test))] use crate::k::L;
            #[cfg(test)] #[allow(unused)] fn g<A, B>(x: [u8; 2]) -> crate::m::N { crate::o::p() }
            mod inline { mod q; use super::R; }";
        let source = Source::parse(text);
        assert_eq!(source.children, [vec!["c"], vec!["inline", "q"]]);
        let found: Vec<String> = source.mentions.iter().map(|m| m.path.join("::")).collect();
        assert_eq!(found, ["crate::f::G"]);
        assert_eq!(imports(text), ["crate::k::L as L", "super::R as R"]);
        assert_eq!(source.imports[1].scope, ["inline"]);
        assert!(Source::parse("#![cfg(test)] mod a;").children.is_empty());
    }
}
