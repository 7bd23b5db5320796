//! The `.tacit` file: round trip, and contents that are refused.

use crate::float;
use crate::lowering::{compile, some_models};
use crate::models::Builder;
use tacit_graph::fuzzing::sealed;
use tacit_graph::{Error, Model, Options, load, save, save_with};
use tempfile::tempdir;

pub(crate) fn tiny() -> Model {
    let mut builder = Builder::new(7, &[3]);
    builder.gemm(2);
    let program = builder.finish();
    let (_, ranges) = float::calibrate(&program, 1, 0.0);
    compile(&program, &ranges, &Options::default()).unwrap()
}

/// The bytes of a file with always the same salt.
pub(crate) fn bytes_of(model: &Model) -> Vec<u8> {
    let directory = tempdir().unwrap();
    let path = directory.path().join("model.tacit");
    let entries = [("salt".to_string(), "5a".repeat(32))].into();
    save_with(model, &entries, &path).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    std::fs::read(path).unwrap()
}

pub(crate) fn load_bytes(bytes: &[u8]) -> tacit_graph::Result<Model> {
    let directory = tempdir().unwrap();
    let path = directory.path().join("model.tacit");
    std::fs::write(&path, bytes).unwrap();
    load(path)
}

/// Header and data of a file, the header edited as text, with a digest that holds.
fn with_header(bytes: &[u8], edit: impl Fn(&str) -> String) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = edit(std::str::from_utf8(&bytes[8..8 + length]).unwrap());
    let mut edited = (header.len() as u64).to_le_bytes().to_vec();
    edited.extend_from_slice(header.as_bytes());
    edited.extend_from_slice(&bytes[8 + length..]);
    sealed(edited)
}

#[test]
fn models_survive_and_bytes_depend_on_model_and_salt_only() {
    for model in some_models(4) {
        let bytes = bytes_of(&model);
        assert_eq!(bytes, bytes_of(&model));
        assert_eq!(load_bytes(&bytes).unwrap(), model);
    }
}

#[test]
fn an_existing_file_is_replaced_and_a_wrong_model_is_not_written() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("model.tacit");
    std::fs::write(&path, b"old").unwrap();
    let mut wrong = tiny();
    wrong.graph.tensors[0].format.bits = 2;
    assert!(matches!(save(&wrong, &path), Err(Error::Invalid { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    save(&tiny(), &path).unwrap();
    assert_eq!(load(&path).unwrap(), tiny());
}

#[test]
fn other_kinds_of_files_are_named_with_what_to_do() {
    let kinds: [(&[u8], &str); 4] = [
        (b"\x08\x08\x12\x07pytorch\x1a\x05", "an ONNX model: compile it first"),
        (b"PK\x03\x04\x14\x00\x08\x08", "a zip archive or a pickle"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00", "unpack it first"),
        (b"\x89HDF\r\n\x1a\n\x00", "not a Tacit model"),
    ];
    for (bytes, words) in kinds {
        let refused = load_bytes(bytes).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn foreign_and_newer_files_are_named() {
    let bytes = bytes_of(&tiny());
    let refused = |edit: &dyn Fn(&str) -> String| {
        load_bytes(&with_header(&bytes, edit)).unwrap_err().to_string()
    };
    let newer = refused(&|h| h.replace("\"version\":\"2\"", "\"version\":\"3\""));
    assert!(newer.contains("file version 3, this program reads version 2"), "{newer}");
    let foreign = refused(&|h| h.replace("\"tacit\"", "\"other\""));
    assert!(foreign.contains("not a Tacit model"), "{foreign}");
    let graph = refused(&|h| h.replace("\\\"version\\\":1", "\\\"version\\\":2"));
    assert!(graph.contains("version 2 is not 1"), "{graph}");
    let unknown = refused(&|h| h.replace("{\\\"version\\\"", "{\\\"extra\\\":1,\\\"version\\\""));
    assert!(unknown.contains("extra"), "{unknown}");
}

#[test]
fn wrong_types_shapes_and_names_are_refused() {
    let bytes = bytes_of(&tiny());
    let edits: [&dyn Fn(&str) -> String; 7] = [
        &|h| h.replace("\"I64\"", "\"F64\""),
        &|h| h.replace("\"I32\"", "\"U32\""),
        &|h| h.replace("[2,3,1,1]", "[3,2,1,1]"),
        &|h| h.replace("[2,3,1,1]", "[18446744073709551615,3,1,1]"),
        &|h| h.replace("[2,3,1,1]", "[4611686018427387904,4611686018427387904,1,1]"),
        &|h| h.replace(".weight\":", ".other\":"),
        &|h| h.replace("\"data_offsets\":[", "\"data_offsets\":[1"),
    ];
    for (index, edit) in edits.iter().enumerate() {
        let edited = with_header(&bytes, edit);
        assert_ne!(edited, bytes, "edit {index} found nothing");
        assert!(matches!(load_bytes(&edited), Err(Error::Corrupt(_))), "edit {index}");
    }
    let mut huge = bytes.clone();
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(load_bytes(&sealed(huge)), Err(Error::Corrupt(_))));
}

#[test]
fn weights_beyond_their_declared_width_are_refused() {
    let bytes = bytes_of(&tiny());
    let mut last = bytes.clone();
    let end = last.len();
    last[end - 4..].copy_from_slice(&i32::MIN.to_le_bytes());
    let error = load_bytes(&sealed(last)).unwrap_err();
    assert!(matches!(&error, Error::Invalid { pass, .. } if pass == "load"), "{error}");
}

#[test]
fn a_missing_file_is_an_io_error_with_its_name() {
    let error = load("does/not/exist.tacit").unwrap_err();
    assert!(matches!(&error, Error::Io(why) if why.contains("does/not/exist.tacit")));
}

#[test]
fn secrets_are_not_printed() {
    let text = format!("{:?}", tiny());
    assert!(text.contains("6 hidden weights") && !text.contains("weight: ["), "{text}");
}
