//! Tensors without dimensions take part by kind, as in PyTorch, in plain and in fused operations.

use selvedge::fuse::Operation;
use selvedge::tensor::{Device, Fused, Tensor, fuse};
use selvedge::types::DType;

fn of(shape: &[usize], dtype: DType, device: &Device) -> Tensor {
    Tensor::ones(shape, dtype, device).unwrap()
}

/// The dtype of an array beside a tensor without dimensions, as `torch.result_type` has it.
const ROWS: &[(DType, DType, DType)] = &[
    (DType::F16, DType::F64, DType::F16),
    (DType::F16, DType::F32, DType::F16),
    (DType::F16, DType::BF16, DType::F16),
    (DType::BF16, DType::F16, DType::BF16),
    (DType::F32, DType::F64, DType::F32),
    (DType::F64, DType::F32, DType::F64),
    (DType::F32, DType::I64, DType::F32),
    (DType::I8, DType::I64, DType::I8),
    (DType::U8, DType::I8, DType::U8),
    (DType::U64, DType::I64, DType::U64),
    (DType::I64, DType::U64, DType::I64),
    (DType::I32, DType::F16, DType::F16),
    (DType::I32, DType::F64, DType::F64),
    (DType::Bool, DType::I16, DType::I16),
    (DType::Bool, DType::F64, DType::F64),
    (DType::F32, DType::C128, DType::C64),
    (DType::F64, DType::C64, DType::C128),
    (DType::I32, DType::C128, DType::C128),
    (DType::C64, DType::C128, DType::C64),
    (DType::C64, DType::F64, DType::C64),
];

pub fn tensors_without_dimensions_take_part_by_kind(device: &Device) {
    let sum = Fused::new(|[x, y]| x + y);
    for &(array, scalar, wanted) in ROWS {
        assert_eq!(array.promote_zero_dim(scalar).unwrap(), wanted, "{array} and {scalar}");
        for shape in [&[3][..], &[1], &[2, 0]] {
            let (x, y) = (of(shape, array, device), of(&[], scalar, device));
            for (form, found) in [
                ("x + y", (&x + &y).unwrap()),
                ("y + x", (&y + &x).unwrap()),
                ("fused x + y", sum.run([&x, &y]).unwrap()),
                ("fused y + x", sum.run([&y, &x]).unwrap()),
                ("fused, of what was computed", fuse([&x, &y], |[x, y]| x + (y + y) * y).unwrap()),
                ("choose", of(shape, DType::Bool, device).choose(&x, &y).unwrap()),
            ] {
                assert_eq!(
                    (found.dtype(), found.shape()),
                    (wanted, x.shape()),
                    "{array} and {scalar}, {form}"
                );
            }
            let mut output = Tensor::zeros(shape, wanted, device).unwrap();
            x.with_output(&mut output).add(&y).unwrap();
            if array == wanted {
                output.in_place().mul(&y).unwrap().add(&y).unwrap();
            }
            assert_eq!(output.dtype(), wanted);
        }
        // Among themselves they are promoted as arrays are, and so are arrays of one element.
        let common = array.promote(scalar);
        let alike =
            |shape: &[usize]| (&of(shape, array, device) + &of(shape, scalar, device)).map(|sum| sum.dtype());
        for found in [alike(&[]), alike(&[1])] {
            assert_eq!(found.ok(), common.as_ref().ok().copied(), "{array} and {scalar}");
        }
    }
}

pub fn the_values_are_those_of_the_dtype(device: &Device) {
    let x = Tensor::new([1.0f32, 2.0], device).unwrap();
    let tenth = Tensor::new(0.1f64, device).unwrap();
    assert_eq!((&x * &tenth).unwrap().to_vec::<f32>().unwrap(), [0.1, 0.2]);
    // Two arrays, and a number: it meets what the arrays have in common.
    let y = Tensor::new([1i64, 1], device).unwrap();
    let sum = fuse((&x, &y, &tenth, 2.0), |[x, y, tenth, two]| x * tenth + y * two).unwrap();
    assert_eq!((sum.dtype(), sum.to_vec::<f32>().unwrap()), (DType::F32, vec![2.1, 2.2]));
    assert_eq!(x.fma(&tenth, 1.0).unwrap().dtype(), DType::F32);
    // A comparison of integers is by value.
    let bytes = Tensor::new([5u8, 255], device).unwrap();
    let below = Tensor::new(-1i64, device).unwrap();
    for found in [bytes.lt(&below).unwrap(), fuse([&bytes, &below], |[x, y]| x.lt(y)).unwrap()] {
        assert_eq!(found.cast(DType::U8).unwrap().to_vec::<u8>().unwrap(), [0, 0]);
    }
    // In place, the array's dtype stays, which it would not beside an array.
    let mut half = x.cast(DType::F16).unwrap();
    half.in_place().operation(Operation::Add, &[(&tenth).into()]).unwrap();
    assert_eq!(half.dtype(), DType::F16);
    let mut byte = Tensor::new([1u8, 2], device).unwrap();
    byte.in_place().select(0, 0).unwrap().add(&below).unwrap();
    assert_eq!(byte.to_vec::<u8>().unwrap(), [0, 2]);
}
