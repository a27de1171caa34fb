//! Gradients of each operation.

use selvedge::nn::Variable;
use selvedge::{Complex, DType, Device, Error, Result, Tensor, f16};

use crate::cases::{self, COMPLEX, each_elementwise, result_and_gradients, samples};
use crate::custom_function::Softsign;
use crate::differences::{check, check_second};

#[test]
fn gradients_of_broadcast_elementwise_operations_are_their_differences() {
    each_elementwise([&[2, 3], &[3], &[2, 1]], |name, inputs, function| check(name, inputs, function));
}

#[test]
fn gradients_of_other_operations_are_their_differences() {
    cases::all().into_iter().for_each(|(name, inputs, function)| check(&name, &inputs, function));
}

/// Squares leave the range of the dtype, the norms and their gradients do not.
#[test]
fn gradients_of_large_and_small_norms_and_deviations_are_those_of_usual_ones() {
    for (dtype, factors) in [
        (DType::F32, &[1.0, 1e20, 1e30, 3e37, 1e-25, 1e-37][..]),
        (DType::F64, &[1.0, 1e154, 1e300, 1e-170, 1e-300]),
    ] {
        for &factor in factors {
            let gradient = |elements: &[f64], function: fn(&Variable) -> Result<Variable>| {
                let elements: Vec<f64> = elements.iter().map(|x| x * factor).collect();
                let x = Tensor::new(elements, &Device::cpu()).unwrap().cast(dtype).unwrap();
                let x = Variable::with_grad(x).unwrap();
                function(&x).unwrap().backward().unwrap();
                x.grad().unwrap().cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
            };
            let norm = gradient(&[3.0, 4.0], |x| x.norm_all(2.0));
            // (x - mean) / (n std), without a correction.
            let deviation = gradient(&[1.0, -1.0], |x| x.std_all(0));
            for (found, wanted) in norm.iter().chain(&deviation).zip([0.6, 0.8, 0.5, -0.5]) {
                assert!((found - wanted).abs() < 1e-6, "{norm:?} {deviation:?} of {factor:e} in {dtype}");
            }
        }
    }
}

#[test]
fn gradients_of_complex_operations_are_their_differences() {
    for (name, function) in COMPLEX {
        check(name, &[samples(0, &[2, 3]), samples(1, &[2, 3])], |parts| {
            let imaginary = (parts[1].cast(DType::C128)? * Complex::new(0.0f64, 1.0))?;
            let y = function(&(parts[0].cast(DType::C128)? + imaginary)?)?;
            match y.dtype().is_complex() {
                true => y.real()? + (y.imag()? * 0.7)?,
                false => Ok(y),
            }
        });
    }
}

#[test]
fn second_derivatives_of_rearrangements_and_reads_are_differences() {
    // A square, because each is linear.
    let cases = [cases::rearrangements(), cases::reads_and_writes()].concat();
    for (name, inputs, function) in cases.into_iter().filter(|(name, ..)| !name.starts_with("index_put")) {
        check_second(&name, &inputs, |x| function(x)?.square());
    }
    for (name, inputs, function) in cases::views_and_joins() {
        check_second(&name, &inputs, |x| function(x)?.square());
    }
}

/// Compares results and gradients in a dtype with those of the same operands in a wider one, by the largest element of each.
fn assert_within_rounding(
    name: &str,
    inputs: &[Tensor],
    (narrow, wide): (DType, DType),
    epsilon: f64,
    function: &dyn Fn(&[Variable]) -> Result<Variable>,
) {
    let inputs: Vec<Tensor> = inputs.iter().map(|x| x.cast(narrow).unwrap()).collect();
    let widened: Vec<Tensor> = inputs.iter().map(|x| x.cast(wide).unwrap()).collect();
    let run = |inputs: &[Tensor]| {
        result_and_gradients(inputs, function).unwrap_or_else(|error| panic!("{name} of {narrow}: {error}"))
    };
    let (found, wanted) = (run(&inputs), run(&widened));
    assert_eq!((found.len(), found.len()), (wanted.len(), inputs.len() + 1), "{name} of {narrow}");
    for (place, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        assert_eq!(found.shape(), wanted.shape(), "{name} of {narrow}");
        if place > 0 {
            assert_eq!(found.dtype(), narrow, "{name}: the gradient of operand {}", place - 1);
        }
        let numbers = |x: &Tensor| -> Vec<Complex<f64>> { x.cast(DType::C128).unwrap().to_vec().unwrap() };
        let (found, wanted) = (numbers(found), numbers(wanted));
        let largest = wanted.iter().map(|x| x.norm()).fold(1.0, f64::max);
        for (x, y) in found.iter().zip(&wanted) {
            // The norms divide by a deviation of a quarter of the elements.
            let is_close = (x - y).norm() <= 24.0 * epsilon * largest;
            assert!(is_close, "{name} of {narrow}, tensor {place}: {x}, in {wide} {y}");
        }
    }
}

#[test]
fn gradients_of_narrow_dtypes_are_within_rounding_of_wide_ones() {
    let narrow = [(DType::F32, 2f64.powi(-24)), (DType::F16, 2f64.powi(-11)), (DType::BF16, 2f64.powi(-8))];
    for (dtype, epsilon) in narrow {
        let check = |name: &str, inputs: &[Tensor], function: &dyn Fn(&[Variable]) -> Result<Variable>| {
            assert_within_rounding(name, inputs, (dtype, DType::F64), epsilon, function);
        };
        each_elementwise([&[2, 3], &[3], &[2, 1]], check);
        cases::all().iter().for_each(|(name, inputs, function)| check(name, inputs, function));
    }
    let parts = [samples(0, &[2, 3]), samples(1, &[2, 3])].map(|x| x.cast(DType::C128).unwrap());
    let z = (&parts[0] + &(&parts[1] * Complex::new(0.0f64, 1.0)).unwrap()).unwrap();
    for (name, function) in COMPLEX {
        let epsilon = 2f64.powi(-24);
        assert_within_rounding(name, std::slice::from_ref(&z), (DType::C64, DType::C128), epsilon, &|x| {
            function(&x[0])
        });
    }
}

#[test]
fn a_backward_from_a_constant_names_the_operation_that_stopped_the_gradient() {
    let x = Variable::with_grad(samples(0, &[2, 3])).unwrap();
    let cases: [cases::UnaryCase; 5] = [
        ("floor", |x| x.floor()?.sum_all()),
        ("floor", |x| (x.floor()? * 2.0)?.reshape(&[6])?.mean_all()),
        ("gt", |x| x.gt(0.5)?.cast(DType::F64)?.sum_all()),
        ("cast", |x| x.cast(DType::I64)?.cast(DType::F64)?.sum_all()),
        ("round", |x| x.round()?.max_all()?.exp()),
    ];
    for (name, function) in cases {
        match function(&x).unwrap().backward() {
            Err(Error::Backward { operation, found, .. }) => {
                assert!(operation == name && found.contains(&format!("a result of {name}")), "{found}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    // A constant alone stops nothing.
    let constant = Variable::new(samples(0, &[])).floor().unwrap().backward().unwrap_err();
    assert!(constant.to_string().contains("a constant"), "{constant}");
    let some = (x.floor().unwrap() * &x).unwrap();
    some.sum_all().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [0.0; 6]);
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
fn a_function_with_kernels_of_its_own_has_its_gradient() {
    let x = (samples(0, &[3, 4]) - 0.5).unwrap().cast(DType::F32).unwrap();
    // A view, whose elements are not in row-major order.
    let found = result_and_gradients(std::slice::from_ref(&x), |x| {
        Variable::apply(Softsign, &[&x[0].t()?])?.square()
    });
    let wanted = result_and_gradients(&[x], |x| (&x[0].t()? / &(x[0].t()?.abs()? + 1.0)?)?.square());
    for (found, wanted) in found.unwrap().iter().zip(&wanted.unwrap()) {
        assert!(found.allclose(wanted, 1e-5, 1e-6).unwrap(), "{found}, by operations {wanted}");
    }
}

#[test]
fn equal_extremes_share_the_gradient() {
    let x = Variable::with_grad(Tensor::new([[2.0f64, 2.0, 1.0], [0.0, 3.0, 1.0]], &Device::cpu()).unwrap())
        .unwrap();
    x.max(1).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [0.5, 0.5, 0.0, 0.0, 1.0, 0.0]);
}
