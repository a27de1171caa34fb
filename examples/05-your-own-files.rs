//! A kernel on `.npy` files: read, upload, launch, download, write. `selvedge run` does the same from the shell.
//!
//! ```text
//! cargo run --features io --example 05-your-own-files -- x.npy y.npy result.npy
//! ```
//!
//! Without arguments it makes two files of its own first, in the folder for temporary files.

mod common;

use std::path::PathBuf;

use selvedge::driver::{Device, LaunchConfig};
use selvedge::io::npy;

fn add_files() -> selvedge::Result<()> {
    let [x_path, y_path, result_path] = paths()?;
    let (x, y) = (npy::read(&x_path)?, npy::read(&y_path)?);
    let (x_elements, y_elements) = (x.as_slice::<f32>()?, y.as_slice::<f32>()?);
    if x.shape() != y.shape() {
        println!("{x:?} and {y:?} have different shapes");
        return Ok(());
    }

    let device = Device::new(0)?;
    let stream = device.stream()?;
    let saxpy = device.load(include_bytes!("saxpy/saxpy.ptx"))?.function("saxpy")?;
    let (x_buffer, y_buffer) = (stream.upload(x_elements)?, stream.upload(y_elements)?);
    let mut out = stream.zeros::<f32>(x.len())?;
    let (config, length) = (LaunchConfig::for_elements(x.len()), x.len() as u32);
    // SAFETY: saxpy(const float *x, const float *y, float *out, float a, unsigned n) stays below n, the length of each.
    unsafe { saxpy.launch(&stream, config, (&x_buffer, &y_buffer, &mut out, 1.0f32, length))? };
    npy::write_slice(&result_path, &stream.download(&out)?, x.shape())?;
    println!("{} holds the sum of {x:?} and {y:?}", result_path.display());
    Ok(())
}

fn paths() -> selvedge::Result<[PathBuf; 3]> {
    let given: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if let Ok(paths) = given.try_into() {
        return Ok(paths);
    }
    let paths = ["x.npy", "y.npy", "result.npy"].map(|name| std::env::temp_dir().join(name));
    let elements: Vec<f32> = (0..600).map(|index| index as f32).collect();
    npy::write_slice(&paths[0], &elements, &[20, 30])?;
    npy::write_slice(&paths[1], &elements, &[20, 30])?;
    println!("made {} and {}", paths[0].display(), paths[1].display());
    Ok(paths)
}

fn main() -> std::process::ExitCode {
    common::run(add_files)
}
