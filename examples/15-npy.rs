//! Tensors in NumPy's files.
//!
//! ```text
//! cargo run --release --features io --example 15-npy                   # files of its own
//! cargo run --release --features io --example 15-npy -- x.npy y.npz    # yours: what they hold
//! ```

mod common;

use std::path::Path;

use selvedge::io::npy::NpyFile;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

fn files() -> selvedge::Result<()> {
    let device = Device::best();
    let paths: Vec<String> = std::env::args().skip(1).collect();
    for path in &paths {
        show(Path::new(path), &device)?;
    }
    if !paths.is_empty() {
        return Ok(());
    }
    let folder = std::env::temp_dir();
    let name = |kind: &str| folder.join(format!("selvedge-example-{}.{kind}", std::process::id()));
    let (single, several) = (name("npy"), name("npz"));
    let x = Tensor::arange(0, 12, 1, DType::F32, &device)?.reshape(&[3, 4])?;
    // A view is written as what it shows.
    x.transpose(0, 1)?.write_npy(&single)?;
    let roots = x.sqrt()?;
    Tensor::write_npz(&several, &[("x", &x), ("roots", &roots)])?;
    for path in [&single, &several] {
        show(path, &device)?;
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn show(path: &Path, device: &Device) -> selvedge::Result<()> {
    println!("{}", path.display());
    if path.extension().is_some_and(|kind| kind == "npz") {
        for (name, tensor) in Tensor::read_npz(path, device)? {
            println!("{name}\n{tensor}");
        }
        return Ok(());
    }
    // The header is checked before anything is read; the elements go to the device in chunks.
    let mut file = NpyFile::open(path)?;
    let mut printed = 0;
    let tensor = Tensor::read_npy_file(&mut file, device, &mut |done, total| {
        if done - printed > 1 << 28 {
            printed = done;
            println!("{} of {} MiB", done >> 20, total >> 20);
        }
    })?;
    println!("{tensor}");
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(files)
}
