//! An output is no input of the same run: what is written is borrowed alone.

use selvedge::tensor::{Fused, Tensor};

fn onto_itself(f: &Fused<1>, x: &mut Tensor) -> selvedge::Result<()> {
    f.run_into([&*x], [&mut *x])
}

fn main() {}
