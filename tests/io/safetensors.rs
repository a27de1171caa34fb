//! safetensors files: round trips of every element type, bytes of another writer, indices of several files,
//! and damaged headers.

use std::path::{Path, PathBuf};

use selvedge::Error;
use selvedge::io::safetensors::{SafetensorsFile, SafetensorsWriter};
use selvedge::types::DType;

use super::Scratch;

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("selvedge-io-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a file with this header and these bytes of tensors.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// Returns the error for this path, which must name the file and be no other error.
fn refusal(path: &Path) -> String {
    match SafetensorsFile::open(path) {
        Err(error @ Error::File { .. }) => {
            let message = error.to_string();
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(message.contains(name), "{message}");
            message
        }
        other => panic!("{other:?}"),
    }
}

fn bytes(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|k| ((k + seed) * 37 % 251) as u8).collect()
}

#[test]
fn every_element_type_there_and_back() {
    let folder = Folder::new("safetensors-all");
    let path = folder.0.join("all.safetensors");
    let shapes = [&[3, 50][..], &[], &[0, 7], &[9]];
    let stored = DType::ALL.into_iter().filter(|dtype| *dtype != DType::C128);
    let mut tensors = Vec::new();
    for dtype in stored {
        for (index, shape) in shapes.into_iter().enumerate() {
            tensors.push((format!("{dtype}/{index}"), dtype, shape));
        }
    }
    let listed: Vec<_> = tensors.iter().map(|(name, dtype, shape)| (name.as_str(), *dtype, *shape)).collect();
    let metadata = [("format", "pt"), ("an \"odd\" key\n", "ä\u{1f600}")];
    let mut writer = SafetensorsWriter::create(&path, &listed, &metadata).unwrap();
    let contents =
        |at: usize, dtype: DType, shape: &[usize]| bytes(shape.iter().product::<usize>() * dtype.size(), at);
    // In the order of the list, which is not that of the file, and in two parts.
    for (at, (name, dtype, shape)) in listed.iter().enumerate() {
        let all = contents(at, *dtype, shape);
        let (first, second) = all.split_at(all.len() / 3);
        writer.begin(name).unwrap();
        writer.write(first).unwrap();
        writer.write(second).unwrap();
    }
    assert!(!path.exists());
    writer.finish().unwrap();
    assert_eq!(folder.names(), ["all.safetensors"]);

    let mut found = SafetensorsFile::open(&path).unwrap();
    assert_eq!(found.names().len(), listed.len());
    for (name, value) in metadata {
        assert_eq!(found.metadata()[name], value);
    }
    for (at, (name, dtype, shape)) in listed.iter().enumerate() {
        let array = found.array(name).unwrap();
        let wanted = contents(at, *dtype, shape);
        assert_eq!(
            (array.dtype().unwrap(), array.shape(), array.byte_count()),
            (*dtype, *shape, wanted.len())
        );
        // SAFETY: no other process knows the file.
        let mapped = unsafe { array.map().unwrap() };
        // The mapping starts at a page, so this is the alignment in the file.
        assert!(
            wanted.is_empty() || (mapped.as_ptr() as usize).is_multiple_of(dtype.size().min(8)),
            "{name}"
        );
        assert_eq!(mapped[..], wanted, "{name}");
        assert_eq!(array.read().unwrap().as_bytes(), wanted, "{name}");
    }

    // Equal tensors give equal bytes, although the metadata comes from another order.
    let again = folder.0.join("again.safetensors");
    let write = |order: [(&str, &str); 2], path: &Path| {
        let mut writer = SafetensorsWriter::create(path, &[("x", DType::U8, &[1])], &order).unwrap();
        writer.begin("x").unwrap();
        writer.write(&[7]).unwrap();
        writer.finish().unwrap();
        std::fs::read(path).unwrap()
    };
    assert_eq!(write(metadata, &again), write([metadata[1], metadata[0]], &again));
}

#[test]
fn bytes_of_another_writer() {
    let header = concat!(
        r#"{"late":{"dtype":"F32","shape":[2],"data_offsets":[6,14]},"#,
        r#""__metadata__":{"format":"pt"},"#,
        r#""odd":{"shape":[3],"data_offsets":[0,3],"dtype":"I8"},"#,
        r#""none":{"dtype":"I64","shape":[4,0],"data_offsets":[3,3]},"#,
        r#""small":{"dtype":"F4","shape":[2,3],"data_offsets":[3,6]}}   "#,
    );
    let data = [1, 255, 3, 9, 9, 9, 0, 0, 128, 63, 0, 0, 0, 192];
    let scratch = Scratch::with("hand.safetensors", &file(header, &data));
    let mut found = SafetensorsFile::open(&scratch.0).unwrap();
    assert_eq!(found.names(), ["odd", "none", "small", "late"]);
    assert_eq!(found.metadata()["format"], "pt");
    let odd = found.array("odd").unwrap().read().unwrap();
    assert_eq!(odd.as_slice::<i8>().unwrap(), [1, -1, 3]);
    let late = found.array("late").unwrap().read().unwrap();
    assert_eq!(late.as_slice::<f32>().unwrap(), [1.0, -2.0]);
    assert_eq!(found.array("none").unwrap().read().unwrap().shape(), [4, 0]);
    // A dtype that this crate lacks is an error of that tensor alone, and of no more bytes than it has.
    let mut small = found.array("small").unwrap();
    assert_eq!((small.dtype_name().as_str(), small.shape(), small.byte_count()), ("F4", &[2, 3][..], 3));
    let mut room = [0; 3];
    small.read_bytes(&mut room).unwrap();
    assert_eq!(room, [9; 3]);
    assert!(matches!(small.read_bytes(&mut [0]), Err(Error::LengthMismatch { wanted: 0, found: 1, .. })));
    let message = small.read().unwrap_err().to_string();
    for part in ["hand.safetensors", "'small'", "F4", "F8_E4M3", "BOOL"] {
        assert!(message.contains(part), "{message}");
    }
    let message = found.array("absent").unwrap_err().to_string();
    assert!(message.contains("'absent'") && message.contains("odd, none, small, late"), "{message}");

    let empty = Scratch::with("empty.safetensors", &file("{}", &[]));
    assert!(SafetensorsFile::open(&empty.0).unwrap().names().is_empty());
}

#[test]
fn damaged_files_name_the_tensor_and_both_sides() {
    let entry = |name: &str, dtype: &str, shape: &str, start: u64, end: u64| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}"#)
    };
    let one = |dtype: &str, shape: &str, start: u64, end: u64, data: usize| {
        file(&format!("{{{}}}", entry("x", dtype, shape, start, end)), &vec![0; data])
    };
    let two =
        |first: String, second: String, data: usize| file(&format!("{{{first},{second}}}"), &vec![0; data]);
    let good = one("F32", "[2]", 0, 8, 8);
    let length = |header: u64| [&header.to_le_bytes()[..], &good[8..]].concat();
    let max = usize::MAX as u64;
    let cases: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("nothing", vec![], &["0 bytes", "at least 8"]),
        ("part of the length", vec![2, 0, 0], &["3 bytes", "at least 8"]),
        ("a header past the end", length(good.len() as u64 - 7), &["a header of", "at most"]),
        ("an immense header", length(u64::MAX), &["18446744073709551615", "at most"]),
        ("half a header", length(20), &["unreadable header", "EOF"]),
        ("no JSON", file("tensors!", &[]), &["unreadable header"]),
        ("no object", file("[1,2]", &[]), &["an object of tensors"]),
        ("no UTF-8", [&[3, 0, 0, 0, 0, 0, 0, 0][..], b"{\"\xff"].concat(), &["unreadable header"]),
        ("text after the header", file("{} {}", &[]), &["trailing"]),
        ("nesting", file(&"{\"x\":".repeat(5000), &[]), &["'x'"]),
        ("truncated data", good[..good.len() - 1].to_vec(), &["7 bytes", "at least 8", "'x'"]),
        ("extra data", one("F32", "[2]", 0, 8, 9), &["9 bytes", "8 bytes"]),
        ("data of no tensor", file("{}", &[0]), &["1 bytes", "0 bytes"]),
        (
            "an immense tensor",
            one("F32", "[1099511627776]", 0, 1 << 42, 8),
            &["8 bytes", "4398046511104", "'x'"],
        ),
        ("another size", one("F32", "[3]", 0, 8, 8), &["'x'", "F32[3]", "8 bytes", "12 bytes"]),
        ("elements of no size", one("F32", "[0]", 0, 8, 8), &["'x'", "8 bytes", "0 bytes"]),
        (
            "a product that overflows",
            one("F32", &format!("[{max},{max}]"), 0, 4, 4),
            &["'x'", "fit an address"],
        ),
        (
            "one that has a zero too",
            one("F32", &format!("[{max},{max},0]"), 0, 0, 0),
            &["'x'", "fit an address"],
        ),
        ("half a byte", one("F4", "[3]", 0, 2, 2), &["slic"]),
        ("a start after the end", one("F32", "[2]", 8, 0, 8), &["'x'", "8 to 0"]),
        ("a first gap", one("F32", "[2]", 4, 12, 12), &["'x' at byte 4", "byte 0"]),
        ("a negative size", one("F32", "[-2]", 0, 8, 8), &["'x'", "-2"]),
        ("a size of 1.5", one("F32", "[1.5]", 0, 8, 8), &["'x'", "1.5"]),
        ("an unknown dtype", one("F128", "[2]", 0, 32, 32), &["'x'", "F128", "BF16"]),
        ("no dtype", file(r#"{"x":{"shape":[],"data_offsets":[0,1]}}"#, &[0]), &["'x'", "dtype"]),
        ("no shape", file(r#"{"x":{"dtype":"U8","data_offsets":[0,1]}}"#, &[0]), &["'x'", "shape"]),
        ("one offset", file(r#"{"x":{"dtype":"U8","shape":[],"data_offsets":[0]}}"#, &[0]), &["'x'"]),
        (
            "two dtypes",
            file(r#"{"x":{"dtype":"U8","dtype":"I8","shape":[],"data_offsets":[0,1]}}"#, &[0]),
            &["'x'", "dtype"],
        ),
        (
            "an overlap",
            two(entry("x", "U8", "[4]", 0, 4), entry("y", "U8", "[4]", 2, 6), 6),
            &["'y' at byte 2", "byte 4", "'x'"],
        ),
        (
            "a gap",
            two(entry("x", "U8", "[4]", 0, 4), entry("y", "U8", "[4]", 6, 10), 10),
            &["'y' at byte 6", "byte 4", "'x'"],
        ),
        (
            "the same bytes",
            two(entry("x", "U8", "[4]", 0, 4), entry("y", "U8", "[4]", 0, 4), 4),
            &["byte 0", "byte 4"],
        ),
        (
            "one name",
            two(entry("x", "U8", "[4]", 0, 4), entry("x", "U8", "[4]", 4, 8), 8),
            &["two entries", "'x'"],
        ),
        ("metadata that is a number", file(r#"{"__metadata__":{"a":1}}"#, &[]), &["__metadata__", "'a'"]),
        ("metadata of one name", file(r#"{"__metadata__":{"a":"1","a":"2"}}"#, &[]), &["two entries", "'a'"]),
    ];
    let folder = Folder::new("safetensors-damaged");
    for (case, contents, parts) in cases {
        let path = folder.write("damaged.safetensors", &contents);
        let message = refusal(&path);
        for part in parts {
            assert!(message.contains(part), "{case}: {part}: {message}");
        }
        assert!(message.len() < 1000, "{case}: {message}");
    }
    assert!(refusal(&folder.0.join("none.safetensors")).contains("no such file"));
    assert!(refusal(&folder.0).contains("a folder"));

    // Every prefix and every changed byte of a header is an error or a file that can be read.
    for at in 0..good.len() {
        refusal(&folder.write("damaged.safetensors", &good[..at]));
        let mut changed = good.clone();
        changed[at] ^= 1 << (at % 7);
        let path = folder.write("damaged.safetensors", &changed);
        if let Ok(mut file) = SafetensorsFile::open(path) {
            for name in file.names().to_vec() {
                let array = file.array(&name).unwrap();
                if array.dtype().is_ok() {
                    array.read().unwrap();
                }
            }
        }
    }
}

#[test]
fn a_file_that_becomes_shorter_is_an_error() {
    let header = r#"{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;
    let scratch = Scratch::with("shorter.safetensors", &file(header, &[1, 2, 3, 4]));
    let mut opened = SafetensorsFile::open(&scratch.0).unwrap();
    std::fs::write(&scratch.0, file(header, &[1])).unwrap();
    let message = opened.array("x").unwrap().read().unwrap_err().to_string();
    assert!(message.contains("'x'") && message.contains("unexpected end"), "{message}");
}

#[test]
fn an_index_reads_through_its_files() {
    let folder = Folder::new("safetensors-index");
    let entry = |name: &str, start: usize| {
        format!(r#""{name}":{{"dtype":"U8","shape":[2],"data_offsets":[{start},{}]}}"#, start + 2)
    };
    let first = format!(r#"{{{},{},"__metadata__":{{"format":"pt"}}}}"#, entry("a", 2), entry("b", 0));
    folder.write("m-1.safetensors", &file(&first, &[1, 2, 3, 4]));
    folder
        .write("m-2.safetensors", &file(&format!("{{{},{}}}", entry("c", 0), entry("a", 2)), &[5, 6, 7, 8]));
    let index = |map: &str| {
        let text = format!(r#"{{"metadata":{{"total_size":6}},"weight_map":{{{map}}}}}"#);
        folder.write("model.safetensors.index.json", text.as_bytes())
    };
    let path = index(r#""c":"m-2.safetensors","a":"m-1.safetensors","b":"m-1.safetensors""#);
    let mut model = SafetensorsFile::open(&path).unwrap();
    assert_eq!(model.names(), ["b", "a", "c"]);
    assert_eq!(model.metadata()["format"], "pt");
    for (name, wanted) in [("a", [3, 4]), ("b", [1, 2]), ("c", [5, 6])] {
        assert_eq!(model.array(name).unwrap().read().unwrap().as_slice::<u8>().unwrap(), wanted);
    }
    assert!(model.array("d").unwrap_err().to_string().contains("'d'"));

    let cases: &[(&str, &[&str])] = &[
        (r#""a":"m-3.safetensors""#, &["m-3.safetensors", "'a'"]),
        (r#""x":"m-2.safetensors""#, &["'x'", "m-2.safetensors"]),
        (r#""a":"../m-1.safetensors""#, &["'../m-1.safetensors'", "'a'"]),
        (r#""a":"/etc/passwd""#, &["'/etc/passwd'", "'a'"]),
        (r#""a":"..""#, &["'..'", "'a'"]),
        (r#""a":"""#, &["''", "'a'"]),
        (r#""a":3"#, &["'a'", "weight_map"]),
        (r#""a":"m-1.safetensors","a":"m-2.safetensors""#, &["two entries", "'a'"]),
    ];
    for (map, parts) in cases {
        let message = refusal(&index(map));
        for part in *parts {
            assert!(message.contains(part), "{map}: {part}: {message}");
        }
    }
    let message = refusal(&folder.write("model.safetensors.index.json", b"{}"));
    assert!(message.contains("weight_map"), "{message}");
    // A damaged file of an index is named itself.
    folder.write("m-2.safetensors", &[1]);
    let message = SafetensorsFile::open(index(r#""c":"m-2.safetensors""#)).unwrap_err().to_string();
    assert!(message.contains("m-2.safetensors: found 1 bytes"), "{message}");
}

#[test]
fn a_writer_refuses_bad_tensors_and_leaves_the_old_file() {
    let folder = Folder::new("safetensors-writer");
    let path = folder.write("kept.safetensors", b"kept");
    type Tensors<'a> = &'a [(&'a str, DType, &'a [usize])];
    type RefusedTensors<'a> = (Tensors<'a>, &'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: &[RefusedTensors<'_>] = &[
        (&[("x", DType::U8, &[1]), ("x", DType::I8, &[1])], &[], &["'x'", "two"]),
        (&[("x", DType::C128, &[1])], &[], &["'x'", "c128"]),
        (&[("__metadata__", DType::U8, &[1])], &[], &["__metadata__", "another name"]),
        (&[("x", DType::U8, &[usize::MAX, 2])], &[], &["'x'", "at most"]),
        (&[("x", DType::U8, &[1 << 62]), ("y", DType::U8, &[1 << 62])], &[], &["'y'", "at most"]),
        (&[], &[("a", "1"), ("a", "2")], &["'a'", "two"]),
    ];
    for (tensors, metadata, parts) in cases {
        let error = SafetensorsWriter::create(&path, tensors, metadata).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        let message = error.to_string();
        for part in *parts {
            assert!(message.contains(part), "{part}: {message}");
        }
    }

    let create =
        || SafetensorsWriter::create(&path, &[("x", DType::U8, &[2]), ("y", DType::U8, &[])], &[]).unwrap();
    let mut writer = create();
    assert!(matches!(writer.write(&[1]), Err(Error::LengthMismatch { wanted: 0, found: 1, .. })));
    assert!(writer.begin("z").unwrap_err().to_string().contains("'z'"));
    writer.begin("x").unwrap();
    writer.write(&[1]).unwrap();
    assert!(matches!(writer.write(&[1, 2]), Err(Error::LengthMismatch { wanted: 1, found: 2, .. })));
    let message = writer.begin("y").unwrap_err().to_string();
    assert!(message.contains("1 bytes too few of the tensor 'x'"), "{message}");
    writer.write(&[2]).unwrap();
    assert!(writer.begin("x").unwrap_err().to_string().contains("'x'"));
    assert!(writer.finish().unwrap_err().to_string().contains("'y'"));
    drop(create());
    assert_eq!(folder.names(), ["kept.safetensors"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    let missing = SafetensorsWriter::create(folder.0.join("none/x.safetensors"), &[], &[]);
    assert!(matches!(missing, Err(Error::FileNotWritten { .. })), "{missing:?}");
}
