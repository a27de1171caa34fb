//! Operators: every combination of owned and borrowed operands, numbers of every type on both sides, and compound
//! assignment.

use selvedge::tensor::{Device, Tensor};
use selvedge::{Complex, DType, Error, Result, bf16, f16};

fn x() -> Tensor {
    Tensor::new([6.0f32, 3.0], &Device::cpu()).unwrap()
}

fn y() -> Tensor {
    Tensor::new([4.0f32, 2.0], &Device::cpu()).unwrap()
}

fn i() -> Tensor {
    Tensor::new([6i32, 3], &Device::cpu()).unwrap()
}

fn j() -> Tensor {
    Tensor::new([1i32, 2], &Device::cpu()).unwrap()
}

/// Every combination of `&x op &y`, `&x op y`, `x op &y`, `x op y`.
macro_rules! owned_and_borrowed {
    ($x:ident $operator:tt $y:ident, $type:ty, $wanted:expr) => {
        for found in [&$x() $operator &$y(), &$x() $operator $y(), $x() $operator &$y(), $x() $operator $y()] {
            assert_eq!(found?.to_vec::<$type>()?, $wanted, stringify!($x $operator $y));
        }
    };
}

#[test]
fn operators_take_owned_and_borrowed_tensors() -> Result<()> {
    owned_and_borrowed!(x + y, f32, [10.0, 5.0]);
    owned_and_borrowed!(x - y, f32, [2.0, 1.0]);
    owned_and_borrowed!(x * y, f32, [24.0, 6.0]);
    owned_and_borrowed!(x / y, f32, [1.5, 1.5]);
    owned_and_borrowed!(x % y, f32, [2.0, 1.0]);
    owned_and_borrowed!(i & j, i32, [0, 2]);
    owned_and_borrowed!(i | j, i32, [7, 3]);
    owned_and_borrowed!(i ^ j, i32, [7, 1]);
    owned_and_borrowed!(i << j, i32, [12, 12]);
    owned_and_borrowed!(i >> j, i32, [3, 0]);
    assert_eq!((-x())?.to_vec::<f32>()?, (-&x())?.to_vec::<f32>()?);
    assert_eq!((-x())?.to_vec::<f32>()?, [-6.0, -3.0]);
    assert_eq!((!i())?.to_vec::<i32>()?, (!&i())?.to_vec::<i32>()?);
    assert_eq!((!i())?.to_vec::<i32>()?, [-7, -4]);
    Ok(())
}

/// A number on each side of an owned and a borrowed tensor of f32; the real parts of the results.
macro_rules! numbers_on_both_sides {
    ($($two:expr),*) => {$(
        let table = [
            (&x() + $two, [8.0, 5.0]),
            (x() - $two, [4.0, 1.0]),
            (&x() * $two, [12.0, 6.0]),
            (x() / $two, [3.0, 1.5]),
            ($two + &x(), [8.0, 5.0]),
            ($two - x(), [-4.0, -1.0]),
            ($two * &x(), [12.0, 6.0]),
            ($two / x(), [2.0 / 6.0, 2.0 / 3.0]),
        ];
        for (at, (found, wanted)) in table.into_iter().enumerate() {
            let found = found?.cast(DType::F32)?.to_vec::<f32>()?;
            let near = found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-6);
            assert!(near, "{} in row {at}: {found:?}", stringify!($two));
        }
    )*};
}

/// As above, of bits and remainders of integers.
macro_rules! integers_on_both_sides {
    ($($two:expr),*) => {$(
        let table = [
            (&i() % $two, [0, 1]),
            ($two % i(), [2, 2]),
            (i() & $two, [2, 2]),
            ($two & &i(), [2, 2]),
            ($two | i(), [6, 3]),
            ($two ^ &i(), [4, 1]),
            (i() << $two, [24, 12]),
            ($two << i(), [128, 16]),
            ($two >> &j(), [1, 0]),
        ];
        for (at, (found, wanted)) in table.into_iter().enumerate() {
            assert_eq!(found?.to_vec::<i32>()?, wanted, "{} in row {at}", stringify!($two));
        }
    )*};
}

#[test]
fn numbers_of_every_type_stand_on_both_sides() -> Result<()> {
    numbers_on_both_sides!(2u8, 2i8, 2u16, 2i16, 2u32, 2i32, 2u64, 2i64, 2usize, 2isize);
    numbers_on_both_sides!(f16::from_f32(2.0), bf16::from_f32(2.0), 2.0f32, 2.0f64);
    numbers_on_both_sides!(Complex::new(2.0f32, 0.0), Complex::new(2.0f64, 0.0));
    integers_on_both_sides!(2u8, 2i8, 2u16, 2i16, 2u32, 2i32, 2u64, 2i64, 2usize, 2isize);
    assert_eq!((true + &i())?.to_vec::<i32>()?, [7, 4]);
    assert_eq!((true & Tensor::new([true, false], &Device::cpu())?)?.to_vec::<bool>()?, [true, false]);
    // A number takes part by kind: the dtype is the tensor's.
    assert_eq!((2.0f64 * &x())?.dtype(), DType::F32);
    assert_eq!((&x().cast(DType::F16)? / 3usize)?.dtype(), DType::F16);
    Ok(())
}

#[test]
fn compound_assignment_replaces_the_elements() -> Result<()> {
    let mut found = x();
    let before = found.clone();
    found += &y();
    found *= 2.0;
    found -= y();
    found /= 4usize;
    found %= 3.5f32;
    assert_eq!(found.to_vec::<f32>()?, [0.5, 2.0]);
    assert_eq!(before.to_vec::<f32>()?, [6.0, 3.0]);
    let mut bits = i();
    bits &= 7;
    bits |= &j();
    bits ^= j();
    bits <<= 2;
    bits >>= 1;
    assert_eq!(bits.to_vec::<i32>()?, [12, 2]);
    let mut own = x();
    own += own.clone();
    assert_eq!(own.to_vec::<f32>()?, [12.0, 6.0]);
    Ok(())
}

#[test]
fn a_failed_compound_assignment_is_an_error_of_every_later_use() -> Result<()> {
    let three = Tensor::new([1.0f32, 2.0, 3.0], &Device::cpu())?;
    let mut x = x();
    let before = x.clone();
    x += &three;
    assert_eq!((x.dtype(), &x.shape()[..], x.device()), (DType::F32, &[2][..], Device::cpu()));
    let view = x.clone().unsqueeze(0)?;
    let uses = [
        x.to_vec::<f32>().err(),
        x.item::<f32>().err().filter(|_| false).or(x.sum_all().err()),
        (&x + 1.0).err(),
        x.copy().err(),
        x.cast(DType::F64).err(),
        x.matmul(&before).err(),
        x.index_select(0, &Tensor::new([0], &Device::cpu())?).err(),
        Tensor::cat(&[&x, &before], 0).err(),
        view.to_vec::<f32>().err(),
        x.clone().as_slice_mut::<f32>().err(),
        x.slice_mut(0, ..1).err(),
    ];
    for (at, error) in uses.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("use {at} succeeded"));
        assert!(matches!(&error, Error::InvalidArgument { operation: "add", .. }), "use {at}: {error}");
    }
    assert!(x.to_string().contains("add: found shape [3] for an output of shape [2]"), "{x}");
    // It goes on failing, until all of the elements are replaced.
    x *= 2.0;
    assert!(x.to_vec::<f32>().is_err());
    assert_eq!(before.to_vec::<f32>()?, [6.0, 3.0]);
    x.in_place().fill(1.0)?;
    assert_eq!(x.to_vec::<f32>()?, [1.0, 1.0]);
    let mut whole = i();
    whole += 0.5;
    assert!(matches!(whole.to_vec::<i32>(), Err(Error::DTypeMismatch { .. })));
    Ok(())
}
