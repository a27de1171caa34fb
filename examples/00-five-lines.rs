//! Tensors in five lines: a product and a fused expression. The code of the README.
//!
//! ```text
//! cargo run --example 00-five-lines
//! ```

use selvedge::tensor::fuse;
use selvedge::{Device, Tensor};

fn main() -> selvedge::Result<()> {
    let device = Device::best();
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]], &device)?;
    let weights = Tensor::new([[0.5f32, -1.0], [0.25, 2.0]], &device)?;
    let y = fuse([&x.matmul(&weights)?], |[z]| (z * 2.0 - 3.0).relu())?;
    println!("{y}");
    Ok(())
}
