//! Two parts of one tensor, taken one by one, could overlap: they are written one after the other.

use selvedge::tensor::Tensor;

fn overlap(x: &mut Tensor) -> selvedge::Result<()> {
    let mut left = x.slice_mut(0, ..3)?;
    let mut right = x.slice_mut(0, 2..)?;
    left.fill(1.0)?;
    right.fill(2.0)?;
    Ok(())
}

fn main() {}
