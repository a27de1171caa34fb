//! Steps of training as one graph: launches have the bits of uncaptured steps, each draws masks of its own, and a run continues
//! from a checkpoint.

use selvedge::nn::{
    AdamW, BatchNorm1d, CheckpointList, Checkpoints, Dropout, Initializer, LearningRateSchedule, Linear,
    LossScale, Module, Optimizer, Parameters, Recompute, Reduction, ScheduleShape, Sequential,
    TrainerOptions, TrainingStep, Variable, mse_loss,
};
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use crate::support::gpt::{small_decoder_trainer, small_trainer};
use crate::support::{Outcome, device_tests};

device_tests! {
    a_hundred_captured_steps_have_the_bits_of_uncaptured_ones, two_launches_draw_different_masks,
    a_captured_loss_scale_has_the_bits_of_an_uncaptured_one, a_step_without_memory_changes_nothing => in_child(&[]),
    a_captured_norm_rescales_the_launches_that_overflow,
    a_captured_fine_tuning_has_the_bits_of_an_uncaptured_one,
    a_captured_trainer_has_the_bits_of_an_uncaptured_one, a_captured_recomputation_has_the_bits_of_saved_activations,
    a_resumed_trainer_has_the_bits_of_one_that_went_on,
}

fn layers(device: &Device, dropout: &Generator) -> selvedge::Result<Sequential> {
    let initializer = Initializer::new(device).with_seed(1);
    Ok(Sequential::new()
        .with(Linear::new(16, 64, &initializer)?)
        .with(BatchNorm1d::new(64, &initializer)?)
        .with(Dropout::new(0.3, dropout)?)
        .with(Linear::new(64, 4, &initializer)?))
}

fn bits(model: &dyn Module) -> selvedge::Result<Vec<Vec<u8>>> {
    model.state_dict().values().map(Tensor::to_bytes).collect()
}

/// Losses and norms of a hundred steps with a warm-up and a new batch each, and the model's state after them.
fn run(is_captured: bool, device: &Device) -> selvedge::Result<Vec<Vec<u8>>> {
    let dropout = Generator::new(2);
    let model = layers(device, &dropout)?;
    let parameters = Parameters::new(&model)?;
    let optimizer = AdamW::new(parameters.variables(), 0.0)?.with_min_decay_rank(2);
    let loss = |inputs: &[Variable]| mse_loss(&model.forward(&inputs[0])?, &inputs[1], Reduction::Mean);
    let mut step = TrainingStep::new(&parameters, optimizer, loss)?.with_max_norm(0.5)?;
    if !is_captured {
        step = step.without_capture();
    }
    let schedule = LearningRateSchedule {
        shape: ScheduleShape::Cosine,
        peak: 0.02,
        minimum: 0.001,
        warmup_steps: 10,
        total_steps: 100,
    };
    let mut found = Vec::new();
    for number in 0..100 {
        let batches = Generator::new(1000 + number);
        let [x, y] = [16, 4].map(|width| batches.randn(&[32, width], DType::F32, &Device::cpu()));
        step.set_learning_rate(schedule.learning_rate(number));
        found.push(step.run(&[&x?, &y?])?.to_bytes()?);
        found.extend(step.grad_norm().map(Tensor::to_bytes).transpose()?);
        assert_eq!(step.is_captured(), is_captured && number > 0, "{:?}", step.uncaptured_reason());
    }
    found.push(dropout.state().offset.to_le_bytes().to_vec());
    found.extend(bits(&model)?);
    Ok(found)
}

fn a_hundred_captured_steps_have_the_bits_of_uncaptured_ones() -> Outcome {
    let device = Device::cuda(0)?;
    let (captured, uncaptured) = (run(true, &device)?, run(false, &device)?);
    for (at, (found, wanted)) in captured.iter().zip(&uncaptured).enumerate() {
        assert_eq!(found, wanted, "result {at} of {}", uncaptured.len());
    }
    assert_eq!(captured.len(), uncaptured.len());
    Ok(())
}

/// One launch of a graph in which squares overflow, between two in which they do not.
fn a_captured_norm_rescales_the_launches_that_overflow() -> Outcome {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    // A row in a block, and one of several launches.
    for size in [4, 1000, 300_000] {
        let mut x = Tensor::ones(&[size], DType::F32, &device)?;
        x.norm_all(2.0)?;
        let (graph, (norm, normalized)) = stream.capture(|_| {
            let norm = x.norm_all(2.0)?;
            Ok((norm, x.layer_norm(&[size], None, None, 1e-5)?))
        })?;
        let graph = graph.instantiate()?;
        for factor in [1.0f32, 1e30, 1.0, 1e-30] {
            let next: Vec<f32> = (0..size).map(|at| if at % 2 == 0 { factor } else { -factor }).collect();
            let next = Tensor::from_slice(&next, &[size], &device)?;
            x.in_place().assign(&next)?;
            graph.launch(&stream)?;
            let wanted = f64::from(factor) * (size as f64).sqrt();
            let found = f64::from(norm.item::<f32>()?);
            assert!((found / wanted - 1.0).abs() < 1e-6, "{found:e}, not {wanted:e}, of {size}");
            if factor >= 1.0 {
                let found = normalized.narrow(0, 0, 2)?.to_vec::<f32>()?;
                let is_right = (found[0] - 1.0).abs() < 1e-4 && (found[1] + 1.0).abs() < 1e-4;
                assert!(is_right, "{found:?} of {size} times {factor:e}");
            }
        }
    }
    Ok(())
}

/// Losses, norms, scales and skipped steps of sixty steps in f16, every seventh of which overflows, and the states after them.
fn scaled_run(is_captured: bool, device: &Device) -> selvedge::Result<Vec<Vec<u8>>> {
    let initializer = Initializer::new(device).with_seed(1).with_compute_dtype(DType::F16);
    let model =
        Sequential::new().with(Linear::new(16, 64, &initializer)?).with(Linear::new(64, 4, &initializer)?);
    let parameters = Parameters::new(&model)?;
    let optimizer = AdamW::new(parameters.variables(), 0.01)?;
    let loss = |inputs: &[Variable]| {
        mse_loss(&model.forward(&inputs[0])?.cast(DType::F32)?, &inputs[1], Reduction::Mean)
    };
    let scale = LossScale { initial: 1024.0, growth_interval: 4, ..LossScale::dynamic() };
    let mut step =
        TrainingStep::new(&parameters, optimizer, loss)?.with_max_norm(0.5)?.with_loss_scale(scale)?;
    if !is_captured {
        step = step.without_capture();
    }
    let mut found = Vec::new();
    for number in 0..60 {
        let batches = Generator::new(1000 + number);
        let [x, y] = [16, 4].map(|width| batches.randn(&[32, width], DType::F32, &Device::cpu()));
        let overflows = number % 7 == 4;
        let y = if overflows { (&y? + f64::INFINITY)? } else { y? };
        let before = bits(&model)?;
        found.push(step.run(&[&x?, &y])?.to_bytes()?);
        assert_eq!(step.is_skipped(), overflows, "step {number}");
        assert_eq!(bits(&model)? == before, overflows, "step {number}");
        // A skipped step does not lose the graph.
        assert_eq!(step.is_captured(), is_captured && number > 0, "{:?}", step.uncaptured_reason());
        found.extend(step.grad_norm().map(Tensor::to_bytes).transpose()?);
        found.extend(step.loss_scale()?.map(|scale| scale.to_le_bytes().to_vec()));
    }
    assert_eq!(step.state_dict()?["0.step"].item::<i64>()?, 52);
    found.extend(step.state_dict()?.values().map(Tensor::to_bytes).collect::<selvedge::Result<Vec<_>>>()?);
    found.extend(bits(&model)?);
    Ok(found)
}

fn a_captured_loss_scale_has_the_bits_of_an_uncaptured_one() -> Outcome {
    let device = Device::cuda(0)?;
    assert_eq!(scaled_run(true, &device)?, scaled_run(false, &device)?);
    Ok(())
}

/// A forward, a backward and an optimizer's first step for which there is no memory.
fn a_step_without_memory_changes_nothing() -> Outcome {
    let device = Device::cuda(0)?;
    let cuda = device.as_cuda().ok_or("no CUDA device")?;
    let batches = Generator::new(5);
    let [x, y] = [256, 512].map(|width| batches.randn(&[64, width], DType::F32, &device).map(Variable::new));
    let (x, y) = (x?, y?);
    let mut states = Vec::new();
    for part in ["nothing", "forward", "backward", "optimizer"] {
        let model = Linear::new(256, 512, &Initializer::new(&device).with_seed(1))?;
        let parameters = Parameters::new(&model)?;
        let mut optimizer = AdamW::new(parameters.variables(), 0.1)?;
        let loss = || mse_loss(&model.forward(&x)?, &y, Reduction::Mean);
        let state = || -> selvedge::Result<Vec<Vec<u8>>> {
            let gradients = parameters.variables().into_iter().filter_map(|parameter| parameter.grad());
            model.state_dict().into_values().chain(gradients).map(|tensor| tensor.to_bytes()).collect()
        };
        loss()?.backward()?;
        let before = state()?;
        let recorded = loss()?;
        device.synchronize()?;
        cuda.trim()?;
        cuda.set_memory_limit(Some(cuda.pool_statistics().reserved_bytes.max(1)))?;
        // Other blocks that the pool has stay in use.
        let mut blocks = Vec::new();
        for size in [1 << 18, 1 << 12] {
            while let Ok(block) = Tensor::empty(&[size], DType::F32, &device) {
                blocks.push(block);
            }
        }
        let failed = match part {
            "nothing" => Ok(()),
            "forward" => loss().map(drop),
            "backward" => recorded.backward(),
            _ => optimizer.step(),
        };
        drop(blocks);
        cuda.set_memory_limit(None)?;
        let is_refused = matches!(failed, Err(selvedge::Error::OutOfMemory { .. }));
        assert_eq!(is_refused, part != "nothing", "{part}: {failed:?}");
        assert!(state()? == before, "{part} without memory changed parameters or gradients");
        optimizer.step()?;
        states.push(state()?);
    }
    assert!(states.iter().all(|state| *state == states[0]), "a step after a failed one has other bits");
    Ok(())
}

fn two_launches_draw_different_masks() -> Outcome {
    let device = Device::cuda(0)?;
    let (dropout, other) = (Generator::new(7), Generator::new(7));
    let layer = Dropout::new(0.5, &dropout)?;
    let weight = Linear::new(1, 1, &Initializer::new(&device))?;
    let parameters = Parameters::new(&weight)?;
    let mut step =
        TrainingStep::new(&parameters, AdamW::new(parameters.variables(), 0.0)?, |inputs: &[Variable]| {
            // The weights of the kept positions, summed: a number that tells masks apart.
            let kept = layer.forward(&inputs[0])?.sum_all()?;
            kept + (weight.weight().sum_all()? * 0.0)?
        })?;
    let count = 40u32;
    let powers: Vec<f64> = (0..count).map(|power| 2f64.powi(power as i32)).collect();
    let x = Tensor::from_vec(powers.clone(), &[count as usize], &device)?;
    let mut seen = Vec::new();
    for number in 0..6 {
        let found = step.run(&[&x])?.item::<f64>()?;
        let mask = other.bernoulli(0.5, &[count as usize], DType::Bool, &Device::cpu())?.to_vec::<bool>()?;
        let wanted: f64 =
            powers.iter().zip(mask).filter(|(_, kept)| *kept).map(|(power, _)| 2.0 * power).sum();
        assert_eq!(found, wanted, "the mask of step {number}");
        assert!(!seen.contains(&found), "step {number} repeats a mask");
        seen.push(found);
    }
    assert!(step.is_captured(), "{:?}", step.uncaptured_reason());
    Ok(())
}

fn a_captured_trainer_has_the_bits_of_an_uncaptured_one() -> Outcome {
    let device = Device::cuda(0)?;
    let run = |is_captured: bool| -> selvedge::Result<(Vec<u64>, Vec<Vec<u8>>)> {
        let options = TrainerOptions { steps: 100, batch: 4, accumulation: 2, ..TrainerOptions::default() };
        let mut trainer = small_trainer(None, options, &device)?;
        if !is_captured {
            trainer = trainer.without_capture();
        }
        let mut losses = Vec::new();
        for number in 0..100 {
            // A profiled step runs without the graph, which the next one launches.
            let report = if number == 60 { trainer.step_uncaptured()? } else { trainer.step()? };
            losses.extend([report.loss.to_bits(), report.grad_norm.unwrap_or(0.0).to_bits()]);
            assert_eq!(trainer.is_captured(), is_captured && number > 0, "step {number}");
            if number == 50 {
                losses.push(trainer.evaluate()?.to_bits());
            }
        }
        Ok((losses, bits(trainer.model())?))
    };
    let (captured, uncaptured) = (run(true)?, run(false)?);
    assert_eq!(captured.0, uncaptured.0);
    assert!(captured.1 == uncaptured.1, "the parameters differ");
    Ok(())
}

fn a_captured_recomputation_has_the_bits_of_saved_activations() -> Outcome {
    let device = Device::cuda(0)?;
    for compute_dtype in [None, Some(DType::BF16)] {
        let mut runs = Vec::new();
        for recompute in Recompute::ALL {
            let options = TrainerOptions { steps: 10, batch: 4, recompute, ..TrainerOptions::default() };
            let mut trainer = small_trainer(compute_dtype, options, &device)?;
            let mut decoder = small_decoder_trainer(compute_dtype, 0, options, &device)?;
            let mut losses = Vec::new();
            for number in 0..10 {
                losses.extend([trainer.step()?.loss.to_bits(), decoder.step()?.loss.to_bits()]);
                assert!(trainer.is_captured() == (number > 0), "step {number}, {recompute}");
                assert!(decoder.is_captured() == (number > 0), "step {number}, {recompute}");
            }
            runs.push((losses, bits(trainer.model())?, bits(decoder.model())?));
        }
        assert!(runs.iter().all(|run| *run == runs[0]), "{compute_dtype:?}");
    }
    Ok(())
}

fn a_captured_fine_tuning_has_the_bits_of_an_uncaptured_one() -> Outcome {
    let device = Device::cuda(0)?;
    for (compute_dtype, rank) in [(None, 0), (Some(DType::BF16), 0), (None, 4), (Some(DType::BF16), 4)] {
        let run = |is_captured: bool| -> selvedge::Result<(Vec<f64>, Vec<Vec<u8>>)> {
            let options = TrainerOptions {
                steps: 20,
                batch: 4,
                accumulation: 2,
                learning_rate: 1e-2,
                ..TrainerOptions::default()
            };
            let mut trainer = small_decoder_trainer(compute_dtype, rank, options, &device)?;
            if !is_captured {
                trainer = trainer.without_capture();
            }
            let mut losses = Vec::new();
            for number in 0..20 {
                losses.push(trainer.step()?.loss);
                assert_eq!(trainer.is_captured(), is_captured && number > 0, "step {number}");
            }
            Ok((losses, bits(trainer.model())?))
        };
        let (captured, uncaptured) = (run(true)?, run(false)?);
        assert!(captured == uncaptured, "{compute_dtype:?}, rank {rank}: {captured:?}, {uncaptured:?}");
        let losses = captured.0;
        assert!(losses[19] < losses[0], "{compute_dtype:?}, rank {rank}: {losses:?}");
    }
    Ok(())
}

fn a_resumed_trainer_has_the_bits_of_one_that_went_on() -> Outcome {
    let device = Device::cuda(0)?;
    for compute_dtype in [None, Some(DType::BF16)] {
        let new = || {
            let options =
                TrainerOptions { steps: 20, batch: 4, accumulation: 2, ..TrainerOptions::default() };
            small_trainer(compute_dtype, options, &device)
        };
        let (mut whole, mut first, mut second) = (new()?, new()?, new()?);
        let losses: Vec<f64> =
            (0..20).map(|_| whole.step().map(|report| report.loss)).collect::<selvedge::Result<_>>()?;
        for (step, loss) in losses[..9].iter().enumerate() {
            assert_eq!(first.step()?.loss, *loss, "step {step}");
        }
        // By way of a folder, as `selvedge train --resume` does.
        let folder = tempfile::tempdir()?;
        first.evaluate()?;
        let mut checkpoints = Checkpoints::open(folder.path())?;
        checkpoints.save(&first.checkpoint()?)?;
        let list = CheckpointList::read(folder.path())?;
        second.resume(&list.latest().expect("a checkpoint").load(&device)?, false)?;
        drop(checkpoints);
        for (step, loss) in losses.iter().enumerate().skip(9) {
            assert_eq!(second.step()?.loss, *loss, "step {step} after the checkpoint");
        }
        assert!(second.is_captured());
        assert!(bits(whole.model())? == bits(second.model())?, "the parameters differ");
    }
    Ok(())
}
