//! NaN and infinity in normalisation, with the results of PyTorch's functions: a group with one of them spoils no other group.

use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;
use selvedge::{Error, Result};

use super::rows::{numbers, tensor};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const GROUPS: usize = 5;

/// A normalisation with a parameter that has a number for each channel.
type WithParameter = fn(&Tensor, &Tensor) -> Result<Tensor>;

/// A normalisation of each row of a matrix, whose rows have an even length.
type OfRows = fn(&Tensor) -> Result<Tensor>;

/// The functions that subtract the mean: infinity - infinity is NaN, and so is the variance of its group.
const CENTRED: [(&str, OfRows); 5] = [
    ("layer_norm", |x| x.layer_norm(&[x.shape()[1]], None, None, 1e-5)),
    ("standardize", |x| x.standardize(1)),
    ("batch_norm", |x| x.transpose(0, 1)?.batch_norm_training(None, None, None, 0.1, 1e-5)?.transpose(0, 1)),
    ("group_norm of channels", |x| {
        let grouped = x.reshape(&[1, GROUPS as isize, -1])?.group_norm(GROUPS, None, None, 1e-5)?;
        grouped.reshape(&[GROUPS as isize, -1])
    }),
    ("group_norm of all channels", |x| {
        let grouped = x.reshape(&[GROUPS as isize, 2, -1])?.group_norm(1, None, None, 1e-5)?;
        grouped.reshape(&[GROUPS as isize, -1])
    }),
];

/// The functions that divide by a norm. It is infinite with an infinity, which is NaN then, and the others are 0.
const SCALED: [(&str, OfRows); 5] = [
    ("rms_norm", |x| x.rms_norm(&[x.shape()[1]], None, None)),
    ("normalize by 1", |x| x.normalize(1.0, 1, 1e-12)),
    ("normalize by 2", |x| x.normalize(2.0, 1, 1e-12)),
    ("normalize by 3", |x| x.normalize(3.0, 1, 1e-12)),
    ("normalize by infinity", |x| x.normalize(f64::INFINITY, 1, 1e-12)),
];

/// Returns a matrix with another number at a place, and the same with a transposed layout.
fn with_number(x: &Tensor, [row, column]: [usize; 2], number: f64) -> Result<[Tensor; 2]> {
    let mut values = numbers(x);
    values[row * x.shape()[1] + column] = number;
    let found = Tensor::from_vec(values, x.shape(), &Device::cpu())?.cast(x.dtype())?;
    let turned = found.transpose(0, 1)?.contiguous()?.transpose(0, 1)?;
    Ok([found, turned])
}

#[test]
fn a_nan_or_an_infinity_spoils_its_group_alone() {
    let functions = CENTRED.map(|function| (function, true)).into_iter();
    for ((name, function), is_centred) in functions.chain(SCALED.map(|function| (function, false))) {
        for (dtype, length) in
            FLOATS.into_iter().flat_map(|dtype| [2, 34, 1000].map(|length| (dtype, length)))
        {
            let x = tensor(&[GROUPS, length], dtype);
            for (number, place) in [
                (f64::NAN, [0, 0]),
                (f64::NAN, [4, length - 1]),
                (f64::INFINITY, [2, length / 2]),
                (f64::NEG_INFINITY, [1, 1]),
            ] {
                let [clean, turned] = with_number(&x, place, 0.5).unwrap();
                for (wrong, clean) in with_number(&x, place, number).unwrap().iter().zip([clean, turned]) {
                    let name = format!("{name} of {length} {dtype} with {number} at {place:?}");
                    let (found, wanted) = (function(wrong).unwrap(), function(&clean).unwrap());
                    assert_eq!(found.dtype(), dtype, "{name}");
                    let (found, wanted) = (numbers(&found), numbers(&wanted));
                    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                        let (row, column) = (at / length, at % length);
                        let text = format!("{name}: {found} at {row}, {column}");
                        if row != place[0] {
                            assert_eq!(found.to_bits(), wanted.to_bits(), "{text}");
                        } else if is_centred || number.is_nan() || column == place[1] {
                            assert!(found.is_nan(), "{text}");
                        } else {
                            assert_eq!(*found, 0.0, "{text}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn norms_of_no_sum_take_nan_and_infinity_as_pytorch_does() {
    let nan = f64::NAN;
    let x = Tensor::new([[1.0, nan, 0.0], [2.0, f64::INFINITY, -4.0]], &Device::cpu()).unwrap();
    // NaN counts as an element that is not 0, and so does infinity.
    let of_count = numbers(&x.normalize(0.0, 1, 1e-12).unwrap());
    assert_eq!((of_count[0], of_count[2]), (0.5, 0.0));
    assert!(of_count[1].is_nan());
    assert_eq!(of_count[3..], [2.0 / 3.0, f64::INFINITY, -4.0 / 3.0]);
    // The least absolute value.
    let of_least = numbers(&x.normalize(f64::NEG_INFINITY, 1, 1e-12).unwrap());
    assert!(of_least[..3].iter().all(|x| x.is_nan()), "{of_least:?}");
    assert_eq!(of_least[3..], [1.0, f64::INFINITY, -2.0]);
}

#[test]
fn a_nan_in_a_parameter_spoils_its_channel_alone() {
    for dtype in FLOATS {
        let x = tensor(&[3, 4], dtype);
        let weight = Tensor::new([1.0f32, f32::NAN, 2.0, 0.5], &Device::cpu()).unwrap();
        let clean = Tensor::new([1.0f32, 3.0, 2.0, 0.5], &Device::cpu()).unwrap();
        let functions: [(&str, WithParameter); 6] = [
            ("layer_norm", |x, w| x.layer_norm(&[4], Some(w), None, 1e-5)),
            ("layer_norm's bias", |x, w| x.layer_norm(&[4], None, Some(w), 1e-5)),
            ("rms_norm", |x, w| x.rms_norm(&[4], Some(w), None)),
            ("batch_norm", |x, w| x.batch_norm_training(None, Some(w), None, 0.1, 1e-5)),
            ("group_norm", |x, w| x.group_norm(2, Some(w), None, 1e-5)),
            ("batch_norm's mean", |x, w| x.batch_norm(w, &w.ones_like()?, None, None, 1e-5)),
        ];
        for (name, function) in functions {
            let (found, wanted) = (function(&x, &weight).unwrap(), function(&x, &clean).unwrap());
            for (at, (found, wanted)) in numbers(&found).into_iter().zip(numbers(&wanted)).enumerate() {
                match at % 4 {
                    1 => assert!(found.is_nan(), "{name} of {dtype}: {found} at {at}"),
                    _ => assert_eq!(found.to_bits(), wanted.to_bits(), "{name} of {dtype} at {at}"),
                }
            }
        }
    }
}

#[test]
fn batch_norm_has_the_statistics_of_nan_and_infinity_in_their_channels_alone() {
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    let x = Tensor::new([[1.0, nan, infinity], [3.0, 0.0, 0.0]], &Device::cpu()).unwrap();
    let mut mean = Tensor::zeros(&[3], DType::F32, &Device::cpu()).unwrap();
    let mut variance = mean.ones_like().unwrap();
    let running = Some((&mut mean, &mut variance));
    let found = numbers(&x.batch_norm_training(running, None, None, 0.25, 0.0).unwrap());
    assert_eq!((found[0], found[3]), (-1.0, 1.0));
    assert!([1, 2, 4, 5].iter().all(|&at| found[at].is_nan()), "{found:?}");
    let (mean, variance) = (numbers(&mean), numbers(&variance));
    assert_eq!((mean[0], variance[0]), (0.5, 1.25));
    assert!(mean[1].is_nan() && variance[1].is_nan());
    assert!(mean[2] == f64::INFINITY && variance[2].is_nan());
    // With given statistics each element is its own.
    let mean = Tensor::new([1.0f32, 0.0, 0.0], &Device::cpu()).unwrap();
    let variance = Tensor::new([4.0f32, 1.0, infinity], &Device::cpu()).unwrap();
    let found = numbers(&x.batch_norm(&mean, &variance, None, None, 0.0).unwrap());
    assert_eq!((found[0], found[3], found[4], found[5]), (0.0, 1.0, 0.0, 0.0));
    assert!(found[1].is_nan() && found[2].is_nan());
    let ones = Tensor::new([1.0f32; 3], &Device::cpu()).unwrap();
    let found = numbers(&x.batch_norm(&mean, &ones, None, None, 0.0).unwrap());
    assert!(found[2] == f64::INFINITY && found[5] == 0.0);
}

#[test]
fn running_statistics_follow_pytorchs_formula_for_infinity_nan_and_every_momentum() {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    // By channel two elements whose mean is 3 and unbiased variance 2, but for an infinite mean, one that is NaN and an infinite
    // variance, all exact in each dtype.
    let lists: [[f64; 2]; 4] =
        [[2.0, 4.0], [infinity, 2.0], [nan, 2.0], [-f64::from(f32::MAX), f64::from(f32::MAX)]];
    let of_batch = [(3.0, 2.0), (infinity, nan), (nan, nan), (0.0, infinity)];
    let running = [0.0, 1.0, infinity, -infinity, nan];
    let same = |found: f64, wanted: f64| found == wanted || found.is_nan() && wanted.is_nan();
    for running_dtype in FLOATS {
        for (running, momentum) in running
            .into_iter()
            .flat_map(|running| [0.0, 0.25, 0.5, 0.75, 1.0].map(|momentum| (running, momentum)))
        {
            let rows = [0, 1].map(|row| lists.map(|list| list[row] as f32));
            let x = Tensor::new(rows, &Device::cpu()).unwrap();
            let mut mean = Tensor::full(&[4], running, running_dtype, &Device::cpu()).unwrap();
            let mut variance = mean.clone();
            let pair = Some((&mut mean, &mut variance));
            x.batch_norm_training(pair, None, None, momentum, 1e-5).unwrap();
            let updated = |new: f64| momentum * new + (1.0 - momentum) * running;
            for (at, (mean, variance)) in numbers(&mean).into_iter().zip(numbers(&variance)).enumerate() {
                let (new_mean, new_var) = of_batch[at];
                let name = format!("channel {at}, {running_dtype}, running {running}, momentum {momentum}");
                assert!(same(mean, updated(new_mean)), "{name}: mean {mean}");
                assert!(same(variance, updated(new_var)), "{name}: variance {variance}");
            }
        }
    }
}

#[test]
fn running_statistics_are_computed_in_the_wider_dtype_and_rounded_once() {
    let x = Tensor::new([[1.0f32], [1.0]], &Device::cpu()).unwrap();
    let third = 1.0 / 3.0;
    let of = |dtype: DType| {
        let mut mean = Tensor::full(&[1], 3.0, dtype, &Device::cpu()).unwrap();
        let mut variance = mean.clone();
        x.batch_norm_training(Some((&mut mean, &mut variance)), None, None, third, 1e-5).unwrap();
        [numbers(&mean)[0], numbers(&variance)[0]]
    };
    let single = third as f32;
    let in_f32 = [single + (1.0 - single) * 3.0, single * 0.0 + (1.0 - single) * 3.0];
    assert_eq!(of(DType::F64), [third + (1.0 - third) * 3.0, (1.0 - third) * 3.0]);
    assert_eq!(of(DType::F32), in_f32.map(f64::from));
    assert_eq!(of(DType::F16), in_f32.map(|x| f64::from(half::f16::from_f32(x))));
    assert_eq!(of(DType::BF16), in_f32.map(|x| f64::from(half::bf16::from_f32(x))));
}

#[test]
fn clipping_follows_pytorch_for_nan_infinity_zeros_and_no_elements() {
    let of = |values: &[f64]| Tensor::from_slice(values, &[values.len()], &Device::cpu()).unwrap();
    let clip = |x: &[&Tensor], max_norm: f64| {
        let (clipped, norm) = Tensor::clip_by_global_norm(x, max_norm).unwrap();
        (clipped.iter().map(numbers).collect::<Vec<_>>(), numbers(&norm)[0])
    };
    let (finite, empty) = (of(&[3.0, -4.0]), of(&[]));
    // A norm of NaN makes every element NaN, those of other tensors too.
    let (clipped, norm) = clip(&[&finite, &of(&[f64::NAN])], 1.0);
    assert!(norm.is_nan() && clipped.iter().flatten().all(|x| x.is_nan()), "{clipped:?}");
    // An infinite norm makes the others 0, and infinity NaN.
    for infinity in [f64::INFINITY, f64::NEG_INFINITY] {
        let (clipped, norm) = clip(&[&finite, &of(&[infinity])], 1.0);
        assert_eq!((norm, &clipped[0][..]), (f64::INFINITY, &[0.0, -0.0][..]));
        assert!(clipped[1][0].is_nan());
    }
    // Zeros have the norm 0 and stay, also beside elements of which there are none.
    let zeros = of(&[0.0, -0.0]);
    assert_eq!(clip(&[&zeros, &empty], 1.0), (vec![vec![0.0, -0.0], vec![]], 0.0));
    assert_eq!(clip(&[&empty], 1.0), (vec![vec![]], 0.0));
    assert_eq!(clip(&[&zeros], 0.0), (vec![vec![0.0, -0.0]], 0.0));
    assert_eq!(clip(&[&finite], 0.0), (vec![vec![0.0, -0.0]], 5.0));
    assert_eq!(clip(&[&finite, &empty], f64::INFINITY), (vec![vec![3.0, -4.0], vec![]], 5.0));
    for dtype in [DType::I32, DType::U8, DType::Bool, DType::C64] {
        let other = finite.abs().unwrap().cast(dtype).unwrap();
        match Tensor::clip_by_global_norm(&[&finite, &other], 1.0) {
            Err(Error::DTypeMismatch { operation: "clip_by_global_norm", found, .. }) => {
                assert!(found.contains(&dtype.to_string()), "{found}");
            }
            other => panic!("{dtype}: {other:?}"),
        }
    }
}
