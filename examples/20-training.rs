//! A network that learns: three arms of a spiral, by layers, a loss and an optimizer.
//!
//! ```text
//! cargo run --features nn --example 20-training
//!
//! step   0: loss 1.073
//! step  50: loss 0.049
//! step 100: loss 0.024
//! step 149: loss 0.021
//! 180 of 180 new points are right
//! ```

use std::f64::consts::PI;
use std::process::ExitCode;

use selvedge::nn::{
    AdamW, CrossEntropyOptions, Initializer, LearningRateSchedule, Linear, Module, Optimizer, Relu,
    ScheduleShape, Sequential, Variable, clip_grad_norm, cross_entropy, no_grad,
};
use selvedge::{Device, Result, Tensor};

/// Points of three arms of a spiral, and the arm of each.
fn spirals(count: usize, shift: f64, device: &Device) -> Result<(Tensor, Tensor)> {
    let (mut points, mut arms) = (Vec::new(), Vec::new());
    for arm in 0..3i64 {
        for place in 0..count {
            let radius = (place as f64 + shift) / count as f64;
            let angle = 4.0 * radius + 2.0 * PI / 3.0 * arm as f64;
            points.extend([(radius * angle.sin()) as f32, (radius * angle.cos()) as f32]);
            arms.push(arm);
        }
    }
    let count = arms.len();
    Ok((Tensor::from_vec(points, &[count, 2], device)?, Tensor::from_vec(arms, &[count], device)?))
}

fn train() -> Result<()> {
    let device = Device::best();
    let initializer = Initializer::new(&device).with_seed(4);
    let model = Sequential::new()
        .with(Linear::new(2, 32, &initializer)?)
        .with(Relu)
        .with(Linear::new(32, 32, &initializer)?)
        .with(Relu)
        .with(Linear::new(32, 3, &initializer)?);
    let mut optimizer = AdamW::new(model.parameters(), 0.02)?;
    let schedule = LearningRateSchedule {
        shape: ScheduleShape::Cosine,
        peak: 0.02,
        minimum: 0.001,
        warmup_steps: 10,
        total_steps: 150,
    };

    let (points, arms) = spirals(60, 0.5, &device)?;
    let points = Variable::new(points);
    for step in 0..150 {
        optimizer.set_learning_rate(schedule.learning_rate(step));
        let loss = cross_entropy(&model.forward(&points)?, &arms, CrossEntropyOptions::default())?;
        optimizer.zero_grad();
        loss.backward()?;
        clip_grad_norm(optimizer.parameters(), 1.0)?;
        optimizer.step()?;
        if step % 50 == 0 || step == 149 {
            println!("step {step:3}: loss {:.3}", loss.tensor().item::<f32>()?);
        }
    }

    // Points between those of the training.
    let (points, arms) = spirals(60, 0.9, &device)?;
    let logits = no_grad(|| model.forward(&Variable::new(points)))?.tensor();
    let is_right = logits.argmax(1)?.eq(&arms)?.to_vec::<bool>()?;
    let right = is_right.iter().filter(|&&is_right| is_right).count();
    println!("{right} of {} new points are right", is_right.len());
    Ok(())
}

fn main() -> ExitCode {
    match train() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
