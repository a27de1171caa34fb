//! Gradients of softmax, normalisation and cross-entropy: against central differences in f64, in narrower dtypes against
//! f64, and bad input. `clip_by_global_norm`.

use selvedge::tensor::{CrossEntropyOptions, Device, LossReduction, NormGradients, Tensor};
use selvedge::types::{DType, Slice};
use selvedge::{Error, Result};

const EPS: f64 = 1e-3;

fn samples(seed: usize, shape: &[usize]) -> Tensor {
    let number = |at: usize| ((at * 7 + 13 * seed + 1) as f64 * 0.618_033_988_749_894_9).fract() * 3.0 - 1.2;
    let numbers: Vec<f64> = (0..shape.iter().product()).map(number).collect();
    Tensor::from_vec(numbers, shape, &Device::cpu()).unwrap()
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn labels(numbers: &[i64], shape: &[isize]) -> Tensor {
    Tensor::new(numbers.to_vec(), &Device::cpu()).unwrap().reshape(shape).unwrap()
}

/// Compares a gradient with the differences of Σ w f(x).
fn check(
    name: &str,
    x: &Tensor,
    weights: &Tensor,
    found: &Tensor,
    function: &dyn Fn(&Tensor) -> Result<Tensor>,
) {
    assert_eq!(found.shape(), x.shape(), "{name}");
    let loss =
        |x: &Tensor| (&function(x).unwrap() * weights).unwrap().sum_all().unwrap().item::<f64>().unwrap();
    let (values, found) = (numbers(x), numbers(found));
    for at in 0..values.len() {
        let moved = |by: f64| {
            let mut values = values.clone();
            values[at] += by;
            loss(&Tensor::from_vec(values, x.shape(), &Device::cpu()).unwrap())
        };
        let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        let error = (found[at] - difference).abs();
        assert!(
            error <= 2e-7 * (1.0 + difference.abs()),
            "{name}, element {at}: {}, not {difference}",
            found[at]
        );
    }
}

#[test]
fn gradients_of_softmax_are_their_differences() {
    for (shape, axis) in [(&[3, 5][..], -1), (&[4, 3, 2], 1), (&[1, 1], 0), (&[], 0)] {
        let (x, g) = (samples(1, shape), samples(2, shape));
        let found = x.softmax(axis).unwrap().softmax_backward(&g, axis, None).unwrap();
        check("softmax", &x, &g, &found, &|x| x.softmax(axis));
        let found = x.log_softmax(axis).unwrap().log_softmax_backward(&g, axis, None).unwrap();
        check("log_softmax", &x, &g, &found, &|x| x.log_softmax(axis));
        // A residual that skips the function: the gradient of f(x) + x.
        let found = x.softmax(axis).unwrap().softmax_backward(&g, axis, Some(&g)).unwrap();
        check("softmax with a residual", &x, &g, &found, &|x| &x.softmax(axis)? + x);
        let found = x.log_softmax(axis).unwrap().log_softmax_backward(&g, axis, Some(&g)).unwrap();
        check("log_softmax with a residual", &x, &g, &found, &|x| &x.log_softmax(axis)? + x);
    }
}

type Forward = fn(&Tensor, Option<&Tensor>, Option<&Tensor>) -> Result<Tensor>;
type Backward = fn(&Tensor, &Tensor, Option<&Tensor>, Option<&Tensor>) -> Result<NormGradients>;

/// Name, shape of the elements and of the parameters, the function and its gradients.
type Norm = (&'static str, &'static [usize], &'static [usize], Forward, Backward);

const NORMS: [Norm; 5] = [
    (
        "layer_norm",
        &[3, 2, 4],
        &[2, 4],
        |x, w, b| x.layer_norm(&[2, 4], w, b, EPS),
        |x, g, w, r| x.layer_norm_backward(g, &[2, 4], w, EPS, r, true),
    ),
    (
        "layer_norm of one group",
        &[5],
        &[5],
        |x, w, b| x.layer_norm(&[5], w, b, EPS),
        |x, g, w, r| x.layer_norm_backward(g, &[5], w, EPS, r, true),
    ),
    (
        "rms_norm",
        &[70, 4],
        &[4],
        |x, w, _| x.rms_norm(&[4], w, Some(EPS)),
        |x, g, w, r| x.rms_norm_backward(g, &[4], w, Some(EPS), r, true),
    ),
    (
        "group_norm",
        &[2, 6, 3],
        &[6],
        |x, w, b| x.group_norm(3, w, b, EPS),
        |x, g, w, r| x.group_norm_backward(g, 3, w, EPS, r, true),
    ),
    (
        "batch_norm",
        &[4, 3, 2],
        &[3],
        |x, w, b| x.batch_norm_training(None, w, b, 0.1, EPS),
        |x, g, w, r| x.batch_norm_backward(g, w, EPS, r),
    ),
];

#[test]
fn gradients_of_normalisation_are_their_differences() {
    for (name, shape, parameters, forward, backward) in NORMS {
        let (x, g, residual) = (samples(1, shape), samples(2, shape), samples(3, shape));
        let (weight, bias) = (samples(4, parameters), samples(5, parameters));
        let plain = backward(&x, &g, None, None).unwrap();
        check(name, &x, &g, &plain.input, &|x| forward(x, None, None));
        let all = backward(&x, &g, Some(&weight), None).unwrap();
        check(name, &x, &g, &all.input, &|x| forward(x, Some(&weight), Some(&bias)));
        check(name, &weight, &g, &all.weight.unwrap(), &|weight| forward(&x, Some(weight), Some(&bias)));
        match all.bias {
            Some(of_bias) => {
                check(name, &bias, &g, &of_bias, &|bias| forward(&x, Some(&weight), Some(bias)));
            }
            None => assert_eq!(name, "rms_norm"),
        }
        // The residual's gradient is added before the only rounding.
        let added = backward(&x, &g, Some(&weight), Some(&residual)).unwrap().input;
        assert_eq!(numbers(&added), numbers(&(&all.input + &residual).unwrap()), "{name}");
    }
}

#[test]
fn gradients_in_narrow_dtypes_are_those_of_f64() {
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::BF16, 2e-2), (DType::F16, 2e-3)] {
        let narrow = |x: &Tensor| x.cast(dtype).unwrap();
        let close = |name: &str, found: &Tensor, wanted: &Tensor, of: DType| {
            assert_eq!(found.dtype(), of, "{name}");
            for (found, wanted) in numbers(found).into_iter().zip(numbers(wanted)) {
                let error = (found - wanted).abs();
                assert!(
                    error <= tolerance * (1.0 + wanted.abs()),
                    "{name} of {dtype}: {found}, not {wanted}"
                );
            }
        };
        for (name, shape, parameters, _, backward) in NORMS {
            let [x, g, w] =
                [samples(1, shape), samples(2, shape), samples(4, parameters)].map(|x| narrow(&x));
            let wide = [&x, &g, &w].map(|x| x.cast(DType::F64).unwrap());
            let found = backward(&x, &g, Some(&w), None).unwrap();
            let wanted = backward(&wide[0], &wide[1], Some(&wide[2]), None).unwrap();
            close(name, &found.input, &wanted.input, dtype);
            close(name, &found.weight.unwrap(), &wanted.weight.unwrap(), DType::F32);
            match (found.bias, wanted.bias) {
                (Some(found), Some(wanted)) => close(name, &found, &wanted, DType::F32),
                (found, wanted) => assert!(found.is_none() && wanted.is_none() && name == "rms_norm"),
            }
        }
        let (x, target) = (narrow(&samples(1, &[3, 5])), labels(&[4, -100, 0], &[3]));
        let options = CrossEntropyOptions { label_smoothing: 0.1, ..CrossEntropyOptions::default() };
        let (loss, gradient) = x.cross_entropy_with_gradient(&target, options).unwrap();
        let x = x.cast(DType::F64).unwrap();
        let (wanted_loss, wanted) = x.cross_entropy_with_gradient(&target, options).unwrap();
        close("cross_entropy", &loss, &wanted_loss, dtype);
        close("gradient of cross_entropy", &gradient, &wanted, dtype);
    }
}

#[test]
fn gradients_of_cross_entropy_are_their_differences() {
    let reductions = [LossReduction::None, LossReduction::Mean, LossReduction::Sum, LossReduction::BatchMean];
    for (shape, target) in [
        (&[4, 3][..], labels(&[2, -100, 0, 1], &[4])),
        (&[2, 3, 2], labels(&[0, 1, -100, 2], &[2, 2])),
        (&[3], labels(&[1], &[])),
    ] {
        let x = samples(1, shape);
        for reduction in reductions {
            for label_smoothing in [0.0, 0.1, 0.9] {
                let options = CrossEntropyOptions { reduction, label_smoothing, ignore_index: -100 };
                let (loss, gradient) = x.cross_entropy_with_gradient(&target, options).unwrap();
                assert_eq!(numbers(&loss), numbers(&x.cross_entropy(&target, options).unwrap()));
                let ones = loss.ones_like().unwrap();
                let name = format!("{options:?} of {shape:?}");
                check(&name, &x, &ones, &gradient, &|x| x.cross_entropy(&target, options));
                let weights = samples(6, loss.shape());
                let found = x.cross_entropy_backward(&target, options, &weights).unwrap();
                check(&name, &x, &weights, &found, &|x| x.cross_entropy(&target, options));
            }
        }
    }
    // Logits of -∞ are classes without probability.
    let x = Tensor::new([[f64::NEG_INFINITY, 0.0, 0.0]], &Device::cpu()).unwrap();
    let options = CrossEntropyOptions::default();
    let (loss, gradient) = x.cross_entropy_with_gradient(&labels(&[1], &[1]), options).unwrap();
    assert_eq!(loss.item::<f64>().unwrap(), 2f64.ln());
    assert_eq!(numbers(&gradient), [0.0, -0.5, 0.5]);
}

#[test]
fn a_gradient_of_cross_entropy_in_place_has_the_same_bits() {
    let dtypes = [DType::F16, DType::BF16, DType::F32, DType::F64];
    let reductions = [LossReduction::None, LossReduction::Mean, LossReduction::Sum, LossReduction::BatchMean];
    for (shape, target) in [
        (&[4, 300][..], labels(&[2, -100, 299, 1], &[4])),
        (&[2, 3, 2], labels(&[0, 1, -100, 2], &[2, 2])),
        (&[3], labels(&[1], &[])),
        (&[0, 3], labels(&[], &[0])),
    ] {
        for (dtype, reduction) in dtypes.into_iter().flat_map(|dtype| reductions.map(|of| (dtype, of))) {
            for (label_smoothing, ignore_index) in [(0.0, -100), (0.1, 2)] {
                let options = CrossEntropyOptions { reduction, label_smoothing, ignore_index };
                let target = target.maximum(if ignore_index == 2 { 0 } else { -100 }).unwrap();
                let x = samples(1, shape).cast(dtype).unwrap();
                let (wanted_loss, wanted) = x.cross_entropy_with_gradient(&target, options).unwrap();
                let same = |found: &Tensor, wanted: &Tensor, what: &str| {
                    let bytes = [found, wanted].map(|x| x.to_bytes().unwrap());
                    assert!(bytes[0] == bytes[1], "{what} of {dtype} {shape:?}: {options:?}");
                };
                let run =
                    |x: &mut Tensor| x.in_place().cross_entropy_with_gradient(&target, options).unwrap();
                let mut own = x.copy().unwrap();
                same(&run(&mut own), &wanted_loss, "the loss");
                same(&own, &wanted, "the gradient");
                // Another tensor keeps its elements.
                let (mut shared, before) = (x.clone(), x.copy().unwrap());
                run(&mut shared);
                same(&shared, &wanted, "the gradient of shared logits");
                same(&x, &before, "the shared logits");
            }
        }
    }
    // A part, whose elements are not adjacent.
    let (x, target) = (samples(3, &[5, 8]), labels(&[0, 2], &[2]));
    let mut whole = x.copy().unwrap();
    let mut part = whole.slice_mut(0, 1..3).unwrap().slice(1, Slice::from(..).step(2)).unwrap();
    let apart = x.narrow(0, 1, 2).unwrap().slice(1, Slice::from(..).step(2)).unwrap();
    let options = CrossEntropyOptions::default();
    part.cross_entropy_with_gradient(&target, options).unwrap();
    let (_, wanted) = apart.cross_entropy_with_gradient(&target, options).unwrap();
    let found = whole.narrow(0, 1, 2).unwrap().slice(1, Slice::from(..).step(2)).unwrap();
    assert_eq!(numbers(&found), numbers(&wanted));
    assert_eq!(numbers(&whole.narrow(0, 3, 2).unwrap()), numbers(&x.narrow(0, 3, 2).unwrap()));
    // A wrong label changes nothing.
    let mut own = x.copy().unwrap();
    let found = own.in_place().cross_entropy_with_gradient(&labels(&[0, 8, 0, 0, 0], &[5]), options);
    assert!(matches!(found, Err(Error::IndexOutOfRange { index: 8, .. })), "{found:?}");
    assert_eq!(numbers(&own), numbers(&x));
}

#[test]
fn an_ignored_label_that_no_float_of_the_logits_holds_is_compared_exactly() {
    // Beside each label, those to which a dtype of the logits or f32 would round it.
    let ignored = [
        (257, vec![256]),
        (50_256, vec![50_176]),
        (-999, vec![-1000]),
        (i64::from(i32::MAX), vec![1 << 31]),
        (-16_777_217, vec![-16_777_216]),
        (-100, vec![-101]),
    ];
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        let x = samples(1, &[4, 300]).cast(dtype).unwrap();
        for ((ignore_index, near), label_smoothing) in
            ignored.iter().flat_map(|case| [(case, 0.0), (case, 0.1)])
        {
            let name = format!("{ignore_index} with {label_smoothing} of {dtype}");
            let options =
                CrossEntropyOptions { ignore_index: *ignore_index, label_smoothing, ..Default::default() };
            // The loss, and the gradient by each function.
            let run = |label: i64, options: CrossEntropyOptions| -> Result<Vec<Vec<u8>>> {
                let target = labels(&[256, label, 299, label], &[4]);
                let loss = x.cross_entropy(&target, options)?;
                let (with_gradient, gradient) = x.cross_entropy_with_gradient(&target, options)?;
                let backward = x.cross_entropy_backward(&target, options, &with_gradient.ones_like()?)?;
                let mut own = x.copy()?;
                let in_place = own.in_place().cross_entropy_with_gradient(&target, options)?;
                [loss, with_gradient, in_place, gradient, backward, own]
                    .map(|x| x.to_bytes())
                    .into_iter()
                    .collect()
            };
            let found = run(*ignore_index, options);
            let default = CrossEntropyOptions { ignore_index: -100, ..options };
            assert!(found.unwrap() == run(-100, default).unwrap(), "{name}");
            let wrong = [-100, i64::MIN, -1, 300].into_iter().chain(near.iter().copied());
            for label in wrong.filter(|label| label != ignore_index && *label != 256) {
                let found = run(label, options);
                assert!(
                    matches!(found, Err(Error::IndexOutOfRange { index, .. }) if index == label),
                    "{name}: {label} is {found:?}"
                );
            }
            // The label that the programs ignore is no class either.
            assert!(matches!(run(i64::MIN + 1, options), Err(Error::IndexOutOfRange { .. })), "{name}");
        }
    }
}

#[test]
fn bad_operands_of_gradients_are_errors() {
    let (x, g) = (samples(1, &[2, 3]), samples(2, &[3, 2]));
    let options = CrossEntropyOptions::default();
    let target = labels(&[0, 1], &[2]);
    let smoothed = |label_smoothing| CrossEntropyOptions { label_smoothing, ..options };
    let texts = [
        x.softmax_backward(&g, -1, None).err(),
        x.log_softmax_backward(&x, -1, Some(&g)).err(),
        x.layer_norm_backward(&x, &[3], None, EPS, Some(&g), false).err(),
        x.group_norm_backward(&x, 2, None, EPS, None, false).err(),
        x.cross_entropy(&labels(&[0], &[1]), options).err(),
        x.cross_entropy(&target, smoothed(-0.1)).err(),
        x.cross_entropy(&target, smoothed(1.0)).err(),
        x.cross_entropy(&target, smoothed(f64::NAN)).err(),
        x.cross_entropy_backward(&target, options, &x).err(),
        Tensor::clip_by_global_norm(&[&x], -1.0).err(),
        Tensor::clip_by_global_norm(&[], 1.0).err(),
    ]
    .map(|error| error.unwrap().to_string());
    assert_eq!(
        texts,
        [
            "softmax_backward: found a gradient of shape [3, 2] for shape [2, 3]; wanted equal shapes",
            "log_softmax_backward: found a gradient of shape [3, 2] for shape [2, 3]; wanted equal shapes",
            "layer_norm_backward: found a gradient of shape [3, 2] for shape [2, 3]; wanted equal shapes",
            "group_norm_backward: found 2 groups of 3 channels; wanted a number of groups that divides the channels",
            "cross_entropy: found an input of shape [2, 3] and labels of shape [1]; wanted labels of the input's shape \
             without the classes' axis",
            "cross_entropy: found a label smoothing of -0.1; wanted one from 0 to below 1",
            "cross_entropy: found a label smoothing of 1; wanted one from 0 to below 1",
            "cross_entropy: found a label smoothing of NaN; wanted one from 0 to below 1",
            "cross_entropy_backward: found a gradient of shape [2, 3]; wanted shape []",
            "clip_by_global_norm: found a max_norm of -1; wanted a number that is at least 0",
            "clip_by_global_norm: found no tensors; wanted at least one",
        ]
    );
    for label in [3, -1, i64::MIN] {
        let found = x.cross_entropy(&labels(&[0, label], &[2]), options);
        assert!(
            matches!(found, Err(Error::IndexOutOfRange { operation: "cross_entropy", index, size: 3, .. }) if index == label),
            "{found:?}"
        );
    }
    let found = x.cross_entropy(&x.select(1, 0).unwrap(), options);
    assert!(matches!(found, Err(Error::DTypeMismatch { .. })), "{found:?}");
}

#[test]
fn clipped_tensors_have_the_norm_together() {
    let tensors = [samples(1, &[2, 3]), samples(2, &[5]).cast(DType::F32).unwrap()];
    let total = tensors.iter().flat_map(numbers).map(|x| x * x).sum::<f64>().sqrt();
    let (clipped, norm) = Tensor::clip_by_global_norm(&[&tensors[0], &tensors[1]], 0.5).unwrap();
    assert!((numbers(&norm)[0] - total).abs() < 1e-6);
    let after = clipped.iter().flat_map(numbers).map(|x| x * x).sum::<f64>().sqrt();
    assert!((after - 0.5).abs() < 1e-5 && clipped[1].dtype() == DType::F32);
    let (same, _) = Tensor::clip_by_global_norm(&[&tensors[0]], 100.0).unwrap();
    assert_eq!(numbers(&same[0]), numbers(&tensors[0]));
}
