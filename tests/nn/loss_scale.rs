//! Loss scales: the bits of steps with one, skipped steps, and its growth and backoff.

use std::collections::BTreeMap;
use std::ops::Range;

use selvedge::nn::{
    AdamW, ByteTokenizer, GptConfig, Initializer, Linear, LossScale, Module, Optimizer, Parameters,
    Reduction, Relu, Sequential, Sgd, StepReport, TextFile, Trainer, TrainerOptions, TrainingStep, Variable,
    mse_loss,
};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Result, Tensor};

use crate::step::{Create, OPTIMIZERS};

fn model(compute_dtype: Option<DType>, dtype: DType) -> Result<Sequential> {
    let initializer = Initializer::new(&Device::cpu()).with_seed(1).with_dtype(dtype);
    let initializer = match compute_dtype {
        Some(dtype) => initializer.with_compute_dtype(dtype),
        None => initializer,
    };
    Ok(Sequential::new().with(Linear::new(3, 8, &initializer)?).with(Relu).with(Linear::new(
        8,
        2,
        &initializer,
    )?))
}

fn batch(number: u64, dtype: DType) -> Result<[Tensor; 2]> {
    let generator = Generator::new(100 + number);
    let tensor = |width| generator.randn(&[6, width], DType::F32, &Device::cpu())?.cast(dtype);
    Ok([tensor(3)?, tensor(2)?])
}

fn loss(model: &dyn Module, inputs: &[Variable]) -> Result<Variable> {
    mse_loss(&model.forward(&inputs[0])?.cast(DType::F32)?, &inputs[1].cast(DType::F32)?, Reduction::Mean)
}

/// The bytes of several tensors.
type Bits = Vec<Vec<u8>>;

fn bits(model: &dyn Module) -> Result<Bits> {
    model.state_dict().values().map(Tensor::to_bytes).collect()
}

/// The model's bits after each batch, by a step with a scale; a batch is skipped if its number is in `overflows`.
fn run(
    create: Create,
    dtype: DType,
    scale: Option<LossScale>,
    numbers: &[u64],
    overflows: &[u64],
) -> Result<(Vec<Bits>, Vec<f64>, Bits)> {
    let model = model(None, dtype)?;
    let parameters = Parameters::new(&model)?;
    let mut optimizer = create(parameters.variables())?;
    let mut step =
        TrainingStep::new(&parameters, &mut *optimizer, |inputs: &[Variable]| loss(&model, inputs))?;
    if let Some(scale) = scale {
        step = step.with_loss_scale(scale)?;
    }
    let (mut found, mut scales) = (Vec::new(), Vec::new());
    for &number in numbers {
        let [x, mut y] = batch(number, dtype)?;
        if overflows.contains(&number) {
            y = (&y + f64::INFINITY)?;
        }
        step.run(&[&x, &y])?;
        assert_eq!(step.is_skipped(), overflows.contains(&number), "batch {number}");
        found.push(bits(&model)?);
        scales.extend(step.loss_scale()?);
    }
    let state = step.optimizer().state_dict()?;
    let state = state.values().map(Tensor::to_bytes).collect::<Result<_>>()?;
    Ok((found, scales, state))
}

#[test]
fn a_power_of_two_as_the_scale_changes_no_bit() -> Result<()> {
    for create in OPTIMIZERS {
        for dtype in [DType::F32, DType::F64] {
            let numbers: Vec<u64> = (0..6).collect();
            let plain = run(create, dtype, None, &numbers, &[])?;
            for scale in [1.0, 1024.0, 65536.0] {
                let scaled = run(create, dtype, Some(LossScale::fixed(scale)), &numbers, &[])?;
                assert_eq!(scaled.0, plain.0, "{dtype}, scale {scale}");
                assert_eq!(scaled.1, [scale; 6]);
                assert_eq!(scaled.2, plain.2);
            }
        }
    }
    Ok(())
}

#[test]
fn skipped_steps_leave_parameters_states_and_step_counts() -> Result<()> {
    for create in OPTIMIZERS {
        let scale = Some(LossScale { initial: 1024.0, growth_interval: 3, ..LossScale::dynamic() });
        let with_skips = run(create, DType::F32, scale, &[0, 1, 90, 2, 91, 3, 4, 5, 6, 7], &[90, 91])?;
        let without = run(create, DType::F32, scale, &[0, 1, 2, 3, 4, 5, 6, 7], &[])?;
        let taken = [0, 1, 3, 5, 6, 7, 8, 9].map(|at: usize| with_skips.0[at].clone());
        assert_eq!(taken[..], without.0[..]);
        assert_eq!(with_skips.0[2], with_skips.0[1]);
        assert_eq!(with_skips.2, without.2, "the optimizer's state");
        // By the documented rules of PyTorch's GradScaler(init_scale=1024, growth_interval=3): a skipped step halves the scale and
        // begins a new interval, three steps in a row double it.
        let wanted = [1024.0, 1024.0, 512.0, 512.0, 256.0, 256.0, 256.0, 512.0, 512.0, 512.0];
        assert_eq!(with_skips.1, wanted);
    }
    Ok(())
}

#[test]
fn a_growth_to_infinity_keeps_the_scale() -> Result<()> {
    let scale = LossScale { initial: 2f64.powi(126), growth_interval: 1, ..LossScale::dynamic() };
    let model = model(None, DType::F32)?;
    let parameters = Parameters::new(&model)?;
    let optimizer = Sgd::new(parameters.variables(), 0.1)?;
    // Gradients of zeros are finite with each scale.
    let zero = |inputs: &[Variable]| loss(&model, inputs)? * 0.0;
    let mut step = TrainingStep::new(&parameters, optimizer, zero)?.with_loss_scale(scale)?;
    let [x, y] = batch(0, DType::F32)?;
    for _ in 0..3 {
        step.run(&[&x, &y])?;
        assert!(!step.is_skipped());
        assert_eq!(step.loss_scale()?, Some(2f64.powi(127)));
    }
    Ok(())
}

#[test]
fn a_run_of_skipped_steps_leaves_a_scale_that_trains() -> Result<()> {
    for (initial, backoff_factor, lowest) in [
        (65536.0, 0.5, 2f64.powi(-14)),
        (65536.0, 1e-30, 2f64.powi(-14)),
        (2f64.powi(-100), 0.5, 2f64.powi(-100)),
    ] {
        let scale = LossScale { initial, backoff_factor, ..LossScale::dynamic() };
        let model = model(None, DType::F32)?;
        let parameters = Parameters::new(&model)?;
        let optimizer = Sgd::new(parameters.variables(), 0.1)?;
        let mut step = TrainingStep::new(&parameters, optimizer, |inputs: &[Variable]| loss(&model, inputs))?
            .with_loss_scale(scale)?;
        let ([x, y], before) = (batch(0, DType::F32)?, bits(&model)?);
        for _ in 0..200 {
            step.run(&[&x, &(&y * f64::NAN)?])?;
            assert!(step.is_skipped());
        }
        assert_eq!(step.loss_scale()?, Some(lowest));
        assert_eq!(bits(&model)?, before);
        // Powers of two as scales change no bit.
        step.run(&[&x, &y])?;
        assert!(!step.is_skipped());
        let wanted = run(|of| Ok(Box::new(Sgd::new(of, 0.1)?)), DType::F32, None, &[0], &[])?;
        assert_eq!([bits(&model)?], wanted.0[..], "a scale that began at {initial}");
    }
    Ok(())
}

#[test]
fn a_norm_that_is_infinite_without_the_scale_skips_the_step() -> Result<()> {
    let model = model(None, DType::F32)?;
    let parameters = Parameters::new(&model)?;
    let optimizer = Sgd::new(parameters.variables(), 0.1)?;
    let huge = |inputs: &[Variable]| loss(&model, inputs)? * 1e38;
    let mut step = TrainingStep::new(&parameters, optimizer, huge)?
        .with_max_norm(1.0)?
        .with_loss_scale(LossScale::fixed(2f64.powi(-90)))?;
    let ([x, y], before) = (batch(0, DType::F32)?, bits(&model)?);
    step.run(&[&x, &(&y * 1e3)?])?;
    assert!(step.is_skipped());
    assert_eq!(bits(&model)?, before);
    Ok(())
}

#[test]
fn a_scale_that_is_no_number_of_f16_is_refused_for_a_loss_of_f16() -> Result<()> {
    let model = model(None, DType::F16)?;
    let parameters = Parameters::new(&model)?;
    let run = |initial: f64| {
        let optimizer = Sgd::new(parameters.variables(), 0.1)?;
        let of_f16 = |inputs: &[Variable]| loss(&model, inputs)?.cast(DType::F16);
        let mut step =
            TrainingStep::new(&parameters, optimizer, of_f16)?.with_loss_scale(LossScale::fixed(initial))?;
        let [x, y] = batch(0, DType::F16)?;
        step.run(&[&x, &y]).map(|_| ())
    };
    let text = run(1e-9).expect_err("a scale of 0 in f16").to_string();
    assert!(text.contains("found a loss of f16 and a scale that begins at 0.000000001"), "{text}");
    run(1.0)
}

#[test]
fn clipping_is_of_the_gradients_without_the_scale() -> Result<()> {
    let run = |scale: Option<LossScale>| -> Result<(Vec<f32>, Vec<f32>)> {
        let model = model(None, DType::F32)?;
        let parameters = Parameters::new(&model)?;
        let optimizer = AdamW::new(parameters.variables(), 0.05)?;
        let mut step = TrainingStep::new(&parameters, optimizer, |inputs: &[Variable]| loss(&model, inputs))?
            .with_max_norm(0.25)?;
        if let Some(scale) = scale {
            step = step.with_loss_scale(scale)?;
        }
        let mut norms = Vec::new();
        for number in 0..5 {
            let [x, y] = batch(number, DType::F32)?;
            step.run(&[&x, &y])?;
            norms.push(step.grad_norm().expect("a norm").item::<f32>()?);
        }
        let mut values = Vec::new();
        for parameter in parameters.variables() {
            values.extend(parameter.tensor().to_vec::<f32>()?);
        }
        Ok((norms, values))
    };
    let (plain, scaled) = (run(None)?, run(Some(LossScale::fixed(4096.0)))?);
    assert!(plain.0.iter().any(|norm| *norm > 0.25), "nothing was clipped");
    for (found, wanted) in scaled.0.iter().chain(&scaled.1).zip(plain.0.iter().chain(&plain.1)) {
        assert!((found - wanted).abs() <= 1e-5 * wanted.abs().max(0.1), "{found}, {wanted}");
    }
    Ok(())
}

#[test]
fn a_scale_keeps_small_gradients_of_f16() -> Result<()> {
    let gradient = |scale: f64| -> Result<f32> {
        let model = model(Some(DType::F16), DType::F32)?;
        let parameters = Parameters::new(&model)?;
        let optimizer = Sgd::new(parameters.variables(), 1.0)?;
        let tiny = |inputs: &[Variable]| loss(&model, inputs)? * 1e-7;
        let mut step =
            TrainingStep::new(&parameters, optimizer, tiny)?.with_loss_scale(LossScale::fixed(scale))?;
        let [x, y] = batch(0, DType::F32)?;
        step.run(&[&x, &y])?;
        step.grad_norm().expect("a norm").item::<f32>()
    };
    let (lost, kept, exact) = (gradient(1.0)?, gradient(65536.0)?, gradient(1024.0)?);
    assert!(lost < 0.5 * kept, "{lost}, {kept}");
    assert!((kept / exact - 1.0).abs() < 0.05, "{kept}, {exact}");
    Ok(())
}

/// The bits of the model and the scale after each batch from `first` on, and the state at the end.
fn continued(
    scale: Option<LossScale>,
    start: Option<(&Sequential, &BTreeMap<String, Tensor>)>,
    numbers: Range<u64>,
) -> Result<(Vec<Bits>, BTreeMap<String, Tensor>, Sequential)> {
    let mut own = model(None, DType::F32)?;
    if let Some((other, _)) = start {
        own.load_state_dict(&other.state_dict())?;
    }
    let own = own;
    let parameters = Parameters::new(&own)?;
    let optimizer = AdamW::new(parameters.variables(), 0.1)?;
    let mut step = TrainingStep::new(&parameters, optimizer, |inputs: &[Variable]| loss(&own, inputs))?;
    if let Some(scale) = scale {
        step = step.with_loss_scale(scale)?;
    }
    if let Some((_, state)) = start {
        step.load_state_dict(state)?;
    }
    let mut found = Vec::new();
    for number in numbers {
        let [x, y] = batch(number, DType::F32)?;
        step.run(&[&x, &y])?;
        let scale = step.loss_scale()?.unwrap_or(0.0).to_le_bytes().to_vec();
        found.push(bits(&own)?.into_iter().chain([scale]).collect());
    }
    let state = step.state_dict()?;
    drop(step);
    Ok((found, state, own))
}

#[test]
fn a_state_continues_a_run_and_other_states_are_refused() -> Result<()> {
    let scale = Some(LossScale { initial: 64.0, growth_interval: 4, ..LossScale::dynamic() });
    let (whole, ..) = continued(scale, None, 0..12)?;
    let (_, state, model) = continued(scale, None, 0..6)?;
    let (rest, ..) = continued(scale, Some((&model, &state)), 6..12)?;
    assert_eq!(rest[..], whole[6..]);

    let fails = |scale, change: &dyn Fn(&mut BTreeMap<String, Tensor>), wanted: &str| {
        let mut state = state.clone();
        change(&mut state);
        let error = continued(scale, Some((&model, &state)), 6..6).map(|_| ()).expect_err(wanted).to_string();
        assert!(error.contains(wanted), "{error}");
    };
    fails(None, &|_| {}, "'loss_scale.scale'");
    let without = |name: &'static str| move |state: &mut BTreeMap<String, Tensor>| drop(state.remove(name));
    fails(scale, &without("loss_scale.scale"), "no 'loss_scale.scale'");
    fails(scale, &without("loss_scale.growth_tracker"), "no 'loss_scale.growth_tracker'");
    let tensor = |value: f32| Tensor::full(&[], value, DType::F32, &Device::cpu());
    let (negative, list) = (tensor(-1.0)?, Tensor::new([1.0f32], &Device::cpu())?);
    let with = |entry: Tensor| {
        move |state: &mut BTreeMap<String, Tensor>| {
            state.insert("loss_scale.scale".to_owned(), entry.clone());
        }
    };
    fails(scale, &with(negative), "a scale of -1");
    fails(scale, &with(tensor(1e-40)?), "from 2⁻¹²⁶ on");
    fails(scale, &with(list), "'loss_scale.scale' of f32 and shape [1]");
    Ok(())
}

#[test]
fn bad_numbers_of_a_scale_are_errors() {
    let good = LossScale::dynamic();
    for (scale, wanted) in [
        (LossScale { initial: 0.0, ..good }, "initial = 0"),
        (LossScale { initial: 1e39, ..good }, "initial = 1"),
        (LossScale { initial: 1e-45, ..good }, "a number of f32 from 2⁻¹²⁶ on"),
        (LossScale { initial: 1.1e-38, ..good }, "a number of f32 from 2⁻¹²⁶ on"),
        (LossScale { growth_factor: 0.5, ..good }, "growth_factor = 0.5"),
        (LossScale { growth_factor: f64::NAN, ..good }, "growth_factor = NaN"),
        (LossScale { backoff_factor: 1.5, ..good }, "backoff_factor = 1.5"),
        (LossScale { backoff_factor: 0.0, ..good }, "backoff_factor = 0"),
        (LossScale { growth_interval: 0, ..good }, "growth_interval = 0"),
    ] {
        let error = scale.check().expect_err(wanted).to_string();
        assert!(error.contains(wanted), "{error}");
    }
    assert!(good.check().is_ok() && LossScale::fixed(128.0).check().is_ok());
}

fn trainer(compute_dtype: Option<DType>, loss_scale: Option<LossScale>) -> Result<Trainer> {
    let text = TextFile::from_bytes("to be, or not to be, that is the question: ".repeat(40));
    let config =
        GptConfig { layers: 1, width: 16, heads: 2, context: 16, compute_dtype, ..GptConfig::tiny(256) };
    let options = TrainerOptions {
        steps: 20,
        batch: 4,
        accumulation: 2,
        warmup_steps: 4,
        loss_scale,
        ..TrainerOptions::default()
    };
    Trainer::new(config, text, &ByteTokenizer, options, &Device::cpu())
}

#[test]
fn a_trainer_in_f16_follows_f32_and_resumes_to_the_same_bits() -> Result<()> {
    let (mut exact, mut half) =
        (trainer(None, None)?, trainer(Some(DType::F16), Some(LossScale::fixed(1024.0)))?);
    for step in 0..20 {
        let (wanted, found) = (exact.step()?, half.step()?);
        assert!(!found.is_skipped, "step {step}");
        assert!(
            (found.loss - wanted.loss).abs() < 0.02,
            "step {step}: {} in place of {}",
            found.loss,
            wanted.loss
        );
        let norms = found.grad_norm.zip(wanted.grad_norm);
        assert!(
            norms.is_some_and(|(found, wanted)| (found / wanted - 1.0).abs() < 0.05),
            "step {step}: {norms:?}"
        );
    }

    // The first steps overflow.
    let scale = Some(LossScale { initial: 2f64.powi(24), growth_interval: 5, ..LossScale::dynamic() });
    let mut whole = trainer(Some(DType::F16), scale)?;
    let reports = (0..20).map(|_| Ok((whole.step()?, whole.loss_scale()?))).collect::<Result<Vec<_>>>()?;
    let skipped = reports.iter().filter(|(report, _)| report.is_skipped).count();
    assert!(skipped > 0 && skipped < 15, "{skipped} steps were skipped");
    // The norm of a skipped step can be NaN, which equals nothing.
    let text = |report: (StepReport, Option<f64>)| format!("{report:?}");
    let (mut first, mut second) = (trainer(Some(DType::F16), scale)?, trainer(Some(DType::F16), scale)?);
    for wanted in &reports[..12] {
        assert_eq!(text((first.step()?, first.loss_scale()?)), text(*wanted));
    }
    let checkpoint = first.checkpoint()?;
    assert!(checkpoint.optimizer.contains_key("loss_scale.scale"));
    second.resume(&checkpoint, false)?;
    for wanted in &reports[12..] {
        assert_eq!(text((second.step()?, second.loss_scale()?)), text(*wanted));
    }
    let error = second.set_loss_scale(None).expect_err("a scale after steps").to_string();
    assert!(error.contains("after 20 steps"), "{error}");
    let error = trainer(None, None)?.resume(&checkpoint, true).expect_err("another model").to_string();
    assert!(error.contains("a model"), "{error}");
    let error =
        trainer(Some(DType::F16), None)?.resume(&checkpoint, false).expect_err("no scale").to_string();
    assert!(error.contains("loss_scale.scale"), "{error}");
    Ok(())
}

/// Squares of the gradients leave the range of f32, gradients do not.
#[test]
fn a_large_loss_scale_skips_no_step() -> Result<()> {
    let run = |scale: Option<f64>| -> Result<Vec<f32>> {
        let model = Linear::new(2, 1, &Initializer::new(&Device::cpu()).with_seed(1))?;
        let parameters = Parameters::new(&model)?;
        let loss = |inputs: &[Variable]| model.forward(&inputs[0])?.sum_all();
        let optimizer = Sgd::new(parameters.variables(), 0.1)?;
        let mut step = TrainingStep::new(&parameters, optimizer, loss)?.with_max_norm(2.5)?;
        if let Some(scale) = scale {
            step = step.with_loss_scale(LossScale::fixed(scale))?;
        }
        step.run(&[&Tensor::new([[3.0f32, 4.0]], &Device::cpu())?])?;
        let found = model.state_dict().values().map(Tensor::to_vec::<f32>).collect::<Result<Vec<_>>>()?;
        Ok(found.concat())
    };
    let wanted = run(None)?;
    for scale in [1e15, 1e30, 1e-30] {
        for (found, wanted) in run(Some(scale))?.iter().zip(&wanted) {
            assert!((found - wanted).abs() < 1e-6, "{found}, not {wanted}, with a scale of {scale:e}");
        }
    }
    Ok(())
}
