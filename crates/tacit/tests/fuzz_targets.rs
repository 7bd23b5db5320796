//! Every fuzz target on the stable toolchain: its body runs on its corpus and on seeded mutations of
//! it, and allocates no more than its plan and the length of its input give reason for.

#![allow(clippy::unwrap_used, missing_docs)]

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use allocation_counter::measure;
use ring::mutate::replay;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A fuzz target as it runs here.
struct Target {
    /// The name of its file in `fuzz/fuzz_targets` and of its folder in `fuzz/corpus`.
    name: &'static str,
    body: fn(&[u8]),
    /// The path of `body`, as the file writes it.
    path: &'static str,
    /// How many mutations are run.
    count: usize,
    /// The most bytes that the thread of the target may hold at once for an empty input; what it
    /// prepares once, before the first message, is part of them.
    most: u64,
    /// The most bytes that it may hold more for each byte of the input.
    per_byte: u64,
}

/// The list of all targets, and a test of each.
macro_rules! targets {
    ($($name:ident: $body:path, $count:literal times, $most:expr, $per_byte:literal per byte;)*) => {
        const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            body: $body,
            path: stringify!($body),
            count: $count,
            most: $most,
            per_byte: $per_byte,
        }),*];

        mod stands_its_corpus {
            $(#[test]
            fn $name() {
                super::run(stringify!($name));
            })*
        }
    };
}

targets! {
    graph_file: graph::fuzzing::file, 5000 times, MIB, 64 per byte;
    graph_json: graph::fuzzing::json, 5000 times, MIB, 64 per byte;
    graph_source: graph::fuzzing::source, 5000 times, MIB, 64 per byte;
    mpc_appended: mpc::fuzzing::masked_factors, 5000 times, 64 * KIB, 64 per byte;
    mpc_checked: mpc::fuzzing::checked_network, 100 times, 16 * MIB, 64 per byte;
    mpc_ciphertexts: mpc::fuzzing::ciphertexts, 200 times, MIB, 64 per byte;
    mpc_garbled: mpc::fuzzing::garbled_step, 200 times, MIB, 64 per byte;
    mpc_ot_products: mpc::fuzzing::ot_corrections, 200 times, MIB, 64 per byte;
    mpc_shared: mpc::fuzzing::shared_ciphertexts, 200 times, MIB, 64 per byte;
    mpc_slots: mpc::fuzzing::slot_ciphertexts, 200 times, 4 * MIB, 64 per byte;
    ot_kem: ot::fuzzing::kem, 2000 times, 64 * KIB, 64 per byte;
    ot_messages: ot::fuzzing::ot_messages, 5000 times, MIB, 64 per byte;
    ot_points: ot::fuzzing::points, 5000 times, 64 * KIB, 64 per byte;
    runtime_accept: runtime::fuzzing::accept, 5000 times, 64 * KIB, 64 per byte;
    runtime_hello: runtime::fuzzing::hello, 5000 times, 64 * KIB, 64 per byte;
    runtime_lola_files: runtime::fuzzing::lola_files, 200 times, 128 * MIB, 64 per byte;
    runtime_offer: runtime::fuzzing::offer, 5000 times, MIB, 64 per byte;
    runtime_opening: runtime::fuzzing::opening, 5000 times, 64 * KIB, 64 per byte;
    runtime_plan: runtime::fuzzing::plan, 2000 times, MIB, 64 per byte;
    wire_admission: wire::fuzzing::admission, 5000 times, 64 * KIB, 64 per byte;
    wire_fleet: wire::fuzzing::fleet, 5000 times, 64 * KIB, 64 per byte;
    wire_frames: wire::fuzzing::frames, 5000 times, 64 * KIB, 64 per byte;
    wire_packed: wire::fuzzing::packed, 5000 times, 64 * KIB, 64 per byte;
    wire_pin: wire::fuzzing::pin, 5000 times, 64 * KIB, 64 per byte;
    wire_preamble: wire::fuzzing::preamble, 5000 times, 64 * KIB, 64 per byte;
}

fn folder(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(part)
}

fn run(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let (runs, top) = (Cell::new(0), Cell::new((0, 0)));
    let corpus = folder("corpus").join(target.name);
    replay(corpus.to_str().unwrap(), target.count, |data| {
        let held = measure(|| (target.body)(data)).bytes_max;
        let most = target.most + target.per_byte * data.len() as u64;
        assert!(held <= most, "{held} bytes held for an input of {}, at most {most}", data.len());
        runs.set(runs.get() + 1);
        top.set(top.get().max((held, data.len())));
    });
    assert!(runs.get() > target.count || std::env::var_os("TACIT_REPLAY").is_some());
    let (held, length) = top.get();
    eprintln!("{name}: at most {held} bytes held, for an input of {length}");
}

#[test]
fn allocations_are_counted() {
    let held = measure(|| drop(black_box([vec![0u8; 5000], vec![1u8; 3000]]))).bytes_max;
    assert_eq!(held, 8000);
}

fn names(part: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder(part)).unwrap();
    entries
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().into())
        .collect()
}

#[test]
fn the_list_is_that_of_the_folder() {
    let listed: BTreeSet<String> = TARGETS.iter().map(|target| target.name.into()).collect();
    assert_eq!(listed.len(), TARGETS.len());
    assert_eq!(names("fuzz_targets"), listed);
    assert_eq!(names("corpus"), listed);
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    let page = fs::read_to_string(folder("README.md")).unwrap();
    assert_eq!(manifest.matches("[[bin]]").count(), listed.len());
    for Target { name, path, .. } in TARGETS {
        assert!(
            manifest.contains(&format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n"))
        );
        assert!(page.contains(&format!("\n| `{name}` | ")), "README.md says nothing of {name}");
        let file = fs::read_to_string(folder("fuzz_targets").join(format!("{name}.rs"))).unwrap();
        assert!(file.ends_with(&format!("fuzz_target!(|data: &[u8]| {path}(data));\n")), "{file}");
    }
}
