//! `.npz` files: round trips of every element type, and damaged or inconsistent archives.

use std::io::Write;

use selvedge::Error;
use selvedge::io::npz::{NpzFile, NpzWriter};
use selvedge::types::DType;
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use super::{Scratch, dict, file};

/// Pseudorandom bytes, some of which repeat.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|k| (k * k / 7 % 251) as u8 & if k % 5 == 0 { 0 } else { 0xff }).collect()
}

fn archive(name: &str, members: &[(&str, Vec<u8>)], method: CompressionMethod) -> Scratch {
    let scratch = Scratch::new(name);
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&scratch.0).unwrap());
    for (name, bytes) in members {
        archive.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
    scratch
}

fn message<T: std::fmt::Debug>(result: selvedge::Result<T>) -> String {
    match result {
        Err(error @ (Error::File { .. } | Error::FileNotWritten { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_element_type_there_and_back() {
    for packed in [false, true] {
        let scratch = Scratch::new(&format!("all{packed}.npz"));
        let create = if packed { NpzWriter::compressed } else { NpzWriter::create };
        let mut writer = create(&scratch.0).unwrap();
        let shapes = [&[3, 50][..], &[], &[0, 7], &[1000]];
        let count = |shape: &[usize], dtype: DType| shape.iter().product::<usize>() * dtype.size();
        for dtype in DType::ALL {
            for (index, shape) in shapes.iter().enumerate() {
                writer.begin(&format!("{dtype}/{index}"), dtype, shape).unwrap();
                // In two parts.
                let bytes = bytes(count(shape, dtype));
                let (first, second) = bytes.split_at(bytes.len() / 3);
                writer.write(first).unwrap();
                writer.write(second).unwrap();
            }
        }
        writer.finish().unwrap();
        let mut found = NpzFile::open(&scratch.0).unwrap();
        assert_eq!(found.names().len(), 4 * DType::ALL.len());
        assert_eq!(found.names()[1], "bool/1");
        for dtype in DType::ALL {
            for (index, shape) in shapes.iter().enumerate() {
                let array = found.array(&format!("{dtype}/{index}")).unwrap().with_dtype(dtype).unwrap();
                assert_eq!((array.shape(), array.dtype().unwrap()), (*shape, dtype));
                assert_eq!(array.read().unwrap().as_bytes(), bytes(count(shape, dtype)));
            }
        }
    }
}

#[test]
fn arrays_of_another_writer() {
    let row = file(1, &dict("'<f4'", "False", "(2,)"), &[0, 0, 128, 63, 0, 0, 0, 64]);
    let columns = file(1, &dict("'|u1'", "True", "(2, 3)"), &[1, 4, 2, 5, 3, 6]);
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let members =
            [("x.npy", row.clone()), ("notes.txt", b"hello".to_vec()), ("a/y.npy", columns.clone())];
        let scratch = archive("other.npz", &members, method);
        let mut found = NpzFile::open(&scratch.0).unwrap();
        assert_eq!(found.names(), ["x", "a/y"]);
        assert_eq!(found.array("x").unwrap().read().unwrap().as_slice::<f32>().unwrap(), [1.0, 2.0]);
        let mut array = found.array("a/y").unwrap();
        assert!(array.is_column_major() && array.byte_count() == 6);
        let mut elements = [0; 6];
        array.read_bytes(&mut elements[..4]).unwrap();
        array.read_bytes(&mut elements[4..]).unwrap();
        assert_eq!(elements, [1, 4, 2, 5, 3, 6]);
        drop(array);
        let text = message(found.array("a/y").unwrap().read());
        assert!(text.contains("other.npz: a/y.npy") && text.contains("Fortran"), "{text}");
        let text = message(found.array("z"));
        assert!(text.contains("no array named z") && text.contains("x, a/y"), "{text}");
        assert!(matches!(found.array("x").unwrap().with_dtype(DType::F64), Err(Error::DTypeMismatch { .. })));
    }
}

#[test]
fn members_that_are_no_arrays_or_lie() {
    let short = file(1, &dict("'<f4'", "False", "(3,)"), &[0; 8]);
    let long = file(1, &dict("'<f4'", "False", "(1,)"), &[0; 9]);
    let huge = file(1, &dict("'<f8'", "False", "(1000000, 1000000)"), &[0; 8]);
    let members = [
        ("text.npy", b"hello".to_vec()),
        ("short.npy", short),
        ("long.npy", long),
        ("huge.npy", huge),
        ("empty.npy", Vec::new()),
    ];
    let scratch = archive("lies.npz", &members, CompressionMethod::Deflated);
    let mut found = NpzFile::open(&scratch.0).unwrap();
    for (name, part) in [
        ("text", "hello"),
        ("short", "truncated"),
        ("long", "5 bytes after"),
        ("huge", "8000000000000 bytes"),
        ("empty", "an empty file"),
    ] {
        let text = message(found.array(name));
        assert!(text.contains(part) && text.contains(&format!("lies.npz: {name}.npy")), "{text}");
    }
    // A directory that states 8 TB for the 20 bytes of a header's member.
    let scratch = archive("bomb.npz", &members[3..4], CompressionMethod::Deflated);
    let mut bytes = std::fs::read(&scratch.0).unwrap();
    let entry = bytes.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    bytes[entry + 24..entry + 28].copy_from_slice(&0xf000_0000u32.to_le_bytes());
    std::fs::write(&scratch.0, &bytes).unwrap();
    let text = message(NpzFile::open(&scratch.0).and_then(|mut file| file.array("huge").map(drop)));
    assert!(text.contains("4026531840") && text.contains("1032"), "{text}");
}

/// The fields of a member in the directory.
struct Listed {
    name: &'static str,
    start: usize,
    packed: usize,
    length: usize,
    sum: u32,
}

/// Returns an archive of these bytes with any directory.
fn listed(bytes: &[u8], members: &[Listed]) -> Vec<u8> {
    let mut archive = bytes.to_vec();
    for Listed { name, start, packed, length, sum } in members {
        archive.extend(b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0");
        archive.extend(sum.to_le_bytes());
        archive.extend((*packed as u32).to_le_bytes());
        archive.extend((*length as u32).to_le_bytes());
        archive.extend((name.len() as u16).to_le_bytes());
        archive.extend([0; 12]);
        archive.extend((*start as u32).to_le_bytes());
        archive.extend(name.as_bytes());
    }
    let (start, count) = (bytes.len(), members.len() as u16);
    let size = archive.len() - start;
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    archive.extend((size as u32).to_le_bytes());
    archive.extend((start as u32).to_le_bytes());
    archive.extend([0; 2]);
    archive
}

/// Returns the bytes of one stored member.
fn stored(name: &str, bytes: &[u8], sum: u32) -> Vec<u8> {
    let mut part = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0".to_vec();
    part.extend(sum.to_le_bytes());
    part.extend((bytes.len() as u32).to_le_bytes());
    part.extend((bytes.len() as u32).to_le_bytes());
    part.extend((name.len() as u16).to_le_bytes());
    part.extend([0; 2]);
    part.extend(name.as_bytes());
    part.extend(bytes);
    part
}

/// Returns the checksum of zip archives.
fn sum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

#[test]
fn members_share_no_bytes_and_have_one_name() {
    let array = file(1, &dict("'|u1'", "False", "(3,)"), &[1, 2, 3]);
    let sum = sum(&array);
    let one = stored("x.npy", &array, sum);
    let two = [one.clone(), stored("y.npy", &array, sum)].concat();
    // A member whose stored bytes contain another one.
    let inner = [array.clone(), stored("y.npy", &array, sum)].concat();
    let nested = stored("x.npy", &inner, 0);
    let of = |name, start| Listed { name, start, packed: array.len(), length: array.len(), sum };
    let longer = |name, start, packed| Listed { name, start, packed, length: packed, sum };
    let header = one.len() - array.len();

    let good: [(&str, Vec<u8>, usize); 5] = [
        ("one", listed(&one, &[of("x.npy", 0)]), 1),
        ("two", listed(&two, &[of("x.npy", 0), of("y.npy", one.len())]), 2),
        ("in another order", listed(&two, &[of("y.npy", one.len()), of("x.npy", 0)]), 2),
        // Bytes that belong to no member are harmless, in front (a self-extracting archive) or between.
        ("a gap in front", listed(&two, &[of("y.npy", one.len())]), 1),
        ("no member", listed(&[], &[]), 0),
    ];
    for (what, bytes, count) in good {
        let scratch = Scratch::with("good.npz", &bytes);
        let mut found = NpzFile::open(&scratch.0).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(found.names().len(), count, "{what}");
        for name in found.names() {
            assert_eq!(found.array(&name).unwrap().read().unwrap().as_bytes(), [1, 2, 3], "{what}");
        }
    }
    let prefixed =
        [b"#!/bin/sh\n".to_vec(), listed(&two, &[of("x.npy", 0), of("y.npy", one.len())])].concat();
    let scratch = Scratch::with("prefixed.npz", &prefixed);
    assert_eq!(NpzFile::open(&scratch.0).unwrap().array("y").unwrap().read().unwrap().as_bytes(), [1, 2, 3]);

    let bad: [(&str, Vec<u8>, &[&str]); 8] = [
        (
            "one header for two",
            listed(&one, &[of("x.npy", 0), of("y.npy", 0)]),
            &["y.npy", "x.npy", "the same name"],
        ),
        (
            "within another",
            listed(&nested, &[longer("x.npy", 0, inner.len()), of("y.npy", header + array.len())]),
            &["x.npy and y.npy, which share bytes"],
        ),
        (
            "by one byte",
            listed(&two, &[longer("x.npy", 0, array.len() + 1), of("y.npy", one.len())]),
            &["x.npy and y.npy, which share bytes"],
        ),
        (
            "into the directory",
            listed(&one, &[longer("x.npy", 0, array.len() + 1)]),
            &["x.npy and the directory"],
        ),
        ("another name", listed(&one, &[of("z.npy", 0)]), &["z.npy", "x.npy", "the same name"]),
        ("a longer name", listed(&one, &[of("x.npyx", 0)]), &["x.npyx", "the same name"]),
        ("another case", listed(&one, &[of("X.npy", 0)]), &["X.npy", "the same name"]),
        ("one that is no array", listed(&one, &[of("x.txt", 0)]), &["x.txt", "the same name"]),
    ];
    for (what, bytes, parts) in bad {
        let scratch = Scratch::with("bad.npz", &bytes);
        let text = message(NpzFile::open(&scratch.0));
        for part in parts {
            assert!(text.contains(part), "{what}: '{part}' is not in: {text}");
        }
    }
    // 2,000 names for the same bytes.
    let names: Vec<&'static str> = (0..2000).map(|k| &*format!("a{k}.npy").leak()).collect();
    let members: Vec<Listed> = names.iter().map(|name| of(name, 0)).collect();
    let scratch = Scratch::with("many.npz", &listed(&one, &members));
    assert!(message(NpzFile::open(&scratch.0)).contains("the same name"));
}

#[test]
fn files_that_are_no_archives() {
    for bytes in [&b""[..], b"hello", b"\x93NUMPY\x01\x00", b"PK\x03\x04 and nothing more"] {
        let scratch = Scratch::with("none.npz", bytes);
        let text = message(NpzFile::open(&scratch.0));
        assert!(text.contains("none.npz") && text.contains("zip archive"), "{text}");
    }
    assert!(message(NpzFile::open(std::env::temp_dir())).contains("a folder"));
    assert!(message(NpzFile::open("/no/such/selvedge.npz")).contains("no such file"));
}

/// Returns whether reading gives the array. Otherwise it must give an error, without a panic and with little
/// memory.
fn read_everything(scratch: &Scratch, wanted: &[u8]) -> bool {
    let Ok(mut found) = NpzFile::open(&scratch.0) else { return false };
    let mut all = true;
    for name in found.names() {
        match found.array(&name).and_then(|array| array.read()) {
            // The checksum covers the elements; the header alone could be another's.
            Ok(array) => all &= array.as_bytes() == wanted,
            Err(_) => all = false,
        }
    }
    all
}

#[test]
fn archives_that_are_damaged_anywhere() {
    let elements = bytes(64);
    let member = file(1, &dict("'<f4'", "False", "(4, 4)"), &elements);
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let scratch = archive("whole.npz", &[("x.npy", member.clone())], method);
        let whole = std::fs::read(&scratch.0).unwrap();
        assert!(read_everything(&scratch, &elements));
        let damaged = Scratch::new("damaged.npz");
        for length in 0..whole.len() {
            std::fs::write(&damaged.0, &whole[..length]).unwrap();
            assert!(!read_everything(&damaged, &elements), "{length} bytes of {}", whole.len());
        }
        let mut refused = 0;
        for place in 0..whole.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[place] ^= change;
                std::fs::write(&damaged.0, &bytes).unwrap();
                refused += u32::from(!read_everything(&damaged, &elements));
            }
        }
        // Every bit of the elements and of most fields matters; dates and similar fields do not.
        assert!(refused as usize > whole.len(), "{refused} of {}", whole.len());
    }
}

#[test]
fn writing_is_checked() {
    let scratch = Scratch::new("checked.npz");
    let mut writer = NpzWriter::create(&scratch.0).unwrap();
    writer.begin("x", DType::F32, &[2]).unwrap();
    assert!(matches!(writer.write(&[0; 9]), Err(Error::LengthMismatch { wanted: 8, found: 9, .. })));
    writer.write(&[1; 4]).unwrap();
    assert!(matches!(writer.begin("y", DType::F32, &[2]), Err(Error::LengthMismatch { found: 4, .. })));
    writer.write(&[2; 4]).unwrap();
    for name in ["x", "", "../x", "/x", "a\\b"] {
        let text = writer.begin(name, DType::U8, &[]).unwrap_err().to_string();
        assert!(text.contains("a valid file name"), "{text}");
    }
    writer.finish().unwrap();
    let array = NpzFile::open(&scratch.0).unwrap().array("x").unwrap().read().unwrap();
    assert_eq!(array.as_bytes(), [1, 1, 1, 1, 2, 2, 2, 2]);
    assert!(message(NpzWriter::create(std::env::temp_dir().join("no-such/x.npz"))).contains("a write error"));
}
