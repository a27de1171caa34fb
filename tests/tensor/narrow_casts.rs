//! Casts to f16 and bf16 within expressions and row programs: each gives a number of the dtype.

use selvedge::fuse::Expr;
use selvedge::tensor::{Device, Fused, Tensor};
use selvedge::types::DType;

const CPU: Device = Device::cpu();

/// A function of an expression and a dtype, and the same by tensors, whose every step is rounded.
type Case =
    (&'static str, for<'g> fn(Expr<'g>, DType) -> Expr<'g>, fn(&Tensor, DType) -> selvedge::Result<Tensor>);

const CASES: &[Case] = &[
    ("down and up", |x, dtype| x.cast(dtype).cast(DType::F32), |x, dtype| x.cast(dtype)?.cast(DType::F32)),
    ("down, in a sum", |x, dtype| x.cast(dtype) + x, |x, dtype| x.cast(dtype)? + x),
    ("down, the rest", |x, dtype| x - x.cast(dtype), |x, dtype| x - x.cast(dtype)?),
    (
        "down twice",
        |x, dtype| x.cast(dtype).cast(DType::F16).cast(DType::F64),
        |x, dtype| x.cast(dtype)?.cast(DType::F16)?.cast(DType::F64),
    ),
    // The products have the dtype already: these casts round what a row program holds in f32.
    (
        "a product",
        |x, dtype| (x.cast(dtype) * x.cast(dtype)).cast(dtype).cast(DType::F32),
        |x, dtype| (x.cast(dtype)? * x.cast(dtype)?)?.cast(DType::F32),
    ),
    (
        "a product in a sum",
        |x, dtype| ((x.cast(dtype) * 3).cast(dtype) + x.cast(dtype)).cast(dtype).cast(DType::F32),
        |x, dtype| ((x.cast(dtype)? * 3)? + x.cast(dtype)?)?.cast(DType::F32),
    ),
    (
        "a root",
        |x, dtype| x.cast(dtype).abs().sqrt().cast(dtype).cast(DType::F32),
        |x, dtype| x.cast(dtype)?.abs()?.sqrt()?.cast(DType::F32),
    ),
];

fn bits(tensor: &Tensor) -> Vec<u8> {
    tensor.to_bytes().unwrap()
}

#[test]
fn a_cast_within_an_expression_rounds_as_one_of_a_tensor() {
    let numbers = (0..999).map(|at| ((at * 7919 % 1009) as f64 - 500.0) / 97.0 + 1e-3);
    let numbers = Tensor::from_vec(numbers.collect::<Vec<f64>>(), &[27, 37], &CPU).unwrap();
    for from in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let x = numbers.cast(from).unwrap();
        for dtype in [DType::F16, DType::BF16] {
            for &(name, expression, steps) in CASES {
                let what = format!("{name}, {from} to {dtype}");
                let wanted = steps(&x, dtype).unwrap();
                let plain = Fused::new(move |[x]| expression(x, dtype)).run([&x]).unwrap();
                assert_eq!(plain.dtype(), wanted.dtype(), "{what}");
                assert!(bits(&plain) == bits(&wanted), "{what}");
                // The same as a row program: the greatest of one element is that element.
                let groups = Fused::new(move |[x]| expression(x.max_group(), dtype));
                let column = x.reshape(&[999, 1]).unwrap();
                let found = groups.run([&column]).unwrap();
                assert_eq!(found.dtype(), wanted.dtype(), "{what} of groups");
                assert!(bits(&found) == bits(&wanted), "{what} of groups");
            }
        }
    }
}
