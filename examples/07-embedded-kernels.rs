//! The crate's own kernels: which of them a device gets, and why.
//!
//! Tensors use these kernels by themselves. The images are chosen before anything is loaded: `SELVEDGE_ARCH=sm_70` chooses
//! as for an older card, and a driver that is too old is named together with what the image needs.
//!
//! ```text
//! cargo run --example 07-embedded-kernels
//! ```

mod common;

use selvedge::driver::{Device, driver_isa};
use selvedge::images;
use selvedge::tensor::{self, Tensor};
use selvedge::types::DType;

fn embedded_kernels() -> selvedge::Result<()> {
    println!("embedded families: {}", images::families().join(", "));
    // The choice is a function of the device and its driver, so it can be made for a card that is not here.
    for family in ["gather_32", "gemm_simt_f32", "gemm_wgmma_bf16_nn"] {
        for capability in [(7, 5), (9, 0), (12, 0)] {
            match images::select(family, capability, (8, 0)) {
                Ok(image) => println!("a device of {}.{} takes {image}", capability.0, capability.1),
                Err(error) => println!("{error}"),
            }
        }
    }

    let device = Device::new(0)?;
    let image = images::select("gather_32", device.compute_capability(), driver_isa()?)?;
    println!("{device} takes {image}");
    // Loaded once a device; indexing loads it by itself too.
    let module = images::load(&device, "gather_32")?;
    println!("its kernels: {}", module.function_names()?.join(", "));

    let device = tensor::Device::cuda(0)?;
    let table = Tensor::arange(0.0, 12.0, 1.0, DType::F32, &device)?.reshape(&[4, 3])?;
    let rows = Tensor::new([3i64, 0], &device)?;
    println!("rows 3 and 0 of a table:\n{}", table.index_select(0, &rows)?);
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(embedded_kernels)
}
