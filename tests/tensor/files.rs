//! Tensors into files and back: every dtype, orders, views, and files that are damaged.

use std::path::PathBuf;

use selvedge::Error;
use selvedge::io::npy::NpyFile;
use selvedge::io::safetensors::SafetensorsFile;
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::{Bool, DType, Slice};

const CPU: Device = Device::cpu();

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("selvedge-tensor-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn numbers(shape: &[usize], dtype: DType) -> Tensor {
    Generator::new(4).normal(0, 30, shape, DType::F32, &CPU).unwrap().cast(dtype).unwrap()
}

#[track_caller]
fn assert_same(found: &Tensor, wanted: &Tensor) {
    assert_eq!((found.dtype(), found.shape()), (wanted.dtype(), wanted.shape()));
    assert_eq!(found.to_bytes().unwrap(), wanted.to_bytes().unwrap());
}

#[test]
fn every_dtype_and_view_there_and_back() {
    for dtype in DType::ALL {
        let scratch = Scratch::new(&format!("{dtype}.npy"));
        let read = || {
            let mut file = NpyFile::open(&scratch.0)?.with_dtype(dtype)?;
            Tensor::read_npy_file(&mut file, &CPU, &mut |_, _| {})
        };
        let map = || {
            let file = NpyFile::open(&scratch.0)?.with_dtype(dtype)?;
            // SAFETY: the file is this test's alone.
            unsafe { Tensor::map_npy_file(&file, &CPU, &mut |_, _| {}) }
        };
        let whole = numbers(&[4, 6], dtype);
        for tensor in [
            whole.clone(),
            whole.transpose(0, 1).unwrap(),
            whole.slice(1, Slice::from(..).step(-2)).unwrap(),
            whole.select(0, 1).unwrap(),
            whole.narrow(0, 0, 0).unwrap(),
            numbers(&[], dtype),
        ] {
            tensor.write_npy(&scratch.0).unwrap();
            assert_same(&read().unwrap(), &tensor);
            assert_same(&map().unwrap(), &tensor);
            if !dtype.is_storage_only() {
                assert_same(&Tensor::read_npy(&scratch.0, &CPU).unwrap(), &tensor);
            }
        }
    }
}

#[test]
fn archives_there_and_back() {
    let (x, y) = (numbers(&[3, 5], DType::F16), numbers(&[7], DType::C64));
    let (mask, none) = (numbers(&[9], DType::Bool), numbers(&[0, 2], DType::I8));
    let arrays = [("x", &x.transpose(0, 1).unwrap()), ("deep/y", &y), ("mask", &mask), ("none", &none)];
    for packed in [false, true] {
        let scratch = Scratch::new(&format!("{packed}.npz"));
        if packed {
            Tensor::write_npz_compressed(&scratch.0, &arrays).unwrap();
        } else {
            Tensor::write_npz(&scratch.0, &arrays).unwrap();
        }
        let found = Tensor::read_npz(&scratch.0, &CPU).unwrap();
        assert_eq!(found.len(), 4);
        for ((name, found), (wanted_name, wanted)) in found.iter().zip(arrays) {
            assert_eq!(name, wanted_name);
            assert_same(found, wanted);
        }
        let whole = std::fs::read(&scratch.0).unwrap();
        for length in (0..whole.len()).step_by(7) {
            std::fs::write(&scratch.0, &whole[..length]).unwrap();
            assert!(matches!(Tensor::read_npz(&scratch.0, &CPU), Err(Error::File { .. })), "{length} bytes");
        }
    }
    let twice = Tensor::write_npz(Scratch::new("twice.npz").0.as_path(), &[("x", &x), ("x", &x)]);
    assert!(twice.unwrap_err().to_string().contains("'x'"));
}

#[test]
fn columns_first_is_a_layout() {
    let scratch = Scratch::new("columns.npy");
    let text = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend([1i16, 4, 2, 5, 3, 6].iter().flat_map(|x| x.to_le_bytes()));
    std::fs::write(&scratch.0, &bytes).unwrap();
    let file = NpyFile::open(&scratch.0).unwrap();
    // SAFETY: the file is this test's alone.
    let mapped = unsafe { Tensor::map_npy_file(&file, &CPU, &mut |_, _| {}) }.unwrap();
    for tensor in [Tensor::read_npy(&scratch.0, &CPU).unwrap(), mapped] {
        assert_eq!((&**tensor.shape(), tensor.layout().strides()), (&[2, 3][..], &[1, 2][..]));
        assert_eq!(tensor.to_vec::<i16>().unwrap(), [1, 2, 3, 4, 5, 6]);
    }
    for length in 0..bytes.len() {
        std::fs::write(&scratch.0, &bytes[..length]).unwrap();
        assert!(matches!(Tensor::read_npy(&scratch.0, &CPU), Err(Error::File { .. })), "{length} bytes");
    }
}

#[test]
fn truth_is_written_as_zeros_and_ones() {
    let scratch = Scratch::new("truth.npy");
    let header = {
        Tensor::from_slice(&[Bool::from(true); 3], &[3], &CPU).unwrap().write_npy(&scratch.0).unwrap();
        let bytes = std::fs::read(&scratch.0).unwrap();
        assert_eq!(bytes[bytes.len() - 3..], [1, 1, 1]);
        bytes[..bytes.len() - 3].to_vec()
    };
    // A byte that another program wrote as true.
    std::fs::write(&scratch.0, [&header[..], &[0, 2, 255]].concat()).unwrap();
    let found = Tensor::read_npy(&scratch.0, &CPU).unwrap();
    found.write_npy(&scratch.0).unwrap();
    assert!(std::fs::read(&scratch.0).unwrap().ends_with(&[0, 1, 1]));
}

#[test]
fn progress_ends_at_the_whole() {
    let scratch = Scratch::new("progress.npy");
    let large = Tensor::zeros(&[40 << 20], DType::U8, &CPU).unwrap();
    let check = |reports: Vec<(u64, u64)>| {
        assert!(
            reports.len() == 3 && reports.is_sorted() && reports[2] == (40 << 20, 40 << 20),
            "{reports:?}"
        );
    };
    let mut reports = Vec::new();
    large.write_npy_with(&scratch.0, &mut |done, all| reports.push((done, all))).unwrap();
    check(std::mem::take(&mut reports));
    let mut file = NpyFile::open(&scratch.0).unwrap();
    Tensor::read_npy_file(&mut file, &CPU, &mut |done, all| reports.push((done, all))).unwrap();
    check(std::mem::take(&mut reports));
    // SAFETY: the file is this test's alone.
    unsafe { Tensor::map_npy_file(&file, &CPU, &mut |done, all| reports.push((done, all))) }.unwrap();
    check(std::mem::take(&mut reports));

    let scratch = Scratch::new("progress.safetensors");
    let tensors = [("large", &large.narrow(0, 0, 30 << 20).unwrap()), ("none", &numbers(&[0], DType::I8))];
    let rest = large.narrow(0, 0, 10 << 20).unwrap();
    let tensors = [tensors[0], tensors[1], ("rest", &rest)];
    Tensor::write_safetensors_with(&scratch.0, &tensors, &[], &mut |done, all| reports.push((done, all)))
        .unwrap();
    check(std::mem::take(&mut reports));
    Tensor::read_safetensors_with(&scratch.0, &CPU, &mut |done, all| reports.push((done, all))).unwrap();
    check(std::mem::take(&mut reports));
    let mut file = SafetensorsFile::open(&scratch.0).unwrap();
    let mut report = |done, all| reports.push((done, all));
    Tensor::read_safetensors_tensor_with(&mut file, "large", &CPU, &mut report).unwrap();
    // SAFETY: the file is this test's alone.
    unsafe { Tensor::map_safetensors_tensor_with(&mut file, "large", &CPU, &mut report) }.unwrap();
    let (half, whole) = (16 << 20, 30 << 20);
    assert_eq!(reports, [(half, whole), (whole, whole), (half, whole), (whole, whole)]);
}

#[test]
fn safetensors_there_and_back() {
    let scratch = Scratch::new("all.safetensors");
    let whole: Vec<_> = DType::ALL
        .into_iter()
        .filter(|dtype| *dtype != DType::C128)
        .map(|dtype| (dtype.name(), numbers(&[4, 6], dtype)))
        .collect();
    let mut tensors: Vec<(&str, Tensor)> =
        whole.iter().map(|(name, tensor)| (*name, tensor.transpose(0, 1).unwrap())).collect();
    tensors.push(("none", numbers(&[0, 2], DType::I8)));
    tensors.push(("one", numbers(&[], DType::BF16)));
    let listed: Vec<(&str, &Tensor)> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    Tensor::write_safetensors(&scratch.0, &listed, &[("format", "pt")]).unwrap();
    let mut found = Tensor::read_safetensors(&scratch.0, &CPU).unwrap();
    found.sort_by_key(|(name, _)| listed.iter().position(|(wanted, _)| wanted == name));
    assert_eq!(found.len(), listed.len());
    let mut file = SafetensorsFile::open(&scratch.0).unwrap();
    assert_eq!(file.metadata()["format"], "pt");
    for ((found_name, found), (name, wanted)) in found.iter().zip(listed) {
        assert_eq!(found_name, name);
        assert_same(found, wanted);
        assert_same(&Tensor::read_safetensors_tensor(&mut file, name, &CPU).unwrap(), wanted);
        // SAFETY: the file is this test's alone.
        assert_same(&unsafe { Tensor::map_safetensors_tensor(&mut file, name, &CPU) }.unwrap(), wanted);
    }

    let refused =
        Tensor::write_safetensors(&scratch.0, &[("x", &numbers(&[2], DType::C128))], &[]).unwrap_err();
    assert!(refused.to_string().contains("'x'"), "{refused}");
    // The file that was there stays.
    assert!(SafetensorsFile::open(&scratch.0).is_ok());
    let header = r#"{"small":{"dtype":"F8_E8M0","shape":[1],"data_offsets":[0,1]}}"#;
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0]].concat();
    std::fs::write(&scratch.0, bytes).unwrap();
    let message = Tensor::read_safetensors(&scratch.0, &CPU).unwrap_err().to_string();
    assert!(message.contains("'small'") && message.contains("F8_E8M0"), "{message}");
}

#[test]
fn paths_that_are_wrong() {
    let message = |result: selvedge::Result<Tensor>| result.unwrap_err().to_string();
    assert!(message(Tensor::read_npy("/no/such/selvedge.npy", &CPU)).contains("no such file"));
    assert!(
        Tensor::read_npz("/no/such/selvedge.npz", &CPU).unwrap_err().to_string().contains("no such file")
    );
    let tensor = numbers(&[2], DType::F32);
    let text = tensor.write_npy("/no/such/folder/x.npy").unwrap_err().to_string();
    assert!(text.contains("8 bytes") && text.contains("f32[2]"), "{text}");
    // Raw bytes of one byte are no dtype until it is named.
    let scratch = Scratch::new("unnamed.npy");
    numbers(&[2], DType::F8E4M3).write_npy(&scratch.0).unwrap();
    assert!(message(Tensor::read_npy(&scratch.0, &CPU)).contains("f8e4m3"));
}
