//! Products with bias and gelu in the same kernel, beside cuBLASLt's fused epilogue.

use half::bf16;
use selvedge::driver::{DeviceBuffer, Stream};
use selvedge::gemm::{Activation, Epilogue, gemm_with};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::cublas::{Call, Kind};
use crate::harness::cublaslt::CublasLt;
use crate::harness::report::Failure;
use crate::harness::turns::Goal;
use crate::pair::{Shape, Sides, print_speeds};
use crate::shapes::Part;

/// A GPT's feed-forward layers for 65536 tokens, and a square one.
const SHAPES: [(usize, usize, usize); 3] = [(65536, 3072, 768), (65536, 768, 3072), (8192, 4096, 4096)];

/// Each shape without aux and with it, which training needs.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let title = "Products with bias and gelu fused, bf16, beside cuBLASLt's epilogue";
    let mut part = Part::new(bare, options, "gemm_fused", title)?;
    let library = CublasLt::open(bare, &part.sides.cublas.path)?;
    let goal = Some(Goal(1.10, 1.0));
    for keeps in [false, true] {
        for (m, n, k) in SHAPES {
            let shape = Shape::new(m, n, k);
            let pairs = times(&part.sides, &library, options, shape, keeps)?;
            print_speeds(shape, &pairs);
            let kept = if keeps { ", its argument kept" } else { "" };
            part.add(&format!("bias + gelu{kept}: {m} x {n} x {k}"), &pairs, goal)?;
        }
    }
    part.finish()
}

/// Microseconds (own, reference) of one product in each round, after results and aux were compared.
fn times(
    sides: &Sides<'_>,
    library: &CublasLt,
    options: &Options,
    shape: Shape,
    keeps: bool,
) -> Result<Vec<(f64, f64)>, Failure> {
    let Shape { m, n, k, a_transposed, b_transposed, batch, .. } = shape;
    let (product, stream) = (shape.product(), &sides.stream);
    let [a, b] = sides.numbers::<bf16>(m * k, k * n)?;
    let [bias, _] = sides.numbers::<bf16>(n, 1)?;
    let results = || -> selvedge::Result<[DeviceBuffer<bf16>; 2]> {
        Ok([stream.zeros(m * n)?, stream.zeros(if keeps { m * n } else { 0 })?])
    };
    let ([mut own, mut own_kept], [other, other_kept]) = (results()?, results()?);
    stream.synchronize()?;

    let multiply = |stream: &Stream, _: usize| {
        let mut epilogue = Epilogue::new().bias_of_columns(&bias).activation(Activation::GeluTanh);
        if keeps {
            epilogue = epilogue.aux(&mut own_kept);
        }
        gemm_with::<bf16, bf16>(stream, &product, 1.0, &a, &b, 0.0, &mut own, epilogue)
    };
    let (operand, result) = (Kind::BF16, Kind::BF16);
    let call = Call { m, n, k, a_transposed, b_transposed, batch, operand, result };
    let kept = keeps.then(|| other_kept.address());
    let prepared = library.prepare(&call, bias.address(), kept)?;
    let reference = |_: usize| {
        let addresses = [a.address(), b.address(), other.address()];
        // SAFETY: the buffers hold the call's matrices, and live until the stream is idle.
        unsafe { library.multiply(sides.bare, &prepared, addresses) }
    };
    let pairs = sides.in_graphs(options.turns(3, 22), shape, multiply, reference)?;
    sides.compare(shape, &own, &other)?;
    if keeps {
        sides.compare(shape, &own_kept, &other_kept)?;
    }
    Ok(pairs)
}
