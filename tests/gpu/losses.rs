//! Losses on a device: they and their gradients have the bits of the CPU, a loss by chunks is close to it, and wrong labels and
//! probabilities are reported.

use selvedge::Error;
use selvedge::nn::{
    CrossEntropyOptions, Reduction, Variable, binary_cross_entropy, binary_cross_entropy_with_logits,
    cross_entropy, kl_div, linear_cross_entropy, mse_loss, nll_loss,
};
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use crate::support::compare::{Agreement, Case, check};
use crate::support::{Outcome, device_tests};

device_tests! {
    losses_have_the_bits_of_the_cpu, a_loss_by_chunks_is_close_to_the_cpu,
    wrong_probabilities_are_reported_late_and_in_graphs => in_child(&[]),
    a_graph_with_a_wrong_label_reports_it_and_goes_on_after_it_is_mended => in_child(&[]),
    a_wrong_label_of_a_loss_by_chunks_is_reported_with_the_number_of_classes => in_child(&[]),
}

type Loss = fn(&Variable, &[Tensor]) -> selvedge::Result<Variable>;

/// The loss and the gradient of an input.
fn with_gradient(x: &[Tensor], loss: Loss) -> selvedge::Result<Vec<Tensor>> {
    let input = Variable::with_grad(x[0].clone())?;
    let loss = loss(&input, x)?;
    loss.backward()?;
    Ok([loss.tensor()].into_iter().chain(input.grad()).collect())
}

fn constant(x: &Tensor) -> Variable {
    Variable::new(x.clone())
}

/// Of probabilities, logits, and labels.
const LOSSES: &[Case] = &[
    ("mse_loss", |x| with_gradient(x, |input, x| mse_loss(input, &constant(&x[1]), Reduction::Mean))),
    ("binary_cross_entropy", |x| {
        with_gradient(x, |input, x| binary_cross_entropy(input, &constant(&x[0]), Reduction::Sum))
    }),
    ("binary_cross_entropy_with_logits", |x| {
        with_gradient(x, |input, x| {
            binary_cross_entropy_with_logits(input, &constant(&x[0]), Reduction::Mean)
        })
    }),
    ("kl_div", |x| {
        with_gradient(x, |input, x| kl_div(&input.log()?, &constant(&x[0]), false, Reduction::BatchMean))
    }),
    ("cross_entropy", |x| {
        with_gradient(x, |input, x| {
            let options = CrossEntropyOptions { label_smoothing: 0.1, ..CrossEntropyOptions::default() };
            cross_entropy(input, &x[2], options)
        })
    }),
    ("nll_loss", |x| {
        with_gradient(x, |input, x| nll_loss(&input.log()?, &x[2], CrossEntropyOptions::default()))
    }),
];

fn wrong_probabilities_are_reported_late_and_in_graphs() -> Outcome {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let right = constant(&Tensor::new([0.0f32, 0.5, 1.0], &device)?);
    type OfElements = fn(&Variable, &Variable, Reduction) -> selvedge::Result<Variable>;
    let with_logits: OfElements = binary_cross_entropy_with_logits;
    let divergence: OfElements = |input, target, reduction| kl_div(input, target, false, reduction);
    for (number, wrong) in [-0.5f32, 1.5, f32::NAN].into_iter().enumerate() {
        let wrong = constant(&Tensor::new([0.25, wrong, 0.5], &device)?);
        let cases: [(&str, OfElements, &Variable, &Variable, &str); 4] = [
            ("binary_cross_entropy", binary_cross_entropy, &wrong, &right, "an input"),
            ("binary_cross_entropy", binary_cross_entropy, &right, &wrong, "a target"),
            ("binary_cross_entropy_with_logits", with_logits, &right, &wrong, "a target"),
            ("kl_div", divergence, &right, &wrong, "a target"),
        ];
        // Logits, logarithms, and targets of logarithms are any numbers.
        drop(with_logits(&wrong, &right, Reduction::Mean)?);
        drop(divergence(&wrong, &right, Reduction::Mean)?);
        drop(kl_div(&right, &wrong, true, Reduction::Mean)?);
        for (operation, loss, input, target, name) in cases {
            let run = || loss(input, target, Reduction::Mean);
            device.synchronize()?;
            let loss = run()?;
            let mut found = vec![device.synchronize()];
            drop(loss);
            let (graph, loss) = stream.capture(|_| run())?;
            graph.instantiate()?.launch(&stream)?;
            found.push(device.synchronize());
            drop(loss);
            for found in found {
                let text = found.map_or_else(|error| error.to_string(), |()| "no error".to_owned());
                let wanted = format!(
                    "{operation}: found {name} with elements outside of 0 to 1, or NaN; wanted probabilities from 0 to 1"
                );
                if text != wanted {
                    return Err(format!("case {number}: {text}").into());
                }
            }
        }
    }
    Ok(())
}

/// A graph of a loss and its gradient reports a wrong label at each launch, and is right again with the right label.
fn a_graph_with_a_wrong_label_reports_it_and_goes_on_after_it_is_mended() -> Outcome {
    let (device, cpu) = (Device::cuda(0)?, Device::cpu());
    let stream = device.stream()?;
    let logits = Generator::new(3).randn(&[4, 5], DType::F32, &cpu)?;
    let (wrong, right) = ([1i64, -100, 5, 0], [1i64, -100, 4, 0]);
    let cases: [(&str, Loss); 3] = [
        ("cross_entropy", |x, of| cross_entropy(x, &of[0], CrossEntropyOptions::default())),
        ("cross_entropy", |x, of| {
            let options = CrossEntropyOptions { label_smoothing: 0.1, ..CrossEntropyOptions::default() };
            cross_entropy(&(x * 2.0)?, &of[0], options)
        }),
        ("nll_loss", |x, of| nll_loss(x, &of[0], CrossEntropyOptions::default())),
    ];
    for (number, (name, loss)) in cases.into_iter().enumerate() {
        let run = |x: &Tensor, labels: &Tensor| -> selvedge::Result<[Tensor; 2]> {
            let input = Variable::with_grad(x.clone())?;
            let loss = loss(&input, std::slice::from_ref(labels))?;
            loss.backward()?;
            Ok([loss.tensor(), input.grad().unwrap_or_else(|| x.clone())])
        };
        let x = logits.to(&device)?;
        let mut labels = Tensor::new(right, &device)?;
        device.synchronize()?;
        let (graph, found) = stream.capture(|_| run(&x, &labels))?;
        let graph = graph.instantiate()?;
        for list in [right, wrong, right, wrong, wrong, right] {
            labels.in_place().assign(&Tensor::new(list, &device)?)?;
            device.synchronize()?;
            graph.launch(&stream)?;
            let waited = device.synchronize();
            if list == wrong {
                match waited {
                    Err(Error::IndexOutOfRange { operation, index: 5, size: 5, .. }) if operation == name => {
                    }
                    other => return Err(format!("case {number}: {other:?}").into()),
                }
                // An error is returned once.
                device.synchronize()?;
                continue;
            }
            waited?;
            let wanted = run(&logits, &Tensor::new(right, &cpu)?)?;
            for (found, wanted) in found.iter().zip(&wanted) {
                if found.to_bytes()? != wanted.to_bytes()? {
                    return Err(format!("case {number}: {found:?}, not {wanted:?}").into());
                }
            }
        }
        // A negative label does not count from the end, and the error has the label itself.
        drop(run(&x, &Tensor::new([0i64, -1, 0, 0], &device)?)?);
        match device.synchronize() {
            Err(Error::IndexOutOfRange { operation, index: -1, size: 5, .. }) if operation == name => {}
            other => return Err(format!("case {number} of -1: {other:?}").into()),
        }
        device.synchronize()?;
    }
    Ok(())
}

/// Returns rows (90, 64), a weight (64, 131), whose logits have padding on a device, and labels with ignored ones.
fn heads(dtype: DType) -> selvedge::Result<[Tensor; 3]> {
    let (generator, cpu) = (Generator::new(7), Device::cpu());
    let labels: Vec<i64> = (0..90).map(|row| if row % 7 == 3 { -100 } else { row * 37 % 131 }).collect();
    let labels = Tensor::from_vec(labels, &[90], &cpu)?;
    Ok([generator.randn(&[90, 64], dtype, &cpu)?, generator.randn(&[64, 131], dtype, &cpu)?, labels])
}

fn a_loss_by_chunks_is_close_to_the_cpu() -> Outcome {
    let device = Device::cuda(0)?;
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F16, 2e-3), (DType::BF16, 2e-2)] {
        let operands = heads(dtype)?;
        for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
            for label_smoothing in [0.0, 0.2] {
                let options = CrossEntropyOptions { reduction, label_smoothing, ..Default::default() };
                let run = |device: &Device| -> selvedge::Result<Vec<Tensor>> {
                    let [x, weight, labels] = operands.each_ref().map(|x| x.to(device));
                    let [x, weight] = [Variable::with_grad(x?)?, Variable::with_grad(weight?)?];
                    let loss = linear_cross_entropy(&x, &weight, &labels?, options)?;
                    loss.sum(..)?.backward()?;
                    let gradients = [x.grad(), weight.grad()].into_iter().flatten();
                    std::iter::once(loss.tensor()).chain(gradients).map(|x| x.cast(DType::F64)).collect()
                };
                let (found, wanted) = (run(&device)?, run(&Device::cpu())?);
                for (number, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                    let found = found.to(&Device::cpu())?;
                    let largest = wanted.abs()?.max_all()?.item::<f64>()?;
                    let distance = (&found - wanted)?.abs()?.max_all()?.item::<f64>()?;
                    // A comparison that NaN fails.
                    let is_close = distance <= tolerance * largest;
                    if !is_close {
                        let name = format!("{dtype}, {reduction:?}, smoothing {label_smoothing}");
                        return Err(format!("{name}, result {number}: {distance} of {largest}").into());
                    }
                }
            }
        }
    }
    Ok(())
}

/// Logits of 16 bits have columns behind the classes, which no label may name.
fn a_wrong_label_of_a_loss_by_chunks_is_reported_with_the_number_of_classes() -> Outcome {
    let device = Device::cuda(0)?;
    let [x, weight, _] = heads(DType::BF16)?;
    let [x, weight] = [Variable::with_grad(x.to(&device)?)?, Variable::with_grad(weight.to(&device)?)?];
    for wrong in [131, 191, 1000, -1] {
        let labels = Tensor::full(&[90], wrong, DType::I64, &device)?;
        device.synchronize()?;
        drop(linear_cross_entropy(&x, &weight, &labels, CrossEntropyOptions::default())?);
        match device.synchronize() {
            Err(Error::IndexOutOfRange { operation: "cross_entropy", index, size: 131, .. })
                if index == wrong => {}
            other => return Err(format!("label {wrong}: {other:?}").into()),
        }
        device.synchronize()?;
    }
    Ok(())
}

fn losses_have_the_bits_of_the_cpu() -> Outcome {
    let (generator, cpu) = (Generator::new(1), Device::cpu());
    for (rows, classes) in [(7, 5), (64, 1000)] {
        for dtype in [DType::F32, DType::F64] {
            let logits = generator.randn(&[rows, classes], dtype, &cpu)?;
            let labels = generator.randint(0, classes as i64, &[rows], DType::I64, &cpu)?;
            check(LOSSES, &[logits.softmax(1)?, logits, labels], Agreement::Bits)?;
        }
    }
    Ok(())
}
