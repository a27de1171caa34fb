//! Evenly spaced numbers and the identity, beside what their documents say element by element.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::Error;
use selvedge::fuse::Number;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

const CPU: Device = Device::cpu();

fn whole(start: i64, end: i64, step: i64, dtype: DType) -> Vec<i64> {
    Tensor::arange(start, end, step, dtype, &CPU).unwrap().cast(DType::I64).unwrap().to_vec().unwrap()
}

#[test]
fn whole_numbers_count_up_and_down() {
    let steps = |start: i64, end: i64, step: i64| -> Vec<i64> {
        let mut found = Vec::new();
        let mut next = start;
        while if step > 0 { next < end } else { next > end } {
            found.push(next);
            next += step;
        }
        found
    };
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_integer()) {
        for (start, end) in [(0, 10), (3, 3), (5, 2), (2, 5), (0, 100)] {
            for step in [1, 2, 3, 7, -1, -4, 1000] {
                assert_eq!(whole(start, end, step, dtype), steps(start, end, step), "{start} {end} {step}");
            }
        }
    }
    assert_eq!(whole(-128, 128, 85, DType::I8), [-128, -43, 42, 127]);
    let high = Tensor::arange(u64::MAX - 3, u64::MAX, 2, DType::U64, &CPU).unwrap();
    assert_eq!(high.to_vec::<u64>().unwrap(), [u64::MAX - 3, u64::MAX - 1]);
    let low = Tensor::arange(i64::MIN, i64::MAX, i64::MAX, DType::I64, &CPU).unwrap();
    assert_eq!(low.to_vec::<i64>().unwrap(), [i64::MIN, -1, i64::MAX - 1]);
}

#[test]
fn fractions_are_rounded_once_and_again() {
    for (start, end, step) in
        [(0.0f64, 1.0, 0.1), (-3.5, 100.0, 0.37), (1e10, 1e10 + 3.0, 0.5), (5.0, -5.0, -1.25)]
    {
        let count = ((end - start) / step).ceil() as usize;
        let wanted: Vec<f64> = (0..count).map(|i| (i as f64).mul_add(step, start)).collect();
        let of = |dtype| Tensor::arange(start, end, step, dtype, &CPU).unwrap();
        assert_eq!(of(DType::F64).to_vec::<f64>().unwrap(), wanted);
        let narrow: Vec<f32> = wanted.iter().map(|x| *x as f32).collect();
        assert_eq!(of(DType::F32).to_vec::<f32>().unwrap(), narrow);
        let complex: Vec<Complex<f32>> = narrow.iter().map(|&x| Complex::new(x, 0.0)).collect();
        assert_eq!(of(DType::C64).to_vec::<Complex<f32>>().unwrap(), complex);
    }
    let half = Tensor::arange(0, 3000, 1, DType::F16, &CPU).unwrap().to_vec::<f16>().unwrap();
    assert!(half.iter().enumerate().all(|(i, x)| *x == f16::from_f64(i as f64)));
    let brain = Tensor::arange(0.5, 9.0, 1, DType::BF16, &CPU).unwrap().to_vec::<bf16>().unwrap();
    assert!(brain.iter().enumerate().all(|(i, x)| x.to_f64() == i as f64 + 0.5) && brain.len() == 9);
    let eight = Tensor::arange(0, 5, 1, DType::F8E4M3, &CPU).unwrap().cast(DType::F32).unwrap();
    assert_eq!(eight.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn bad_ranges_are_errors() {
    let refuse = |start: Number, end: Number, step: Number, dtype: DType, part: &str| match Tensor::arange(
        start, end, step, dtype, &CPU,
    ) {
        Err(error @ Error::InvalidArgument { .. }) => {
            let message = error.to_string();
            assert!(message.contains("arange") && message.contains(part), "{message}");
        }
        other => panic!("{other:?}"),
    };
    let (zero, one, half) = (Number::from(0), Number::from(1), Number::from(0.5));
    refuse(zero, one, zero, DType::I32, "not 0");
    refuse(zero, one, 0.0.into(), DType::F32, "not 0");
    refuse(zero, one, half, DType::I32, "0 to 1 by 0.5 of i32");
    refuse(zero, f64::INFINITY.into(), one, DType::F32, "finite");
    refuse(zero, f64::NAN.into(), one, DType::F64, "finite");
    refuse(zero, one, one, DType::Bool, "numbers");
    refuse(zero, Complex::new(1.0f64, 1.0).into(), one, DType::C64, "real");
    refuse(zero, 300.into(), one, DType::U8, "0 to 255");
    refuse((-1).into(), 3.into(), one, DType::U32, "0 to 4294967295");
    refuse(0.0.into(), 1e300.into(), 1e-3.into(), DType::F64, "elements");
    refuse((-1e308).into(), 1e308.into(), 1.into(), DType::F64, "elements");
    refuse(Number::Integer(i128::MIN), Number::Integer(i128::MAX), one, DType::I64, "integers");
    // As many as no machine has memory for.
    assert!(Tensor::arange(0, i64::MAX, 1, DType::I64, &CPU).is_err());
    assert!(Tensor::arange(i64::MIN, i64::MAX, 1, DType::I64, &CPU).is_err());
    assert!(Tensor::linspace(0.0, 1.0, usize::MAX, DType::F64, &CPU).is_err());
    assert!(Tensor::eye(usize::MAX, 2, DType::F64, &CPU).is_err());
    let message = Tensor::linspace(0.0, 1.0, 3, DType::I32, &CPU).unwrap_err().to_string();
    assert!(message.contains("i32") && message.contains("arange"), "{message}");
    assert!(Tensor::linspace(0.0, f64::NAN, 3, DType::F32, &CPU).is_err());
}

#[test]
fn spaced_numbers_have_exact_ends_and_are_the_same_backwards() {
    for (start, end) in [(0.0, 1.0), (-1.0, 1.0), (0.1, 0.7), (-1e308, 1e308), (3.0, 3.0), (1e-310, -7.0)] {
        for count in [0, 1, 2, 3, 4, 5, 10, 11, 49, 98, 1001] {
            let of = |start, end| -> Vec<f64> {
                Tensor::linspace(start, end, count, DType::F64, &CPU).unwrap().to_vec().unwrap()
            };
            let (there, mut back) = (of(start, end), of(end, start));
            assert_eq!(there.len(), count);
            if count == 1 {
                assert_eq!(there, [start]);
                continue;
            }
            back.reverse();
            assert_eq!(there, back, "{start} to {end} in {count}");
            let (Some(first), Some(last)) = (there.first(), there.last()) else { continue };
            assert_eq!((*first, *last), (start, end));
            for (i, found) in there.iter().enumerate() {
                let part = i as f64 / (count - 1) as f64;
                let wanted = start * (1.0 - part) + end * part;
                let size = start.abs().max(end.abs());
                assert!((found - wanted).abs() <= size * 1e-15, "{found} {wanted}");
            }
            if start == -end && count % 2 == 1 {
                assert_eq!(there[count / 2], 0.0);
            }
        }
    }
    let narrow = Tensor::linspace(0.0, 1.0, 7, DType::F32, &CPU).unwrap().to_vec::<f32>().unwrap();
    let wide = Tensor::linspace(0.0, 1.0, 7, DType::F64, &CPU).unwrap().to_vec::<f64>().unwrap();
    assert!(narrow.iter().zip(wide).all(|(narrow, wide)| *narrow == wide as f32));
}

#[test]
fn the_identity_of_every_dtype() {
    for dtype in DType::ALL {
        for (rows, columns) in [(3, 3), (2, 5), (5, 2), (1, 1), (0, 4)] {
            let found = Tensor::eye(rows, columns, dtype, &CPU).unwrap();
            assert_eq!((found.dtype(), &**found.shape()), (dtype, &[rows, columns][..]));
            let found = found.cast(DType::F32).unwrap().to_vec::<f32>().unwrap();
            let wanted = (0..rows * columns).map(|k| if k / columns == k % columns { 1.0 } else { 0.0 });
            assert!(found.into_iter().eq(wanted), "{dtype} {rows} {columns}");
        }
    }
}
