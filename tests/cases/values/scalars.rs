//! Numbers beside tensors whose dtype does not hold them: comparisons, `minimum`, `maximum` and `clamp` by value, an error
//! from everything else. Each row runs as a method, into an output, in place and as a fused function.

use std::cmp::Ordering;

use super::bounds::{BOUNDS, BYTES, Bound, UNHELD, forms};
use num_complex::Complex;
use selvedge::fuse::{Graph, Number, Operation};
use selvedge::tensor::{Device, Fused, Tensor, TensorOperand, fuse};
use selvedge::types::DType;

const COMPARISONS: [Operation; 6] = [
    Operation::Equal,
    Operation::NotEqual,
    Operation::Less,
    Operation::LessEqual,
    Operation::Greater,
    Operation::GreaterEqual,
];

const WHOLE: [DType; 9] = [
    DType::Bool,
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::U32,
    DType::I32,
    DType::U64,
    DType::I64,
];

/// The least number, the largest one, and some between them.
fn elements(dtype: DType) -> Vec<i128> {
    let bits = 8 * dtype.size() as u32;
    let (least, most) = match dtype {
        DType::Bool => (0, 1),
        _ if dtype.is_signed_integer() => (-(1i128 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1i128 << bits) - 1),
    };
    let some =
        [-200, -3, -1, 0, 1, 2, 3, 10, 44, 127, 200, 255, 16_777_216, 16_777_217, 1 << 53, (1 << 53) + 1];
    let mut all = vec![least, most];
    all.extend(some.into_iter().filter(|x| (least..=most).contains(x)));
    all
}

fn tensor(elements: &[i128], dtype: DType, device: &Device) -> Tensor {
    match dtype {
        DType::U64 => Tensor::new(elements.iter().map(|&x| x as u64).collect::<Vec<_>>(), device),
        _ => Tensor::new(elements.iter().map(|&x| x as i64).collect::<Vec<_>>(), device)
            .and_then(|x| x.cast(dtype)),
    }
    .unwrap()
}

fn truths(x: selvedge::Result<Tensor>) -> Vec<bool> {
    let x = x.and_then(|x| x.cast(DType::U8)).unwrap();
    x.to_vec::<u8>().unwrap().into_iter().map(|x| x != 0).collect()
}

/// How an integer stands to a number; none of NaN and numbers with an imaginary part.
fn order(x: i128, number: Number) -> Option<Ordering> {
    match number {
        Number::Bool(y) => x.partial_cmp(&i128::from(y)),
        Number::Integer(y) => x.partial_cmp(&y),
        Number::Real(y) if y.is_nan() => None,
        // Exact: `floor` is an integer of i128, or saturates past every dtype.
        Number::Real(y) => match x.cmp(&(y.floor() as i128)) {
            Ordering::Equal if y.fract() != 0.0 && y.is_finite() => Some(Ordering::Less),
            order => Some(order),
        },
        Number::Complex(y) if y.im == 0.0 => order(x, Number::Real(y.re)),
        Number::Complex(_) => None,
    }
}

fn holds(operation: Operation, order: Option<Ordering>) -> bool {
    use Ordering::{Equal, Greater, Less};
    match operation {
        Operation::Equal => order == Some(Equal),
        Operation::NotEqual => order != Some(Equal),
        Operation::Less => order == Some(Less),
        Operation::LessEqual => matches!(order, Some(Less | Equal)),
        Operation::Greater => order == Some(Greater),
        _ => matches!(order, Some(Greater | Equal)),
    }
}

fn numbers() -> Vec<Number> {
    let mut numbers = vec![Number::Bool(true), Number::Bool(false)];
    for power in [7, 8, 16, 24, 31, 63, 64] {
        let x = 1i128 << power;
        numbers.extend([x - 1, x, -x, -x - 1].map(Number::Integer));
        numbers.extend([x as f64, -(x as f64)].map(Number::Real));
    }
    numbers.extend([0i128, -1, 1, 2, 266, i128::MIN, i128::MAX].map(Number::Integer));
    let reals =
        [0.0, -0.0, 0.5, -0.5, 1e-300, -1e-300, 2.5, 254.5, 255.5, -128.5, 16_777_216.5, 1e19, 1e39, -1e300];
    numbers.extend(reals.map(Number::Real));
    numbers.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(Number::Real));
    numbers
}

/// A comparison in every form in which it can be written.
fn compare(operation: Operation, x: &Tensor, number: Number) -> Vec<(&'static str, Vec<bool>)> {
    let others = [TensorOperand::Number(number)];
    let of = |x: Tensor| truths(Ok(x));
    let mut output = Tensor::zeros(x.shape(), DType::Bool, &x.device()).unwrap();
    x.with_output(&mut output).operation(operation, &others).unwrap();
    let mut in_place = x.clone();
    in_place.in_place().operation(operation, &others).unwrap();
    let mirrored = match operation {
        Operation::Less => Operation::Greater,
        Operation::LessEqual => Operation::GreaterEqual,
        Operation::Greater => Operation::Less,
        Operation::GreaterEqual => Operation::LessEqual,
        other => other,
    };
    let right = Fused::new(move |[x, y]| x.operation(operation, &[y]));
    let left = Fused::new(move |[x, y]| y.operation(mirrored, &[x]));
    let mut forms = vec![
        ("method", of(x.operation(operation, &others).unwrap())),
        ("with_output", of(output)),
        ("in_place", of(in_place)),
    ];
    if number.kind() as u8 <= x.dtype().kind() as u8 || !matches!(number, Number::Complex(_)) {
        forms.push(("fused", of(right.run((x, number)).unwrap())));
        forms.push(("fused, number first", of(left.run((x, number)).unwrap())));
    }
    forms
}

pub fn integers_are_compared_with_numbers_by_value(device: &Device) {
    let mut count = 0;
    for dtype in WHOLE {
        let elements = elements(dtype);
        let x = tensor(&elements, dtype, device);
        for number in numbers() {
            for operation in COMPARISONS {
                let wanted: Vec<bool> =
                    elements.iter().map(|&x| holds(operation, order(x, number))).collect();
                for (form, found) in compare(operation, &x, number) {
                    assert_eq!(found, wanted, "{operation:?} of {dtype} {elements:?} and {number}, {form}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 15_000, "{count}");
    let x = tensor(&[16_777_217, 16_777_216], DType::I32, device);
    let complex = |im| Complex::new(16_777_216.0f64, im);
    assert_eq!(truths(x.eq(complex(0.0))), [false, true]);
    assert_eq!(truths(x.eq(complex(1.0))), [false, false]);
    assert_eq!(truths(x.ne(complex(1.0))), [true, true]);
    // A literal in the closure.
    let literal = fuse([&tensor(&[5], DType::U8, device)], |[x]| x.lt(-1)).unwrap();
    assert_eq!(truths(Ok(literal)), [false]);
}

pub fn floats_are_compared_with_numbers_past_their_range_by_value(device: &Device) {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for (dtype, large) in
        [(DType::F16, 65504.0), (DType::BF16, 3.3e38), (DType::F32, 3.4e38), (DType::F64, 1e308)]
    {
        let values = [-inf, -large, -1.5, 0.0, 1.0, large, inf, nan];
        let x = Tensor::new(values, device).unwrap().cast(dtype).unwrap();
        for number in [1e39, -1e39, 1.0, -1.5, inf, -inf, nan] {
            for operation in COMPARISONS {
                let wanted = values.map(|x| holds(operation, x.partial_cmp(&number)));
                for (form, found) in compare(operation, &x, number.into()) {
                    assert_eq!(found, wanted, "{operation:?} of {dtype} and {number}, {form}");
                }
            }
        }
    }
    // Numbers within the range are rounded as the elements were.
    let x = Tensor::new([300.1f32, 0.1], device).unwrap().cast(DType::F16).unwrap();
    assert_eq!(truths(x.eq(300.1)), [true, false]);
}

pub fn bounds_are_taken_by_value(device: &Device) {
    for Bound { operation, dtype, elements, others, wanted } in BOUNDS {
        for (form, found) in
            forms(*operation, &tensor(elements, *dtype, device), others).into_iter().enumerate()
        {
            assert_eq!(found.as_deref(), Ok(*wanted), "{operation:?} of {dtype} and {others:?}, form {form}");
        }
    }
    for (operation, others) in UNHELD {
        for found in forms(*operation, &tensor(BYTES, DType::U8, device), others) {
            let error = found.unwrap_err();
            assert!(error.contains("u8") && error.contains("does not hold"), "{error}");
        }
    }
    // Infinities bound floats as the numbers past their range do.
    let x = Tensor::new([-2.0f32, 2.0, f32::INFINITY], device).unwrap().cast(DType::F16).unwrap();
    let found = x.clamp(-1e39, 1e39).unwrap().cast(DType::F32).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(found, [-2.0, 2.0, f32::INFINITY]);
}

pub fn other_operations_refuse_a_number_that_the_dtype_does_not_hold(device: &Device) {
    use Operation::*;
    let rows: &[(DType, Number)] = &[
        (DType::I8, Number::Integer(300)),
        (DType::I8, Number::Integer(-129)),
        (DType::U8, Number::Integer(256)),
        (DType::U8, Number::Integer(-1)),
        (DType::U16, Number::Integer(65536)),
        (DType::I32, Number::Integer(1 << 40)),
        (DType::U64, Number::Integer(-1)),
        (DType::I64, Number::Integer(u64::MAX.into())),
        (DType::F16, Number::Real(1e6)),
        (DType::F16, Number::Integer(70_000)),
        (DType::F32, Number::Real(1e39)),
        (DType::F32, Number::Real(-1e39)),
    ];
    let operations = [
        Add,
        Sub,
        Mul,
        FloorDivide,
        TruncDivide,
        Remainder,
        Fmod,
        Pow,
        BitAnd,
        BitOr,
        BitXor,
        ShiftLeft,
        ShiftRight,
    ];
    for &(dtype, number) in rows {
        let x = Tensor::ones(&[2], dtype, device).unwrap();
        let names = |error: &str| {
            assert!(error.contains(&number.to_string()) && error.contains(dtype.name()), "{dtype}: {error}");
        };
        for operation in operations.into_iter().filter(|operation| operation.dtypes().contains(dtype)) {
            forms(operation, &x, &[number]).into_iter().for_each(|found| names(&found.unwrap_err()));
        }
        forms(Fma, &x, &[Number::Integer(1), number])
            .into_iter()
            .for_each(|found| names(&found.unwrap_err()));
        let mask = Tensor::ones(&[2], DType::Bool, device).unwrap();
        let mut y = x.clone();
        let errors = [
            Tensor::full(&[2], number, dtype, device).map(|_| ()).unwrap_err(),
            x.full_like(number).map(|_| ()).unwrap_err(),
            y.in_place().fill(number).map(|_| ()).unwrap_err(),
            y.in_place().assign(number).map(|_| ()).unwrap_err(),
            x.masked_fill(&mask, number).map(|_| ()).unwrap_err(),
            y.in_place().masked_fill(&mask, number).map(|_| ()).unwrap_err(),
            mask.choose(number, &x).map(|_| ()).unwrap_err(),
            mask.choose(&x, number).map(|_| ()).unwrap_err(),
        ];
        errors.iter().for_each(|error| names(&error.to_string()));
        assert_eq!(y.cast(DType::I64).unwrap().to_vec::<i64>().unwrap(), [1, 1]);
        let graph = Graph::new();
        let sum = graph.input(dtype) + graph.number(number, dtype);
        names(&graph.expression(&[sum]).unwrap_err().to_string());
    }
    for (dtype, number) in [
        (DType::I32, Number::Real(2.5)),
        (DType::I32, Number::Real(f64::NAN)),
        (DType::U8, Number::Real(f64::INFINITY)),
        (DType::Bool, Number::Integer(2)),
        (DType::F32, Number::Complex(Complex::new(1.0, 2.0))),
        (DType::C64, Number::Complex(Complex::new(1.0, 1e39))),
        (DType::F8E4M3, Number::Integer(449)),
    ] {
        let error = Tensor::full(&[2], number, dtype, device).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(dtype.name()), "{error}");
    }
    let error = (2i64 << 40) * &Tensor::ones(&[2], DType::I32, device).unwrap();
    assert!(error.map(|_| ()).unwrap_err().to_string().contains("i32"));
}

pub fn numbers_that_fit_the_computation_are_used_as_they_are(device: &Device) {
    let x = tensor(&[3, 0], DType::U8, device);
    // A quotient is computed in f32.
    assert_eq!(x.div(300).unwrap().to_vec::<f32>().unwrap(), [0.01, 0.0]);
    assert_eq!(fuse((&x, 300), |[x, y]| x / y).unwrap().to_vec::<f32>().unwrap(), [0.01, 0.0]);
    assert_eq!(fuse([&x], |[x]| x / 300).unwrap().to_vec::<f32>().unwrap(), [0.01, 0.0]);
    // A truth value is that of the number.
    assert_eq!(truths(x.logical_and(256)), [true, false]);
    assert_eq!(truths(x.logical_and(1e-300)), [true, false]);
    assert_eq!(truths(x.logical_or(f64::NAN)), [true, true]);
    // Infinity and NaN are numbers of every float.
    let y = Tensor::full(&[1], f64::INFINITY, DType::F16, device).unwrap().add(f64::NAN).unwrap();
    assert!(y.cast(DType::F32).unwrap().item::<f32>().unwrap().is_nan());
    assert_eq!(Tensor::full(&[1], 2.0, DType::U8, device).unwrap().item::<u8>().unwrap(), 2);
    // The same expression again, with a number that it holds.
    let add = Fused::new(|[x, y]| x + y);
    assert!(add.run((&x, 256)).is_err());
    assert_eq!(add.run((&x, 252)).unwrap().to_vec::<u8>().unwrap(), [255, 252]);
}

pub fn negative_powers_of_integers_are_0_but_of_1_and_minus_1(device: &Device) {
    for dtype in [DType::I8, DType::I16, DType::I32, DType::I64] {
        let x = tensor(&[2, -2, 1, -1, 7], dtype, device);
        for (exponent, wanted) in [(-1i128, [0, 0, 1, -1, 0]), (-2, [0, 0, 1, 1, 0])] {
            for found in forms(Operation::Pow, &x, &[Number::Integer(exponent)]) {
                assert_eq!(found.as_deref(), Ok(&wanted[..]), "{dtype} to the power {exponent}");
            }
        }
    }
}
