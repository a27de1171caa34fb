//! Row programs: softmax and normalisation against formulas in f64, functions with reductions over groups, their layouts
//! and dtypes. `row_errors` has bad input.

use selvedge::Error;
use selvedge::fuse::{Graph, RowExplanation, RowLaunches};
use selvedge::tensor::{Device, Fused, Tensor, fuse};
use selvedge::types::{DType, Layout, Slice};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const LENGTHS: [usize; 11] = [1, 2, 31, 32, 33, 127, 128, 129, 1000, 1024, 4097];

fn cpu() -> Device {
    Device::cpu()
}

/// Numbers between -4 and 4 without a pattern.
fn samples(count: usize) -> Vec<f64> {
    let mut state = 0x9e37_79b9u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1u32 << 21) - 4.0
    };
    (0..count).map(|_| next()).collect()
}

pub fn tensor(shape: &[usize], dtype: DType) -> Tensor {
    let values = samples(shape.iter().product());
    Tensor::from_vec(values, shape, &cpu()).unwrap().cast(dtype).unwrap()
}

pub fn numbers(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Bits that differ where elements do; a widening cast keeps every difference.
fn bits(x: &Tensor) -> Vec<u64> {
    numbers(x).into_iter().map(f64::to_bits).collect()
}

/// The relative error of one rounding to a dtype, with that of some operations in f32 or f64 before it.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 4.95e-4,
        DType::BF16 => 3.92e-3,
        DType::F32 => 3e-6,
        _ => 1e-13,
    }
}

/// Compares with a reference. `size` is the size of the terms whose differences the results are.
fn compare(name: &str, found: &Tensor, wanted: &[f64], size: f64) {
    let error = tolerance(found.dtype());
    let computing = if found.dtype() == DType::F64 { 1e-13 } else { 3e-6 };
    // Half of the smallest f16.
    let least = if found.dtype() == DType::F16 { 3e-8 } else { 0.0 };
    // Numbers from this size on round to infinity.
    let limit = if found.dtype() == DType::F16 { 65520.0 } else { f64::INFINITY };
    let found = numbers(found);
    assert_eq!(found.len(), wanted.len(), "{name}");
    for (index, (found, wanted)) in found.into_iter().zip(wanted).enumerate() {
        if wanted.abs() >= limit {
            assert_eq!(found, f64::INFINITY.copysign(*wanted), "{name}, element {index}");
            continue;
        }
        let bound = error * wanted.abs() + computing * size + least;
        assert!((found - wanted).abs() <= bound, "{name}, element {index}: {found} instead of {wanted}");
    }
}

type Function = fn(&Tensor) -> selvedge::Result<Tensor>;
type Reference = fn(&[f64]) -> Vec<f64>;

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn variance(x: &[f64]) -> f64 {
    let mean = mean(x);
    x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64
}

fn normalised(x: &[f64], eps: f64) -> Vec<f64> {
    let (mean, root) = (mean(x), (variance(x) + eps).sqrt());
    x.iter().map(|x| (x - mean) / root).collect()
}

fn largest(x: &[f64]) -> f64 {
    x.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn logarithms(x: &[f64]) -> Vec<f64> {
    let largest = largest(x);
    let total: f64 = x.iter().map(|x| (x - largest).exp()).sum();
    x.iter().map(|x| x - largest - total.ln()).collect()
}

fn divided(x: &[f64], norm: f64) -> Vec<f64> {
    x.iter().map(|x| x / norm.max(1e-12)).collect()
}

/// Functions along the last axis, with a formula for a row and the size of its terms.
const FUNCTIONS: [(&str, Function, Reference, f64); 11] = [
    ("softmax", |x| x.softmax(-1), |x| logarithms(x).into_iter().map(f64::exp).collect(), 0.0),
    ("log_softmax", |x| x.log_softmax(-1), logarithms, 16.0),
    ("layer_norm", |x| x.layer_norm(&[x.shape()[1]], None, None, 1e-5), |x| normalised(x, 1e-5), 4.0),
    (
        "rms_norm",
        |x| x.rms_norm(&[x.shape()[1]], None, Some(1e-3)),
        |x| {
            let root = (x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64 + 1e-3).sqrt();
            x.iter().map(|x| x / root).collect()
        },
        0.0,
    ),
    (
        "normalize 0",
        |x| x.normalize(0.0, -1, 1e-12),
        |x| divided(x, x.iter().filter(|x| **x != 0.0).count() as f64),
        0.0,
    ),
    ("normalize 1", |x| x.normalize(1.0, -1, 1e-12), |x| divided(x, x.iter().map(|x| x.abs()).sum()), 0.0),
    (
        "normalize 2",
        |x| x.normalize(2.0, -1, 1e-12),
        |x| divided(x, x.iter().map(|x| x * x).sum::<f64>().sqrt()),
        0.0,
    ),
    (
        "normalize 3.5",
        |x| x.normalize(3.5, -1, 1e-12),
        |x| divided(x, x.iter().map(|x| x.abs().powf(3.5)).sum::<f64>().powf(1.0 / 3.5)),
        0.0,
    ),
    (
        "normalize infinity",
        |x| x.normalize(f64::INFINITY, -1, 1e-12),
        |x| divided(x, x.iter().map(|x| x.abs()).fold(0.0, f64::max)),
        0.0,
    ),
    (
        "normalize -infinity",
        |x| x.normalize(f64::NEG_INFINITY, -1, 1e-12),
        |x| divided(x, x.iter().map(|x| x.abs()).fold(f64::INFINITY, f64::min)),
        0.0,
    ),
    (
        "standardize",
        |x| if x.shape()[1] == 1 { x.zeros_like() } else { x.standardize(-1) },
        |x| if x.len() == 1 { vec![0.0] } else { normalised(x, 0.0) },
        4.0,
    ),
];

#[test]
fn functions_of_rows_follow_their_formulas() {
    for (name, function, reference, size) in FUNCTIONS {
        for dtype in FLOATS {
            for length in LENGTHS {
                let x = tensor(&[2, length], dtype);
                let found = function(&x).unwrap();
                assert_eq!((found.dtype(), &found.shape()[..]), (dtype, &[2, length][..]), "{name}");
                let wanted: Vec<f64> = numbers(&x).chunks(length).flat_map(reference).collect();
                compare(&format!("{name} of {length} {dtype}"), &found, &wanted, size);
            }
        }
    }
}

#[test]
fn narrow_floats_are_computed_in_f32_and_rounded_once() {
    let parameters = |dtype| (tensor(&[65], dtype), tensor(&[65], dtype));
    for dtype in [DType::F16, DType::BF16] {
        let x = tensor(&[3, 65], dtype);
        let wide = x.cast(DType::F32).unwrap();
        for (name, function, ..) in FUNCTIONS {
            // The default of eps depends on the dtype, so the table passes one.
            let wanted = function(&wide).unwrap().cast(dtype).unwrap();
            assert_eq!(bits(&function(&x).unwrap()), bits(&wanted), "{name} of {dtype}");
        }
        let (weight, bias) = parameters(dtype);
        let found = x.layer_norm(&[65], Some(&weight), Some(&bias), 1e-5).unwrap();
        let (weight, bias) = (weight.cast(DType::F32).unwrap(), bias.cast(DType::F32).unwrap());
        let wanted = wide.layer_norm(&[65], Some(&weight), Some(&bias), 1e-5).unwrap();
        assert_eq!(bits(&found), bits(&wanted.cast(dtype).unwrap()), "layer_norm of {dtype}");
        // Parameters of another dtype do not change that of the result.
        let mixed = x.layer_norm(&[65], Some(&weight), Some(&bias), 1e-5).unwrap();
        assert_eq!((mixed.dtype(), bits(&mixed)), (dtype, bits(&found)));
        let shares = fuse([&x], |[x]| {
            let powers = (x - x.max_group()).exp();
            powers * powers.sum_group().reciprocal()
        });
        assert_eq!(bits(&shares.unwrap()), bits(&x.softmax(-1).unwrap()));
    }
}

#[test]
fn a_normalised_sum_has_the_bits_of_a_sum_and_its_norm() {
    for (rows, size) in [(3, 65), (1, 4097), (40, 8)] {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let [x, other] = [tensor(&[rows, size], dtype), tensor(&[rows, size], dtype).exp().unwrap()];
            let [weight, bias] = [tensor(&[size], DType::F32), tensor(&[size], dtype)];
            let wanted = (&x + &other).unwrap();
            for (weight, bias) in [(None, None), (Some(&weight), None), (Some(&weight), Some(&bias))] {
                let [sum, norm] = x.add_layer_norm(&other, &[size], weight, bias, 1e-5).unwrap();
                assert_eq!(bits(&sum), bits(&wanted), "a sum of {dtype}");
                let wanted = wanted.layer_norm(&[size], weight, bias, 1e-5).unwrap();
                assert_eq!(bits(&norm), bits(&wanted), "layer_norm of {size} {dtype}");
            }
            let [sum, norm] = x.add_rms_norm(&other, &[size], Some(&weight), None).unwrap();
            assert_eq!(bits(&sum), bits(&wanted));
            let wanted = wanted.rms_norm(&[size], Some(&weight), None).unwrap();
            assert_eq!(bits(&norm), bits(&wanted), "rms_norm of {size} {dtype}");
        }
    }
    let [x, wide] = [tensor(&[2, 4], DType::F32), tensor(&[2, 4], DType::F64)];
    for (other, text) in [(&wide, "f64 of shape [2, 4]"), (&tensor(&[4], DType::F32), "f32 of shape [4]")] {
        let error = x.add_layer_norm(other, &[4], None, None, 1e-5).unwrap_err().to_string();
        assert!(error.contains("f32 of shape [2, 4]") && error.contains(text), "{error}");
    }
}

#[test]
fn a_row_program_has_the_bits_of_its_operations_one_by_one() {
    for (shape, axis) in [([3, 4097], 1), ([1500, 3], 0), ([40, 33], 1)] {
        let x = tensor(&shape, DType::F32);
        let shifted = (&x - &x.max_keepdim(axis).unwrap()).unwrap();
        let powers = shifted.exp().unwrap();
        let total = powers.sum_keepdim(axis).unwrap();
        let shares = (&powers * &total.reciprocal().unwrap()).unwrap();
        assert!(bits(&x.softmax(axis).unwrap()) == bits(&shares), "softmax of {shape:?} over {axis}");
        let logarithms = (&shifted - &total.log().unwrap()).unwrap();
        assert!(
            bits(&x.log_softmax(axis).unwrap()) == bits(&logarithms),
            "its logarithm, {shape:?} over {axis}"
        );
        let centred = (&x - &x.mean_keepdim(axis).unwrap()).unwrap();
        let deviation = x.var_keepdim(axis, 0).unwrap().sqrt().unwrap();
        let standard = (&centred / &deviation).unwrap();
        assert!(
            bits(&x.standardize(axis).unwrap()) == bits(&standard),
            "standardize of {shape:?} over {axis}"
        );
    }
}

#[test]
fn layouts_and_axes_do_not_change_results() {
    let x = tensor(&[4, 6, 5], DType::F32);
    let views = [
        x.clone(),
        x.permute(&[2, 0, 1]).unwrap(),
        x.slice(1, Slice::from(..).step(-2)).unwrap(),
        x.narrow(0, 1, 1).unwrap().expand(&[3, 6, 5]).unwrap(),
        x.select(2, 3).unwrap().unsqueeze(1).unwrap(),
    ];
    for view in views {
        let plain = view.copy().unwrap().contiguous().unwrap();
        for axis in 0..3isize {
            for (name, function, ..) in FUNCTIONS {
                if name.starts_with("layer") || name.starts_with("rms") {
                    continue;
                }
                // The table's functions take the last axis of a matrix.
                let along = |x: &Tensor| {
                    let last = x.transpose(axis, -1)?;
                    let rows = last.count() / last.shape()[2];
                    let matrix = last.reshape(&[rows as isize, last.shape()[2] as isize])?;
                    let sizes: Vec<isize> = last.shape().iter().map(|&size| size as isize).collect();
                    function(&matrix)?.reshape(&sizes)?.transpose(axis, -1)
                };
                let wanted = along(&plain).unwrap();
                let found = match name {
                    "softmax" => view.softmax(axis),
                    "log_softmax" => view.log_softmax(axis - 3),
                    "normalize 2" => view.normalize(2.0, axis, 1e-12),
                    "normalize 3.5" => view.normalize(3.5, &[axis], 1e-12),
                    "standardize" if view.shape()[axis as usize] > 1 => view.standardize(axis),
                    _ => along(&view),
                };
                assert_eq!(bits(&found.unwrap()), bits(&wanted), "{name} over axis {axis} of {view:?}");
            }
        }
        let sizes = view.shape()[1..].to_vec();
        let (weight, bias) = (tensor(&sizes, DType::F32), tensor(&sizes, DType::F32));
        let norm = |x: &Tensor| x.layer_norm(&sizes, Some(&weight), Some(&bias), 1e-5).unwrap();
        assert_eq!(bits(&norm(&view)), bits(&norm(&plain)));
        let rows: Vec<f64> = numbers(&plain);
        let (of_weight, of_bias) = (numbers(&weight), numbers(&bias));
        let wanted: Vec<f64> = rows
            .chunks(sizes.iter().product())
            .flat_map(|row| {
                let scaled = normalised(row, 1e-5).into_iter().zip(&of_weight).zip(&of_bias);
                scaled.map(|((x, weight), bias)| x * weight + bias).collect::<Vec<f64>>()
            })
            .collect();
        compare("layer_norm", &norm(&view), &wanted, 16.0);
        let without_bias = view.layer_norm(&sizes, Some(&weight), None, 1e-5).unwrap();
        let without_weight = view.layer_norm(&sizes, None, Some(&bias), 1e-5).unwrap();
        let zeros = bias.zeros_like().unwrap();
        let ones = bias.ones_like().unwrap();
        let with = |weight, bias| numbers(&view.layer_norm(&sizes, Some(weight), Some(bias), 1e-5).unwrap());
        assert_eq!(numbers(&without_bias), with(&weight, &zeros));
        assert_eq!(numbers(&without_weight), with(&ones, &bias));
    }
}

#[test]
fn rows_with_nan_and_infinity_are_those_of_pytorch() {
    const INFINITY: f32 = f32::INFINITY;
    let x = Tensor::new(
        [[0.0, f32::NAN, 1.0], [-INFINITY; 3], [-INFINITY, 2.0, -INFINITY], [INFINITY, 0.0, 0.0]],
        &cpu(),
    )
    .unwrap();
    for dtype in FLOATS {
        let x = x.cast(dtype).unwrap();
        let (softmax, logarithms) = (numbers(&x.softmax(1).unwrap()), numbers(&x.log_softmax(1).unwrap()));
        assert!(softmax[..6].iter().chain(&softmax[9..]).all(|x| x.is_nan()), "{softmax:?}");
        assert_eq!(softmax[6..9], [0.0, 1.0, 0.0]);
        assert!(logarithms[..6].iter().chain(&logarithms[9..]).all(|x| x.is_nan()), "{logarithms:?}");
        assert_eq!(logarithms[6..9], [f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY]);
        assert!(numbers(&x.layer_norm(&[3], None, None, 1e-5).unwrap())[..6].iter().all(|x| x.is_nan()));
    }
    let constant = Tensor::full(&[2, 3], 5.0, DType::F32, &cpu()).unwrap();
    assert_eq!(numbers(&constant.layer_norm(&[3], None, None, 1e-5).unwrap()), [0.0; 6]);
    assert!(numbers(&constant.standardize(1).unwrap()).iter().all(|x| x.is_nan()));
    let zeros = constant.zeros_like().unwrap();
    assert_eq!(numbers(&zeros.normalize(2.0, 1, 1e-12).unwrap()), [0.0; 6]);
    let scalar = Tensor::full(&[], 3.0, DType::BF16, &cpu()).unwrap();
    assert_eq!(numbers(&scalar.softmax(0).unwrap()), [1.0]);
    assert_eq!(numbers(&scalar.log_softmax(-1).unwrap()), [0.0]);
    // The machine epsilon of the dtype.
    for (dtype, eps) in
        FLOATS.into_iter().zip([2f64.powi(-10), 2f64.powi(-7), 2f64.powi(-23), 2f64.powi(-52)])
    {
        let x = tensor(&[2, 8], dtype);
        let x = (&x * 0.125).unwrap();
        let found = x.rms_norm(&[8], None, None).unwrap();
        assert_eq!(bits(&found), bits(&x.rms_norm(&[8], None, Some(eps)).unwrap()), "{dtype}");
    }
}

#[test]
fn empty_tensors_give_empty_tensors() {
    for shape in [[0, 3], [3, 0], [0, 0]] {
        let x = Tensor::zeros(&shape, DType::F32, &cpu()).unwrap();
        for (name, function, ..) in FUNCTIONS {
            assert_eq!(&function(&x).unwrap().shape()[..], &shape, "{name}");
        }
        assert_eq!(&x.group_norm(1, None, None, 1e-5).unwrap().shape()[..], &shape);
    }
}

#[test]
fn norms_of_channels_follow_their_formulas() {
    for dtype in FLOATS {
        for shape in [&[5, 6][..], &[3, 6, 7], &[2, 6, 3, 35]] {
            let x = tensor(shape, dtype);
            let (weight, bias) = (tensor(&[6], DType::F32), tensor(&[6], DType::F32));
            let (of_weight, of_bias) = (numbers(&weight), numbers(&bias));
            let values = numbers(&x);
            let inner: usize = shape[2..].iter().product();
            let channel = |index: usize| index / inner % 6;
            // Elements of a group share a number; each is scaled by its channel.
            let reference = |group: &dyn Fn(usize) -> usize| -> (Vec<f64>, Vec<Vec<f64>>) {
                let count = (0..values.len()).map(group).max().unwrap_or(0) + 1;
                let mut groups = vec![Vec::new(); count];
                for (index, value) in values.iter().enumerate() {
                    groups[group(index)].push(*value);
                }
                let of: Vec<(f64, f64)> =
                    groups.iter().map(|x| (mean(x), (variance(x) + 1e-5).sqrt())).collect();
                let scaled = values.iter().enumerate().map(|(index, x)| {
                    let (mean, root) = of[group(index)];
                    (x - mean) / root * of_weight[channel(index)] + of_bias[channel(index)]
                });
                (scaled.collect(), groups)
            };
            for count in [1, 2, 3, 6] {
                if inner * 6 / count == 1 {
                    continue;
                }
                let group = |index: usize| index / (inner * 6) * count + channel(index) / (6 / count);
                let found = x.group_norm(count, Some(&weight), Some(&bias), 1e-5).unwrap();
                let name = format!("group_norm of {count} groups of {shape:?} {dtype}");
                compare(&name, &found, &reference(&group).0, 16.0);
            }
            let (wanted, channels) = reference(&channel);
            let mut running_mean = Tensor::full(&[6], 2.0, DType::F32, &cpu()).unwrap();
            let mut running_var = Tensor::full(&[6], 3.0, DType::F32, &cpu()).unwrap();
            let running = Some((&mut running_mean, &mut running_var));
            let found = x.batch_norm_training(running, Some(&weight), Some(&bias), 0.25, 1e-5).unwrap();
            compare(&format!("batch_norm of {shape:?} {dtype}"), &found, &wanted, 16.0);
            let means: Vec<f64> = channels.iter().map(|x| 1.5 + 0.25 * mean(x)).collect();
            compare("running_mean", &running_mean, &means, 4.0);
            let unbiased = |x: &Vec<f64>| variance(x) * x.len() as f64 / (x.len() - 1) as f64;
            let variances: Vec<f64> = channels.iter().map(|x| 2.25 + 0.25 * unbiased(x)).collect();
            compare("running_var", &running_var, &variances, 4.0);
            let alone = x.batch_norm_training(None, Some(&weight), Some(&bias), 0.25, 1e-5).unwrap();
            assert_eq!(bits(&alone), bits(&found));
            // Inference with the statistics of the elements.
            let axes: Vec<isize> = (0..shape.len() as isize).filter(|axis| *axis != 1).collect();
            let work = if dtype == DType::F64 { dtype } else { DType::F32 };
            let wide = x.cast(work).unwrap();
            let (mean, variance) = (wide.mean(&axes).unwrap(), wide.var(&axes, 0).unwrap());
            let inference = x.batch_norm(&mean, &variance, Some(&weight), Some(&bias), 1e-5).unwrap();
            assert_eq!(bits(&inference), bits(&found), "{shape:?} {dtype}");
            let plain = x.batch_norm(&mean, &variance, None, None, 1e-5).unwrap();
            assert_eq!(bits(&plain), bits(&x.batch_norm_training(None, None, None, 0.1, 1e-5).unwrap()));
        }
    }
}

#[test]
fn a_fused_function_reduces_groups_of_any_axes() {
    let x = tensor(&[3, 4, 5], DType::F64);
    let mut statistics = Fused::with_outputs(|[x, scale]| {
        let mean = x.mean_group();
        [mean, (x - mean) * scale, x.argmax_group(), x.ge(mean).all_group(), x.lt(0).any_group()]
    });
    type Axes<'a> = &'a [isize];
    let lists: [(Axes<'_>, [usize; 3]); 5] = [
        (&[], [3, 4, 5]),
        (&[-1], [3, 4, 1]),
        (&[0], [1, 4, 5]),
        (&[2, 0], [1, 4, 1]),
        (&[0, 1, 2], [1, 1, 1]),
    ];
    for (axes, groups) in lists {
        statistics = statistics.over(axes);
        let [mean, scaled, place, all, any] = statistics.run_all((&x, 0.5)).unwrap();
        let of_tensor = x.mean_keepdim(axes).unwrap();
        assert_eq!((&mean.shape()[..], bits(&mean)), (&groups[..], bits(&of_tensor)), "{axes:?}");
        assert_eq!(bits(&scaled), bits(&((&x - &of_tensor).unwrap() * 0.5).unwrap()));
        assert_eq!((place.dtype(), all.dtype()), (DType::I64, DType::Bool));
        assert_eq!(bits(&any), bits(&x.lt(0).unwrap().any_keepdim(axes).unwrap()));
        assert_eq!(bits(&all), bits(&x.ge(&of_tensor).unwrap().all_keepdim(axes).unwrap()));
        // `argmax` of a tensor takes one axis, or all.
        match axes {
            [axis] => assert_eq!(bits(&place), bits(&x.argmax_keepdim(*axis).unwrap())),
            [_, _, _] => assert_eq!(bits(&place), bits(&x.argmax_all().unwrap())),
            _ => {}
        }
    }
    let ends = Fused::with_outputs(|[x]| [x.min_group(), x.max_group(), x.sum_group(), x.prod_group()]);
    let integers = Tensor::new([[3i32, -2, 7], [1, 1, 5]], &cpu()).unwrap();
    let [least, most, sum, product] = ends.over(..).run_all([&integers]).unwrap();
    assert_eq!((least.item::<i32>().unwrap(), most.item::<i32>().unwrap()), (-2, 7));
    assert_eq!((sum.item::<i64>().unwrap(), product.item::<i64>().unwrap()), (15, -210));
    let mean = fuse([&integers], |[x]| x.mean_group()).unwrap();
    assert_eq!(
        (mean.dtype(), numbers(&mean)),
        (DType::F32, vec![f64::from(8.0f32 / 3.0), f64::from(7.0f32 / 3.0)])
    );
    // Into memory that is there, and with a number that no f16 holds.
    let mut target = Tensor::zeros(&[3, 3], DType::F64, &cpu()).unwrap();
    Fused::new(|[x]| x - x.min_group()).run_into([&integers], [target.slice_mut(0, 1..).unwrap()]).unwrap();
    assert_eq!(numbers(&target), [0.0, 0.0, 0.0, 5.0, 0.0, 9.0, 0.0, 0.0, 4.0]);
    let halves = tensor(&[2, 3], DType::F16);
    let below = Fused::new(|[x, y]| (x - x.max_group()).lt(y).all_group());
    assert_eq!(numbers(&below.run((&halves, 1e6)).unwrap()), [1.0, 1.0]);
}

#[test]
fn a_program_runs_equal_reductions_once_and_explains_its_kernels() {
    let graph = Graph::new();
    let [x, weight] = graph.inputs([DType::BF16, DType::F32]);
    let eps = graph.scalar(DType::F32);
    let first = (x - x.mean_group()).square().mean_group();
    let second = (x - x.mean_group()) * (first + eps).rsqrt() * weight;
    let program = graph.row_program(&[second, first, x.mean_group()]).unwrap();
    assert_eq!((program.reductions(), program.scalars()), (2, &[DType::F32][..]));
    assert_eq!(program.outputs(), [DType::F32, DType::BF16, DType::BF16]);
    assert_eq!([0, 1, 2, 3].map(|output| program.is_per_group(output)), [false, true, true, false]);
    let of = |sizes: &[usize]| Layout::contiguous(sizes).unwrap();
    let kernels = |plan: &RowExplanation| -> Vec<(usize, String, usize, usize)> {
        let described = plan
            .kernels
            .iter()
            .map(|kernel| (kernel.phase, kernel.name.clone(), kernel.bytes_read, kernel.bytes_written));
        described.collect()
    };
    let (matrix, column, row) = (of(&[8, 100]), of(&[8, 1]), of(&[100]));
    let plan = program.explain(&[matrix, row], &[1], &[matrix, column, column], (9, 0)).unwrap();
    assert_eq!(
        kernels(&plan),
        [(0, "2 reductions (sum, sum) and all outputs".to_owned(), 1600 + 400, 3200 + 32)]
    );
    assert_eq!(plan.temporary(), 0);
    assert!(plan.schedule.contains("a warp for each row, in registers"), "{}", plan.schedule);
    assert!(matches!(plan.kernels[0].launches, RowLaunches::Rows(_)));
    assert!(plan.to_string().contains(".entry fused"));
    let across = of(&[1, 100]);
    let plan = program.explain(&[matrix, column], &[0], &[matrix, across, across], (9, 0)).unwrap();
    assert_eq!(
        kernels(&plan),
        [(0, "2 reductions (sum, sum) and all outputs".to_owned(), 1600 + 32, 3200 + 400)]
    );
    // Columns of more than 1024 elements run as several kernels without clusters.
    let (matrix, column) = (of(&[1025, 100]), of(&[1025, 1]));
    let plan = program.explain(&[matrix, column], &[0], &[matrix, across, across], (8, 0)).unwrap();
    let wanted = [
        (0, "sum of each group", 205_000, 400),
        (1, "sum of each group", 205_000 + 400, 400),
        (2, "outputs per element", 205_000 + 4100 + 800, 410_000),
        (2, "outputs per group", 800, 400),
    ];
    let wanted = wanted.map(|(phase, name, read, written)| (phase, name.to_owned(), read, written));
    assert_eq!(kernels(&plan), wanted);
    assert_eq!((plan.temporary(), plan.bytes_read(), plan.bytes_written()), (800, 621_100, 411_200));
    assert!(matches!(plan.kernels[0].launches, RowLaunches::Reduction(_)));
    let text = plan.to_string();
    assert!(text.starts_with("4 kernels, because") && text.contains(".entry fused"), "{text}");
    assert!(text.contains("phase 1: sum of each group; reads 205400 bytes"), "{text}");
    let x = tensor(&[8, 100], DType::F32);
    let softmax = Fused::new(|[x]| (x - x.max_group()).exp() / (x - x.max_group()).exp().sum_group());
    let plan = softmax.explain_groups([&x]).unwrap();
    assert_eq!((plan.kernels.len(), plan.bytes_read()), (1, 3200));
    assert!(matches!(softmax.explain([&x]), Err(Error::InvalidArgument { .. })));
    assert!(matches!(Fused::new(|[x]| x.exp()).explain_groups([&x]), Err(Error::InvalidArgument { .. })));
}
