//! Products of tensors: matrices, vectors and batches, in views that nothing is copied for.
//!
//! It runs on the first device, or on the CPU where there is none. On a device `SELVEDGE_GEMM` asks for an engine: `own` (as
//! where it is not set), `auto`, `cublas` or one by its name; `selvedge explain matmul 512 512 512 f32` says what that means.

use selvedge::gemm::{Activation, DeviceProperties, Plan, Product};
use selvedge::tensor::{Device, Matmul, Tensor};
use selvedge::types::DType;

fn main() -> selvedge::Result<()> {
    let device = Device::best();
    println!("on {device}");

    // A matrix times its transpose, which is a view; and times a vector.
    let a = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &device)?;
    let x = Tensor::new([1.0f32, 0.0, -1.0], &device)?;
    println!("a aᵀ = {}", a.matmul(&a.transpose(0, 1)?)?);
    println!("a x = {}", a.gemv(&x)?);
    println!("x · x = {}, x outer x = {}", x.dot(&x)?, x.outer(&x)?);

    // Eight products at once: the left side is one of a batch, the right side is shared by all.
    let batch = Tensor::ones(&[8, 64, 32], DType::BF16, &device)?;
    let weights = Tensor::full(&[32, 16], 0.5, DType::BF16, &device)?;
    let products = batch.matmul(&weights)?;
    println!("{} times {} is {}", batch.shape(), weights.shape(), products.shape());

    // Sums as they are added, in f32; scaled; and added to what is there.
    let mut sums = Matmul::new().alpha(0.1).result(DType::F32).of(&batch, &weights)?;
    Matmul::new().add_to(&mut sums, -1.0, &batch, &weights)?;
    println!("16 - 1.6 = {}", sums.select(0, 0)?.select(0, 0)?.select(0, 0)?);

    // A layer: a bias and an activation are part of the product, which is rounded once. A gradient needs the
    // pre-activation, so a product can store it (aux); the next product adds the residual beside the layer.
    let bias = Tensor::arange(-4, 12, 1, DType::BF16, &device)?;
    let tokens = Tensor::full(&[4, 32], 0.125, DType::BF16, &device)?;
    let layer = Matmul::new().bias(&bias).activation(Activation::GeluTanh);
    let (after, before) = layer.of_with_aux(&tokens, &weights)?;
    let first = |x: &Tensor| x.select(0, 0)?.narrow(0, 0, 4);
    println!("gelu of {} is {}", first(&before)?, first(&after)?);
    let back = Tensor::full(&[16, 32], 0.5, DType::BF16, &device)?;
    let sum = Matmul::new().residual(&tokens).of(&before, &back)?;
    println!("with the tokens added: {}", first(&sum)?);

    // Shapes that do not meet say both.
    if let Err(error) = a.matmul(&a) {
        println!("{error}");
    }

    // Explains the engine that an H200 would run; this needs no device.
    let product = Product::new(4096, 4096, 4096);
    println!("{}", Plan::explain(&product, DType::BF16, DType::BF16, DeviceProperties::reference((9, 0)))?);
    Ok(())
}
