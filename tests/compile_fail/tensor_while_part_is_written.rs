//! A tensor is not read, cloned or viewed while a part of it is being written.

use selvedge::tensor::Tensor;

fn read_under_a_writer(x: &mut Tensor) -> selvedge::Result<Tensor> {
    let mut part = x.slice_mut(0, 1..)?;
    let before = x.clone();
    part.fill(0.0)?;
    Ok(before)
}

fn main() {}
