//! `.npy` files (others in `npz` and `safetensors`): round trips of every element type, every version of the
//! header, and every kind of refused file.
//!
//! The tests build refused files byte by byte, as a broken or foreign writer would leave them. Each must
//! return an error that names what was found and what was wanted.

use std::path::PathBuf;

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::Error;
use selvedge::io::{HostArray, npy};
use selvedge::types::{Bool, DType, Element, F8E4M3, F8E5M2};

mod headers;
mod npz;
mod safetensors;
mod writing;

/// A file that is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("selvedge-io-{}-{name}", std::process::id())))
    }

    fn with(name: &str, bytes: &[u8]) -> Scratch {
        let scratch = Scratch::new(name);
        std::fs::write(&scratch.0, bytes).unwrap();
        scratch
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns a file of this version with a header text and bytes of elements.
fn file(version: u8, text: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((text.len() as u16).to_le_bytes()),
        _ => bytes.extend((text.len() as u32).to_le_bytes()),
    }
    bytes.extend(text.as_bytes());
    bytes.extend(elements);
    bytes
}

fn dict(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}    \n")
}

/// Returns the error for these bytes, which must name the file.
fn refusal(name: &str, bytes: &[u8]) -> String {
    let scratch = Scratch::with(name, bytes);
    match npy::read(&scratch.0) {
        Err(error @ Error::File { .. }) => {
            let message = error.to_string();
            assert!(message.contains(name), "{message}");
            assert!(message.contains("found") && message.contains("wanted"), "{message}");
            message
        }
        other => panic!("{name}: {other:?}"),
    }
}

#[track_caller]
fn assert_refused(name: &str, bytes: &[u8], parts: &[&str]) {
    let message = refusal(name, bytes);
    for part in parts {
        assert!(message.contains(part), "{name}: '{part}' is not in: {message}");
    }
}

fn round_trip<T: Element>(values: &[T]) {
    let scratch = Scratch::new(&format!("{}.npy", T::DTYPE));
    for shape in [vec![values.len()], vec![2, values.len() / 2], vec![values.len(), 1, 1]] {
        npy::write(&scratch.0, &HostArray::from_slice(values, &shape).unwrap()).unwrap();
        let array = npy::read_as(&scratch.0, T::DTYPE).unwrap();
        assert_eq!(array.dtype(), T::DTYPE);
        assert_eq!(array.shape(), shape);
        // Bits, so that the sign of zero and the payload of a NaN count.
        assert_eq!(array.as_bytes(), bytemuck::cast_slice::<T, u8>(values));
        assert_eq!(array.as_slice::<T>().unwrap().len(), values.len());

        let direct = std::fs::read(&scratch.0).unwrap();
        assert_eq!((direct.len() - array.as_bytes().len()) % 16, 0, "the elements are not aligned");
        npy::write_slice(&scratch.0, values, &shape).unwrap();
        assert_eq!(std::fs::read(&scratch.0).unwrap(), direct);
    }
    // One element without a dimension, and none.
    npy::write_slice(&scratch.0, &values[..1], &[]).unwrap();
    assert!(npy::read_as(&scratch.0, T::DTYPE).unwrap().shape().is_empty());
    npy::write_slice::<T>(&scratch.0, &[], &[3, 0, 2]).unwrap();
    let empty = npy::read_as(&scratch.0, T::DTYPE).unwrap();
    assert!(empty.is_empty());
    assert_eq!(empty.shape(), [3, 0, 2]);
}

#[test]
fn every_element_type_there_and_back() {
    round_trip(&[true, false, false, true].map(Bool::from));
    round_trip(&[0u8, 1, 127, u8::MAX]);
    round_trip(&[0i8, -1, i8::MIN, i8::MAX]);
    round_trip(&[0u16, 1, 0x1234, u16::MAX]);
    round_trip(&[0i16, -1, i16::MIN, i16::MAX]);
    round_trip(&[0u32, 1, 0x1234_5678, u32::MAX]);
    round_trip(&[0i32, -1, i32::MIN, i32::MAX]);
    round_trip(&[0u64, 1, 0x0123_4567_89ab_cdef, u64::MAX]);
    round_trip(&[0i64, -1, i64::MIN, i64::MAX]);
    round_trip(&[0.0, -0.0, 65504.0, f32::NAN].map(f16::from_f32));
    round_trip(&[0.0, -0.0, 3e38, f32::NAN].map(bf16::from_f32));
    round_trip(&[0.0f32, -0.0, f32::MIN_POSITIVE / 2.0, f32::NAN]);
    round_trip(&[0.0f64, -0.0, f64::INFINITY, f64::NAN]);
    round_trip(
        &[(0.0f32, -0.0), (1.5, -2.5), (f32::NAN, 1.0), (1.0, 0.0)].map(|(re, im)| Complex::new(re, im)),
    );
    round_trip(
        &[(0.0f64, -0.0), (1.5, -2.5), (f64::NAN, 1.0), (1.0, 0.0)].map(|(re, im)| Complex::new(re, im)),
    );
    round_trip(&[0, 1, 0x7f, 0xff].map(F8E4M3::from_bits));
    round_trip(&[0, 1, 0x7c, 0xff].map(F8E5M2::from_bits));
}

#[test]
fn every_version_of_the_header() {
    let elements: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    for version in 1..=3 {
        // NumPy pads with spaces to 64 bytes; other writers pad otherwise, reorder the keys, or omit the last
        // comma.
        for text in [
            dict("'<f4'", "False", "(2,)"),
            "{\"shape\": (2,), \"fortran_order\": False, \"descr\": \"<f4\"}".to_owned(),
            dict("'<f4'", "True", "(2,)"),
            dict("'<f4'", "True", "(1, 2, 1)"),
            format!("{}{}", dict("'<f4'", "False", "(2, 1)").trim_end(), " ".repeat(3000)),
        ] {
            let scratch = Scratch::with(&format!("version{version}.npy"), &file(version, &text, &elements));
            let array = npy::read(&scratch.0).unwrap();
            assert_eq!(array.as_slice::<f32>().unwrap(), [1.0, 2.0], "{text}");
        }
    }
    let single = file(1, &dict("'>u1'", "False", "()"), &[7]);
    let scratch = Scratch::with("onebyte.npy", &single);
    assert_eq!(npy::read(&scratch.0).unwrap().as_slice::<u8>().unwrap(), [7], "one byte has no order");
}

#[test]
fn headers_that_numpy_reads_and_no_longer_writes() {
    let long = if size_of::<std::ffi::c_long>() == 8 { DType::I64 } else { DType::I32 };
    for (descr, dtype) in [
        ("f4", DType::F32),
        ("=f4", DType::F32),
        ("|f4", DType::F32),
        ("f", DType::F32),
        ("float32", DType::F32),
        ("<single", DType::F32),
        ("d", DType::F64),
        ("float64", DType::F64),
        ("float", DType::F64),
        ("e", DType::F16),
        ("=f2", DType::F16),
        ("?", DType::Bool),
        ("|?", DType::Bool),
        (">?", DType::Bool),
        ("bool", DType::Bool),
        ("b1", DType::Bool),
        ("b", DType::I8),
        ("B", DType::U8),
        ("u1", DType::U8),
        (">i1", DType::I8),
        ("h", DType::I16),
        ("=u2", DType::U16),
        ("i", DType::I32),
        ("I", DType::U32),
        ("l", long),
        ("q", DType::I64),
        ("=u8", DType::U64),
        ("F", DType::C64),
        ("=c16", DType::C128),
        ("complex128", DType::C128),
    ] {
        for (shape, elements) in
            [("(2,)", 2), ("(2L,)", 2), ("(1L, 2L)", 2), ("(3, 1L,)", 3), ("()", 1), ("(0L,)", 0)]
        {
            for quote in ['\'', '"'] {
                let bytes: Vec<u8> = (0..elements * dtype.size()).map(|byte| (byte % 2) as u8).collect();
                let text = dict(&format!("{quote}{descr}{quote}"), "False", shape);
                let scratch = Scratch::with("dialect.npy", &file(1, &text, &bytes));
                let array = npy::read(&scratch.0).unwrap_or_else(|error| panic!("{text}: {error}"));
                assert_eq!((array.dtype(), array.as_bytes()), (dtype, &bytes[..]), "{text}");
            }
        }
    }
    // NumPy refuses these too, or they are not plain types of this crate.
    for (descr, part) in [
        ("'>f4'", "big-endian"),
        ("'>d'", "big-endian"),
        ("'f3'", "header"),
        ("''", "header"),
        ("'float33'", "header"),
        ("'g'", "header"),
        ("'O'", "header"),
        ("'M8[ns]'", ""),
        ("[('x', '<f4')]", "structured"),
    ] {
        assert_refused("odd.npy", &file(1, &dict(descr, "False", "(1,)"), &[0; 4]), &[part]);
    }
    for shape in ["(2LL,)", "(2l,)", "(L2,)", "(L,)", "(2 L,)", "(2.0L,)", "(-2L,)"] {
        assert_refused("long.npy", &file(1, &dict("'u1'", "False", shape), &[0; 2]), &["header"]);
    }
    // A key that is not an element type stays unchanged.
    let text = "{'descr': 'f4', 'fortran_order': False, 'shape': (1,), }";
    let padded = format!("{text}{}\n", " ".repeat(64));
    let scratch = Scratch::with("padded.npy", &file(2, &padded, &1.5f32.to_le_bytes()));
    assert_eq!(npy::read(&scratch.0).unwrap().as_slice::<f32>().unwrap(), [1.5]);
}

#[test]
fn types_that_numpy_has_no_name_for() {
    let scratch =
        Scratch::with("raw2.npy", &file(1, &dict("'<V2'", "False", "(2,)"), &[0x80, 0x3f, 0x00, 0x40]));
    let array = npy::read(&scratch.0).unwrap();
    assert_eq!(array.as_slice::<bf16>().unwrap(), [1.0, 2.0].map(bf16::from_f32));
    assert!(matches!(npy::read_as(&scratch.0, DType::F16), Err(Error::DTypeMismatch { .. })));

    let scratch = Scratch::with("view.npy", &file(1, &dict("'<u2'", "False", "(1,)"), &[0x80, 0x3f]));
    assert_eq!(npy::read_as(&scratch.0, DType::BF16).unwrap().as_slice::<bf16>().unwrap(), [bf16::ONE]);

    let raw1 = file(1, &dict("'|V1'", "False", "(2,)"), &[1, 2]);
    let scratch = Scratch::with("raw1.npy", &raw1);
    assert_eq!(npy::read_as(&scratch.0, DType::F8E5M2).unwrap().as_bytes(), [1, 2]);
    assert_refused("unnamed.npy", &raw1, &["V1", "f8e4m3"]);
}

#[test]
fn a_dtype_that_does_not_fit() {
    let scratch = Scratch::with("mismatch.npy", &file(1, &dict("'<f8'", "False", "(1,)"), &[0; 8]));
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::F64) {
        let message = npy::read_as(&scratch.0, dtype).unwrap_err().to_string();
        assert!(message.contains(dtype.name()) && message.contains("f64"), "{message}");
        assert!(message.contains("mismatch.npy"), "{message}");
    }
}

#[test]
fn files_that_are_something_else() {
    assert_refused("empty.npy", b"", &["an empty file", "an .npy file"]);
    assert_refused("text.npy", b"1.0, 2.0, 3.0\n", &["1.0, 2.0"]);
    assert_refused("zip.npy", b"PK\x03\x04rest of an archive", &["zip", ".npz"]);
    assert_refused("pickle.npy", b"\x80\x04\x95rest of a pickle", &["pickle"]);
    assert_refused("version.npy", b"\x93NUMPY\x04\x00\x10\x00\x00\x00", &["version 4.0", "1.0, 2.0 or 3.0"]);
    let message = npy::read(std::env::temp_dir().join("selvedge-is-not-there.npy")).unwrap_err().to_string();
    assert!(message.contains("no such file"), "{message}");
    let message = npy::read(std::env::temp_dir()).unwrap_err().to_string();
    assert!(message.contains("a folder"), "{message}");
    #[cfg(unix)]
    assert!(npy::read("/dev/zero").unwrap_err().to_string().contains("a pipe or a device"));
}

#[test]
fn truncated_at_every_byte() {
    let whole = file(1, &dict("'<f4'", "False", "(2, 2)"), &[0; 16]);
    let header = whole.len() - 16;
    for length in 1..whole.len() {
        let message = refusal("truncated.npy", &whole[..length]);
        assert!(message.contains("truncated"), "{length}: {message}");
        if length >= header {
            let found = format!("{} bytes of elements", length - header);
            assert!(message.contains(&found) && message.contains("16 bytes for f32[2, 2]"), "{message}");
        }
    }
}

#[test]
fn more_bytes_than_the_header_says() {
    let bytes = file(1, &dict("'<f4'", "False", "(2, 2)"), &[0; 19]);
    assert_refused("trailing.npy", &bytes, &["3 bytes after the elements", "exactly 16 bytes", "f32[2, 2]"]);
    assert_refused(
        "none.npy",
        &file(1, &dict("'<f4'", "False", "(0,)"), &[0; 4]),
        &["4 bytes after", "exactly 0"],
    );
}

#[test]
fn elements_that_are_not_taken() {
    for descr in ["'>f4'", "'>i8'", "'>c16'"] {
        let message = refusal("big.npy", &file(1, &dict(descr, "False", "(1,)"), &[0; 16]));
        assert!(
            message.contains("big-endian") && message.contains(descr) && message.contains("little-endian"),
            "{message}"
        );
    }
    let fortran = file(1, &dict("'<f4'", "True", "(2, 2)"), &[0; 16]);
    assert_refused("fortran.npy", &fortran, &["Fortran", "[2, 2]", "row-major", "ascontiguousarray"]);
    let object = file(1, &dict("'|O'", "False", "(1,)"), b"\x80\x04N.");
    assert_refused("object.npy", &object, &["Python objects", "plain dtype"]);
    let fields = file(1, &dict("[('x', '<f4'), ('y', '<f4', (2,))]", "False", "(1,)"), &[0; 12]);
    assert_refused("fields.npy", &fields, &["structured dtype with the fields x, y", "array['name']"]);
    for descr in ["'<f16'", "'<c32'", "'<U4'", "'|S3'", "'|V8'", "'<M8[ns]'"] {
        let bytes = file(1, &dict(descr, "False", "(1,)"), &[0; 16]);
        assert_refused("dtype.npy", &bytes, &["NumPy's", "one of bool, u8"]);
    }
}

#[test]
fn headers_that_lie() {
    // The reader checks the file's length first and never allocates the claimed sizes.
    let huge = file(1, &dict("'<f8'", "False", "(1000000, 1000000)"), &[0; 8]);
    assert_refused(
        "huge.npy",
        &huge,
        &["8 bytes of elements", "8000000000000 bytes", "f64[1000000, 1000000]"],
    );
    for shape in [
        "(4294967296, 4294967296)",
        "(18446744073709551615,)",
        "(99999999999999999999999999,)",
        "(0, 4294967296, 4294967296, 4294967296)",
        "(9223372036854775807, 1)",
    ] {
        let message = refusal("overflow.npy", &file(1, &dict("'<f8'", "False", shape), &[]));
        assert!(message.contains("cannot be counted") || message.contains("at most"), "{shape}: {message}");
    }
    let mut size = file(2, &dict("'<f8'", "False", "(1,)"), &[0; 8]);
    size[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_refused("size.npy", &size, &["truncated", "4294967307 bytes for the header"]);
    let long = format!("{}{}", dict("'<f8'", "False", "(1,)").trim_end(), " ".repeat(20_000));
    assert_refused("long.npy", &file(2, &long, &[0; 8]), &["a header of 20", "at most 10000"]);
}

#[test]
fn headers_that_are_no_dict() {
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(4000), close.repeat(4000));
    for text in [
        "".to_owned(),
        "\n".to_owned(),
        "nonsense".to_owned(),
        "{}".to_owned(),
        "(1, 2)".to_owned(),
        "{'descr': '<f4'}".to_owned(),
        "{'descr': '<f4', 'fortran_order': False}".to_owned(),
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)".to_owned(),
        "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}".to_owned(),
        dict("'<f4'", "0", "(1,)"),
        dict("'<f4'", "False", "1"),
        dict("'<f4'", "False", "(-1,)"),
        dict("'<f4'", "False", "(1.5,)"),
        dict("'<f4'", "False", "(0x10,)"),
        dict("'<f4'", "False", "(1_0,)"),
        dict("'<f4'", "False", "(1+1,)"),
        dict("'<f4'", "False", "('1',)"),
        dict("'<'", "False", "(1,)"),
        dict("'<f1'", "False", "(1,)"),
        dict("'<\\x664'", "False", "(1,)"),
        dict("'''<f4'''", "False", "(1,)"),
        dict("None", "False", "(1,)"),
        dict("'<é4'", "False", "(1,)"),
        nested("(", ")"),
        nested("[", "]"),
        nested("{", "}"),
        nested("{1:", "}"),
    ] {
        let message = refusal("nodict.npy", &file(1, &text, &[0; 4]));
        assert!(message.contains("a header"), "{text}: {message}");
    }
    let mut latin = file(1, &dict("'<f4'", "False", "(1,)"), &[0; 4]);
    latin[14] = 0xe9;
    assert_refused("latin.npy", &latin, &["a header that cannot be read"]);
}

#[test]
fn every_byte_of_the_header_may_be_wrong() {
    // The result must be an error or an array, in little time and memory.
    let whole = file(1, &dict("'<f4'", "False", "(2, 3)"), &[0; 24]);
    let scratch = Scratch::new("flipped.npy");
    for position in 0..whole.len() - 24 {
        for value in [0, b'0', b'9', b'(', b'[', b'{', b'\'', b'"', b'>', b'\\', 0xff] {
            let mut bytes = whole.clone();
            bytes[position] = value;
            std::fs::write(&scratch.0, &bytes).unwrap();
            if let Ok(array) = npy::read(&scratch.0) {
                assert_eq!(array.as_bytes().len(), 24);
            }
        }
    }
}

#[test]
fn a_path_that_cannot_be_written() {
    let array = HostArray::from_slice(&[1u8, 2], &[2]).unwrap();
    let path = std::env::temp_dir().join("selvedge-no-such-folder").join("out.npy");
    let message = npy::write(path, &array).unwrap_err().to_string();
    assert!(
        message.contains("out.npy") && message.contains("2 bytes") && message.contains("u8[2]"),
        "{message}"
    );
    assert!(matches!(
        npy::write_slice("never.npy", &[1u8; 3], &[2]),
        Err(Error::LengthMismatch { wanted: 2, found: 3, .. })
    ));
}

#[test]
fn progress_ends_at_the_whole() {
    let scratch = Scratch::new("progress.npy");
    npy::write_slice(&scratch.0, &vec![1u8; 20 << 20], &[20 << 20]).unwrap();
    let mut reports = Vec::new();
    npy::NpyFile::open(&scratch.0)
        .unwrap()
        .read_with(&mut |done, total| reports.push((done, total)))
        .unwrap();
    assert!(reports.len() > 1 && reports.is_sorted());
    assert_eq!(reports.last(), Some(&(20 << 20, 20 << 20)));
}

#[test]
fn elements_as_they_lie() {
    let scratch =
        Scratch::with("columns.npy", &file(1, &dict("'|i1'", "True", "(2, 3)"), &[1, 4, 2, 5, 3, 6]));
    let mut columns = npy::NpyFile::open(&scratch.0).unwrap();
    assert!(columns.is_column_major() && columns.byte_count() == 6 && columns.shape() == [2, 3]);
    for _ in 0..2 {
        let mut elements = columns.elements().unwrap();
        let (mut first, mut second) = ([0; 4], [0; 2]);
        elements.read(&mut first).unwrap();
        elements.read(&mut second).unwrap();
        assert_eq!((first, second), ([1, 4, 2, 5], [3, 6]));
        assert!(elements.read(&mut [0]).unwrap_err().to_string().contains("columns.npy"));
    }
    // SAFETY: no other code knows the file.
    assert_eq!(unsafe { columns.map() }.unwrap()[..], [1, 4, 2, 5, 3, 6]);
    let empty = Scratch::with("empty_map.npy", &file(1, &dict("'|i1'", "False", "(0,)"), &[]));
    // SAFETY: as above.
    assert!(unsafe { npy::NpyFile::open(&empty.0).unwrap().map() }.unwrap().is_empty());
}

#[test]
fn a_file_in_parts() {
    let scratch = Scratch::new("parts.npy");
    let mut writer = npy::NpyWriter::create(&scratch.0, DType::I16, &[3]).unwrap();
    writer.write(&[1, 0, 2]).unwrap();
    assert!(matches!(writer.write(&[0; 4]), Err(Error::LengthMismatch { wanted: 3, found: 4, .. })));
    writer.write(&[0, 3, 0]).unwrap();
    writer.finish().unwrap();
    assert_eq!(npy::read(&scratch.0).unwrap().as_slice::<i16>().unwrap(), [1, 2, 3]);
    let writer = npy::NpyWriter::create(&scratch.0, DType::I16, &[3]).unwrap();
    assert!(matches!(writer.finish(), Err(Error::LengthMismatch { found: 6, .. })));
}
