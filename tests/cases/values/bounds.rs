//! Bounds beside integers whose dtype does not hold them.

use selvedge::fuse::{Number, Operation};
use selvedge::tensor::{Fused, Tensor, TensorOperand};
use selvedge::types::DType;

use Operation::{Clamp, Fmax, Fmin, Maximum, Minimum};

/// An operation of integers with bounds, and the result.
pub struct Bound {
    pub operation: Operation,
    pub dtype: DType,
    pub elements: &'static [i128],
    pub others: &'static [Number],
    pub wanted: &'static [i64],
}

const fn integer(value: i128) -> Number {
    Number::Integer(value)
}

const fn row(
    operation: Operation,
    dtype: DType,
    elements: &'static [i128],
    others: &'static [Number],
    wanted: &'static [i64],
) -> Bound {
    Bound { operation, dtype, elements, others, wanted }
}

pub const BYTES: &[i128] = &[0, 7, 255];

pub const BOUNDS: &[Bound] = &[
    row(Clamp, DType::U8, BYTES, &[integer(-1), integer(300)], &[0, 7, 255]),
    row(Clamp, DType::U8, BYTES, &[integer(-1), integer(9)], &[0, 7, 9]),
    row(Clamp, DType::U8, BYTES, &[integer(8), integer(1 << 40)], &[8, 8, 255]),
    row(Clamp, DType::U8, BYTES, &[integer(300), integer(200)], &[200, 200, 200]),
    row(Clamp, DType::I8, &[-128, 0, 127], &[integer(-129), integer(128)], &[-128, 0, 127]),
    row(Clamp, DType::I64, &[-5, 5], &[integer(-(1 << 70)), integer(1 << 70)], &[-5, 5]),
    row(Clamp, DType::U64, &[0, 5], &[integer(-3), integer(4)], &[0, 4]),
    row(Minimum, DType::U8, BYTES, &[integer(266)], &[0, 7, 255]),
    row(Maximum, DType::U8, BYTES, &[integer(-1)], &[0, 7, 255]),
    row(Fmin, DType::I16, &[-9, 9], &[integer(40_000)], &[-9, 9]),
    row(Fmax, DType::I16, &[-9, 9], &[integer(-40_000)], &[-9, 9]),
    row(Maximum, DType::U64, &[0, 9], &[integer(-1)], &[0, 9]),
    row(Minimum, DType::I32, &[-9, 9], &[integer(1 << 40)], &[-9, 9]),
];

/// Operations of [`BYTES`] as `u8` whose result no element can be.
pub const UNHELD: &[(Operation, &[Number])] = &[
    (Maximum, &[integer(300)]),
    (Fmax, &[integer(256)]),
    (Minimum, &[integer(-1)]),
    (Fmin, &[integer(-300)]),
    (Clamp, &[integer(-5), integer(-1)]),
    (Clamp, &[integer(300), integer(400)]),
];

/// Returns the results of an operation in every form, as i64: a method, into an output, in place, and a fused function.
pub fn forms(operation: Operation, x: &Tensor, others: &[Number]) -> Vec<Result<Vec<i64>, String>> {
    let operands: Vec<TensorOperand<'_>> = others.iter().map(|&number| number.into()).collect();
    let of = |x: selvedge::Result<Tensor>| {
        let x = x.map_err(|error| error.to_string())?;
        Ok(x.cast(DType::I64).unwrap().to_vec::<i64>().unwrap())
    };
    let mut output = Tensor::zeros(x.shape(), x.dtype(), &x.device()).unwrap();
    let into = x.with_output(&mut output).operation(operation, &operands);
    let mut changed = x.clone();
    let in_place = changed.in_place().operation(operation, &operands).map(|_| ());
    let fused = match *others {
        [y] => Fused::new(move |[x, y]| x.operation(operation, &[y])).run((x, y)),
        [y, z] => Fused::new(move |[x, y, z]| x.operation(operation, &[y, z])).run((x, y, z)),
        _ => panic!("one or two numbers"),
    };
    vec![
        of(x.operation(operation, &operands)),
        of(into.map(|()| output)),
        of(in_place.map(|()| changed)),
        of(fused),
    ]
}
