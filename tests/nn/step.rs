//! `TrainingStep` on the CPU, and the parts of an optimizer's step that a captured step uses.

use selvedge::nn::{
    Adafactor, Adam, AdamW, BatchNorm1d, Dropout, Initializer, LearningRateSchedule, Linear, Lion, Module,
    Muon, Optimizer, OptimizerPair, Parameters, Reduction, ScheduleShape, Sequential, Sgd, TrainingStep,
    Variable, clip_grad_norm, mse_loss,
};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Result, Tensor};

fn model(seed: u64, dropout: &Generator) -> Result<Sequential> {
    let initializer = Initializer::new(&Device::cpu()).with_seed(seed);
    Ok(Sequential::new()
        .with(Linear::new(3, 8, &initializer)?)
        .with(BatchNorm1d::new(8, &initializer)?)
        .with(Dropout::new(0.25, dropout)?)
        .with(Linear::new(8, 2, &initializer)?))
}

fn batch(step: u64) -> Result<[Tensor; 2]> {
    let generator = Generator::new(100 + step);
    let tensor = |width| generator.randn(&[6, width], DType::F32, &Device::cpu());
    Ok([tensor(3)?, tensor(2)?])
}

fn bits(model: &dyn Module) -> Result<Vec<Vec<u8>>> {
    model.state_dict().values().map(Tensor::to_bytes).collect()
}

fn loss(model: &dyn Module, inputs: &[Variable]) -> Result<Variable> {
    mse_loss(&model.forward(&inputs[0])?, &inputs[1], Reduction::Mean)
}

#[test]
fn a_step_has_the_bits_of_its_parts() -> Result<()> {
    let schedule = LearningRateSchedule {
        shape: ScheduleShape::Cosine,
        peak: 0.05,
        minimum: 0.0,
        warmup_steps: 3,
        total_steps: 10,
    };
    let generators = [Generator::new(4), Generator::new(4)];
    let [first, second] = [model(1, &generators[0])?, model(1, &generators[1])?];
    let (apart, together) = (Parameters::new(&first)?, Parameters::new(&second)?);
    let mut optimizer = AdamW::new(apart.variables(), 0.0)?;
    let mut other = AdamW::new(together.variables(), 0.0)?;
    let mut step = TrainingStep::new(&together, &mut other, |inputs: &[Variable]| loss(&second, inputs))?
        .with_max_norm(0.5)?;
    for number in 0..10 {
        let (rate, [x, y]) = (schedule.learning_rate(number), batch(number)?);
        apart.zero_grad();
        let wanted = loss(&first, &[x.clone().into(), y.clone().into()])?;
        wanted.backward()?;
        let norm = clip_grad_norm(&apart.variables(), 0.5)?;
        optimizer.set_learning_rate(rate);
        optimizer.step()?;
        step.set_learning_rate(rate);
        let found = step.run(&[&x, &y])?;
        assert_eq!(found.to_bytes()?, wanted.tensor().to_bytes()?, "step {number}");
        assert_eq!(step.grad_norm().map(Tensor::to_bytes).transpose()?, Some(norm.to_bytes()?));
        assert_eq!(bits(&first)?, bits(&second)?, "step {number}");
    }
    assert_eq!(generators[0].state(), generators[1].state());
    assert!(!step.is_captured() && step.uncaptured_reason() == Some("the step runs on the CPU"));
    Ok(())
}

#[test]
fn bad_steps_are_errors() -> Result<()> {
    let generator = Generator::new(1);
    let (one, other) = (model(1, &generator)?, model(2, &generator)?);
    let parameters = Parameters::new(&one)?;
    let new = |optimizer| TrainingStep::new(&parameters, optimizer, |inputs: &[Variable]| loss(&one, inputs));
    let error =
        new(Sgd::new(other.parameters(), 0.1)?).map(|_| ()).expect_err("foreign parameters").to_string();
    assert!(error.contains("parameter 0 of the optimizer"), "{error}");
    let step = || new(Sgd::new(parameters.variables(), 0.1)?);
    let error = step()?.with_max_norm(f64::NAN).map(|_| ()).expect_err("NaN").to_string();
    assert!(error.contains("max_norm of NaN"), "{error}");
    let nothing = Parameters::new(&Sequential::new())?;
    let optimizer = Sgd::new(other.parameters(), 0.1)?;
    let empty = TrainingStep::new(&nothing, optimizer, |inputs: &[Variable]| loss(&one, inputs));
    assert!(empty.map(|_| ()).expect_err("no parameters").to_string().contains("no parameters"));
    let [x, _] = batch(0)?;
    assert!(step()?.run(&[&x, &x]).is_err(), "shapes that do not meet");
    Ok(())
}

pub type Create = fn(Vec<Variable>) -> Result<Box<dyn Optimizer>>;

pub const OPTIMIZERS: [Create; 8] = [
    |list| Ok(Box::new(Sgd::new(list, 0.1)?)),
    |list| Ok(Box::new(Sgd::new(list, 0.1)?.with_momentum(0.9)?)),
    |list| Ok(Box::new(Adam::new(list, 0.1)?)),
    |list| Ok(Box::new(AdamW::new(list, 0.1)?.with_min_decay_rank(2))),
    |list| Ok(Box::new(Sgd::new(list, 0.1)?.with_momentum(0.9)?.with_nesterov(true)?)),
    |list| Ok(Box::new(Lion::new(list, 0.1)?.with_min_decay_rank(2))),
    |list| Ok(Box::new(Adafactor::new(list, 0.1)?.with_weight_decay(0.1)?)),
    |list| {
        let (matrices, others) = list.into_iter().partition(|parameter| parameter.shape().rank() == 2);
        Ok(Box::new(OptimizerPair::new(Muon::new(matrices, 0.1)?, AdamW::new(others, 0.1)?)?))
    },
];

#[test]
fn a_condition_decides_whether_a_step_changes_anything() -> Result<()> {
    let cpu = Device::cpu();
    for (create, dtype) in
        OPTIMIZERS.into_iter().flat_map(|create| [DType::F32, DType::BF16].map(|to| (create, to)))
    {
        let layer = || Linear::new(3, 2, &Initializer::new(&cpu).with_seed(5).with_dtype(dtype));
        let [plain, conditional] = [layer()?, layer()?];
        let _flat = Parameters::new(&conditional)?;
        let mut optimizers = [create(plain.parameters())?, create(conditional.parameters())?];
        for number in 0..4 {
            for model in [&plain, &conditional] {
                let [x, y] = batch(number)?.map(|tensor| tensor.cast(dtype));
                model.parameters().iter().for_each(Variable::zero_grad);
                loss(model, &[x?.into(), y?.into()])?.backward()?;
            }
            // A step that the condition leaves out, and then one that it takes.
            let before = bits(&conditional)?;
            let [first, second] = &mut optimizers;
            second.advance()?;
            second.apply_if(&Tensor::new(false, &cpu)?)?;
            second.withdraw();
            assert_eq!(bits(&conditional)?, before, "{dtype}, step {number}");
            first.step()?;
            second.advance()?;
            second.apply_if(&Tensor::new(true, &cpu)?)?;
            assert_eq!(bits(&conditional)?, bits(&plain)?, "{dtype}, step {number}");
            let [first, second] = optimizers.each_ref().map(|optimizer| optimizer.state_dict());
            for ((name, found), wanted) in second?.iter().zip(first?.values()) {
                assert_eq!(found.to_bytes()?, wanted.to_bytes()?, "{name} of {dtype}, step {number}");
            }
        }
    }
    Ok(())
}

#[test]
fn running_statistics_move_to_a_storage_and_snapshots_of_them_stay() -> Result<()> {
    let generators = [Generator::new(4), Generator::new(4)];
    let [mut apart, mut together] = [model(1, &generators[0])?, model(1, &generators[1])?];
    let _parameters = Parameters::new(&together)?;
    let [x, _] = batch(0)?.map(Variable::new);
    let before = (bits(&together)?, together.state_dict());
    for model in [&apart, &together] {
        model.forward(&x)?;
    }
    assert_eq!(bits(&apart)?, bits(&together)?);
    let kept: Vec<Vec<u8>> = before.1.values().map(Tensor::to_bytes).collect::<Result<_>>()?;
    assert_eq!(kept, before.0, "a snapshot stays");
    // A tape of an evaluation keeps statistics that a later training step changes.
    let evaluated = [&mut apart, &mut together].map(|model| {
        model.eval();
        let result = model.forward(&x);
        model.train();
        result
    });
    for (model, result) in [&apart, &together].into_iter().zip(evaluated) {
        model.forward(&x)?;
        result?.sum_all()?.backward()?;
    }
    let gradients = |model: &Sequential| -> Result<Vec<Vec<u8>>> {
        model.parameters().iter().filter_map(Variable::grad).map(|grad| grad.to_bytes()).collect()
    };
    assert_eq!(gradients(&apart)?, gradients(&together)?);
    let error = Parameters::new(&together).map(|_| ()).expect_err("a second buffer").to_string();
    assert!(error.contains("in a buffer already"), "{error}");
    Ok(())
}
