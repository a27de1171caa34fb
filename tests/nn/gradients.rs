//! Gradients of each operation.

use selvedge::nn::Variable;
use selvedge::types::Slice;
use selvedge::{Complex, DType, Device, Result, Tensor, f16};

use crate::differences::{check, each_elementwise, samples};

type Case = (&'static str, Vec<Tensor>, fn(&[Variable]) -> Result<Variable>);

#[test]
fn gradients_of_broadcast_elementwise_operations_are_their_differences() {
    each_elementwise([&[2, 3], &[3], &[2, 1]], |name, inputs, function| check(name, inputs, function));
}

#[test]
fn gradients_of_operators_and_numbers_are_their_differences() {
    let x = || vec![samples(0, &[2, 3]), samples(1, &[3])];
    let cases: Vec<Case> = vec![
        ("+", x(), |x| &x[0] + &x[1]),
        ("-", x(), |x| &x[0] - x[1].clone()),
        ("* of one variable", vec![samples(0, &[2])], |x| &x[0] * &x[0]),
        ("/", x(), |x| x[0].clone() / &x[1]),
        ("%", x(), |x| &x[0] % &x[1]),
        ("neg", vec![samples(0, &[2])], |x| -&x[0]),
        ("a number on the right", vec![samples(0, &[2])], |x| (&x[0] * 3)? - 1.5),
        ("a number on the left", vec![samples(0, &[2])], |x| 2.0f64 / (1.0f64 - &x[0])?),
        ("a power", vec![samples(0, &[2])], |x| x[0].pow(3)),
        ("bounds beyond the dtype", vec![samples(0, &[3])], |x| x[0].clamp(0.3, 1e300)),
        ("a tensor", vec![samples(0, &[2])], |x| &x[0] * &samples(5, &[4, 1])),
    ];
    cases.into_iter().for_each(|(name, inputs, function)| check(name, &inputs, function));
}

#[test]
fn gradients_of_reductions_are_their_differences() {
    let x = || vec![samples(0, &[2, 3, 4])];
    let cases: Vec<Case> = vec![
        ("sum", x(), |x| x[0].sum(&[0, -1])),
        ("sum_all", x(), |x| x[0].sum_all()),
        ("sum_keepdim", x(), |x| x[0].sum_keepdim(1)),
        ("mean", x(), |x| x[0].mean(1)),
        ("mean of all", x(), |x| x[0].mean(..)),
        ("max", x(), |x| x[0].max(-1)),
        ("max of two axes", x(), |x| x[0].max_keepdim(&[0, 2])),
        ("min", x(), |x| x[0].min_all()),
        ("var", x(), |x| x[0].var(&[0, 2], 1)),
        ("var_all", x(), |x| x[0].var_all(0)),
        ("std", x(), |x| x[0].std_keepdim(2, 1)),
        ("logsumexp", x(), |x| x[0].logsumexp(1)),
        ("a softmax of operations", x(), |x| {
            let shifted = (&x[0] - &x[0].max_keepdim(-1)?.detach())?.exp()?;
            &shifted / &shifted.sum_keepdim(-1)?
        }),
    ];
    cases.into_iter().for_each(|(name, inputs, function)| check(name, &inputs, function));
}

#[test]
fn gradients_of_softmax_and_norms_are_their_differences() {
    let x = || vec![samples(0, &[2, 3, 4])];
    let parameters = || vec![samples(0, &[2, 3, 4]), samples(1, &[3, 4]), samples(2, &[3, 4])];
    let cases: Vec<Case> = vec![
        ("softmax", x(), |x| x[0].softmax(-1)),
        ("softmax of another axis", x(), |x| x[0].softmax(1)),
        ("log_softmax", x(), |x| x[0].log_softmax(0)),
        ("log_softmax of one element", vec![samples(0, &[])], |x| x[0].log_softmax(0)),
        ("layer_norm", x(), |x| x[0].layer_norm(&[4], None, None, 1e-5)),
        ("layer_norm with a weight", parameters()[..2].to_vec(), |x| {
            x[0].layer_norm(&[3, 4], Some(&x[1]), None, 1e-5)
        }),
        ("rms_norm", x(), |x| x[0].rms_norm(&[4], None, None)),
        ("rms_norm with a weight", parameters()[..2].to_vec(), |x| {
            x[0].rms_norm(&[3, 4], Some(&x[1]), Some(0.5))
        }),
        ("layer_norm with both", parameters(), |x| x[0].layer_norm(&[3, 4], Some(&x[1]), Some(&x[2]), 1e-5)),
    ];
    cases.into_iter().for_each(|(name, inputs, function)| check(name, &inputs, function));
}

#[test]
fn gradients_of_products_are_their_differences() {
    let cases: &[(&[usize], &[usize])] = &[
        (&[2, 3], &[3, 4]),
        (&[3], &[3]),
        (&[3], &[3, 2]),
        (&[2, 3], &[3]),
        (&[2, 2, 3], &[2, 3, 2]),
        (&[2, 1, 2, 3], &[3, 3, 2]),
        (&[2, 2, 3], &[3]),
        (&[3], &[2, 3, 2]),
        (&[2, 2, 3], &[3, 2]),
    ];
    for (a, b) in cases {
        check(&format!("{a:?} x {b:?}"), &[samples(0, a), samples(1, b)], |x| x[0].matmul(&x[1]));
    }
}

#[test]
fn gradients_of_views_and_joins_are_their_differences() {
    let x = || vec![samples(0, &[2, 3, 4])];
    let three = || vec![samples(0, &[2, 3]), samples(1, &[2, 1]), samples(2, &[2, 2])];
    let cases: Vec<Case> = vec![
        ("reshape", x(), |x| x[0].reshape(&[4, -1])),
        ("flatten", x(), |x| x[0].transpose(0, 2)?.flatten(0, 1)),
        ("squeeze", vec![samples(0, &[2, 1, 3])], |x| x[0].squeeze(1)),
        ("squeeze_all", vec![samples(0, &[1, 2, 1])], |x| x[0].squeeze_all()),
        ("unsqueeze", x(), |x| x[0].unsqueeze(-1)),
        ("permute", x(), |x| x[0].permute(&[2, 0, -2])),
        ("transpose", x(), |x| x[0].transpose(0, -1)),
        ("t", vec![samples(0, &[2, 3])], |x| x[0].t()),
        ("flip", x(), |x| x[0].flip(&[0, 2])),
        ("expand", vec![samples(0, &[2, 1])], |x| x[0].expand(&[3, 2, 4])),
        ("narrow", x(), |x| x[0].narrow(2, 1, 2)),
        ("select", x(), |x| x[0].select(1, -1)),
        ("slice", x(), |x| x[0].slice(2, Slice::from(..).step(-2))),
        ("cat", three(), |x| Variable::cat(&[&x[0], &x[1], &x[2], &x[0]], -1)),
        ("stack", vec![samples(0, &[2]), samples(1, &[2])], |x| Variable::stack(&[&x[1], &x[0]], 1)),
    ];
    cases.into_iter().for_each(|(name, inputs, function)| check(name, &inputs, function));
}

#[test]
fn gradients_of_reads_by_index_are_their_differences() {
    let x = || vec![samples(0, &[3, 4])];
    let cases: Vec<Case> = vec![
        ("index_select", x(), |x| x[0].index_select(1, &index(&[2, 0, 2, -1], &[4]))),
        ("gather", x(), |x| x[0].gather(0, &index(&[0, 2, 2, 1, 0, 2, 0, 0], &[2, 4]))),
        ("embedding", x(), |x| x[0].embedding(&index(&[1, 1, 0, 1], &[2, 2]))),
        ("embedding of one index", x(), |x| x[0].embedding(&index(&[2], &[]))),
    ];
    cases.into_iter().for_each(|(name, inputs, function)| check(name, &inputs, function));
}

fn index(numbers: &[i64], shape: &[usize]) -> Tensor {
    Tensor::from_slice(numbers, shape, &Device::cpu()).unwrap()
}

#[test]
fn gradients_of_casts_return_to_the_operands_dtype() {
    // The differences are of f64, so only casts that lose nothing have them.
    check("a cast to c128", &[samples(0, &[3])], |x| x[0].cast(DType::C128)?.square()?.real());
    let x = Variable::with_grad(Tensor::new([1.5f32, -2.0], &Device::cpu()).unwrap()).unwrap();
    let y = Variable::with_grad(Tensor::new([f16::from_f32(0.25); 2], &Device::cpu()).unwrap()).unwrap();
    let z = (&x.cast(DType::F64).unwrap() * &y).unwrap();
    assert_eq!(z.dtype(), DType::F64);
    z.sum_all().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [0.25; 2]);
    assert_eq!(y.grad().unwrap().to_vec::<f16>().unwrap(), [f16::from_f32(1.5), f16::from_f32(-2.0)]);
    assert!(!x.cast(DType::I32).unwrap().requires_grad());
}

#[test]
fn gradients_of_complex_products_are_conjugate_wirtinger_derivatives() {
    let complex = |re, im| Complex::new(re, im);
    let a =
        Variable::with_grad(Tensor::new([complex(1.0f64, 2.0), complex(0.0, -1.0)], &Device::cpu()).unwrap());
    let b =
        Variable::with_grad(Tensor::new([complex(0.5f64, -1.0), complex(3.0, 1.0)], &Device::cpu()).unwrap());
    let (a, b) = (a.unwrap(), b.unwrap());
    // The loss is Re(a b), whose gradient with respect to a is conj(b).
    a.matmul(&b).unwrap().real().unwrap().backward().unwrap();
    let conjugates = |x: &Variable| x.tensor().conj().unwrap().to_vec::<Complex<f64>>().unwrap();
    assert_eq!(a.grad().unwrap().to_vec::<Complex<f64>>().unwrap(), conjugates(&b));
    assert_eq!(b.grad().unwrap().to_vec::<Complex<f64>>().unwrap(), conjugates(&a));
}

#[test]
fn equal_extremes_share_the_gradient() {
    let x = Variable::with_grad(Tensor::new([[2.0f64, 2.0, 1.0], [0.0, 3.0, 1.0]], &Device::cpu()).unwrap())
        .unwrap();
    x.max(1).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [0.5, 0.5, 0.0, 0.0, 1.0, 0.0]);
}
