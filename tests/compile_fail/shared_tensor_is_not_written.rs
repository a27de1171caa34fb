//! A shared tensor is not written: in place takes `&mut`, and a clone to write is made by name.

use selvedge::tensor::Tensor;

fn write(x: &Tensor) -> selvedge::Result<()> {
    x.in_place().add(1.0)?;
    Ok(())
}

fn main() {}
