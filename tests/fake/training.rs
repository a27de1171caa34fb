//! Steps of training on the fake driver. A step of a small GPT: its forward, backward, clipping and optimizer are captured as one graph, the
//! parameters stay at their addresses, a step needs no memory beside them and its states, and the optimizer is a launch for each run of neighbours. `TrainingStep` launches one
//! graph, draws as uncaptured steps do, counts its changes, and falls back where it must.

use std::sync::{Arc, Mutex, PoisonError};

use selvedge::DType;
use selvedge::nn::{
    Adam, AdamW, BatchNorm1d, CrossEntropyOptions, Dropout, Embedding, FeedForward, FeedForwardOptions,
    Function, FunctionContext, Initializer, LayerNorm, Linear, Lion, LossScale, Module, MultiHeadAttention,
    MultiHeadAttentionOptions, Optimizer, Parameters, Reduction, Sequential, Sgd, TrainingStep,
    TransformerBlock, Variable, binary_cross_entropy, checkpoint, cross_entropy, detect_anomaly, mse_loss,
    no_grad,
};
use selvedge::tensor::{Device, Generator, Tensor};

use super::support::{ChildOutcome, Fake, calls, check};
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

const WIDTH: usize = 8;
const TOKENS: usize = 11;

struct Gpt(Embedding, TransformerBlock, LayerNorm, Linear);

impl Gpt {
    fn new(device: &Device) -> selvedge::Result<Gpt> {
        let initializer = Initializer::new(device).with_seed(1);
        let options = MultiHeadAttentionOptions { is_causal: true, ..MultiHeadAttentionOptions::new(2) };
        let attention = MultiHeadAttention::new(WIDTH, options, &initializer)?;
        let forward = FeedForward::new(WIDTH, FeedForwardOptions::default(), &initializer)?;
        Ok(Gpt(
            Embedding::new(TOKENS, WIDTH, &initializer)?,
            TransformerBlock::new(attention, forward, &initializer)?,
            LayerNorm::new(&[WIDTH], &initializer)?,
            Linear::new(WIDTH, TOKENS, &initializer)?,
        ))
    }

    fn layers(&self) -> [(&str, &dyn Module); 4] {
        [("wte", &self.0), ("h", &self.1), ("ln_f", &self.2), ("head", &self.3)]
    }
}

impl Module for Gpt {
    fn forward(&self, input: &Variable) -> selvedge::Result<Variable> {
        let mut x = input.clone();
        for (_, layer) in self.layers() {
            x = layer.forward(&x)?;
        }
        x.reshape(&[-1, TOKENS as isize])
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        let named = |(layer, module): (&str, &dyn Module)| {
            let parameters = module.named_parameters().into_iter();
            parameters.map(|(name, parameter)| (format!("{layer}.{name}"), parameter)).collect::<Vec<_>>()
        };
        self.layers().into_iter().flat_map(named).collect()
    }
}

/// Child: a step without and within a capture.
pub fn child(fake: &Fake) -> ChildOutcome {
    fake.set_strict(true);
    step(fake)?;
    memory_of_a_step(fake)?;
    memory_of_a_whole_step()?;
    steps_without_memory()?;
    steps_of_one_graph(fake)?;
    steps_with_a_loss_scale(fake)?;
    checked_steps(fake)?;
    steps_that_cannot_be_captured()?;
    captured_checkpoints()?;
    launches_of_a_feed_forward(fake)?;
    memory_of_a_cross_entropy()?;
    captured_cross_entropies()?;
    captured_probabilities()?;
    scenario::settle()?;
    let (live, violations) = (fake.live(), fake.violations());
    check(live.blocks == 0, &format!("alive at the end:\n{}", fake.describe_live()))?;
    check(violations.is_empty(), &violations.join("\n"))
}

fn step(fake: &Fake) -> ChildOutcome {
    let device = Device::cuda(0)?;
    let model = Gpt::new(&device)?;
    let parameters = Parameters::new(&model)?;
    let mut optimizer = AdamW::new(parameters.variables(), 0.1)?.with_min_decay_rank(2);
    let tokens = Variable::new(Tensor::new([[1i64, 2, 3, 2], [0, 4, 4, 4]], &device)?);
    let targets = Tensor::new([2i64, 3, 2, 1, 4, 4, 4, 0], &device)?;
    let addresses = || -> selvedge::Result<Vec<u64>> {
        let buffers = parameters.buffers().into_iter().chain(parameters.gradient_buffers());
        buffers.map(|buffer| Ok(buffer.device_slice::<f32>()?.address())).collect()
    };
    let gradients = || -> selvedge::Result<Tensor> {
        parameters.zero_grad();
        let loss = cross_entropy(&model.forward(&tokens)?, &targets, CrossEntropyOptions::default())?;
        loss.backward()?;
        parameters.clip_grad_norm(1.0)?;
        Ok(loss.tensor())
    };
    let before = addresses()?;
    // The fake computes nothing, so a backward that reads the number of an index's runs cannot run before the capture.
    for parameter in parameters.variables() {
        parameter.backward_with(&parameter.tensor().zeros_like()?)?;
    }
    optimizer.advance()?;
    let (launches, _) = calls(fake, "cuLaunchKernel", || optimizer.apply())?;
    check(launches == 2, &format!("{launches} launches for parameters with and without decay"))?;
    let stream = device.stream()?;
    let (graph, loss) = stream.capture(|_| {
        let loss = gradients()?;
        optimizer.apply()?;
        Ok(loss)
    })?;
    let graph = graph.instantiate()?;
    let bytes =
        || -> selvedge::Result<Vec<Vec<u8>>> { parameters.buffers().iter().map(Tensor::to_bytes).collect() };
    let mut seen = vec![bytes()?];
    for launch in 0..3 {
        optimizer.advance()?;
        graph.launch(&stream)?;
        let now = bytes()?;
        check(!seen.contains(&now), &format!("launch {launch} wrote nothing"))?;
        seen.push(now);
    }
    check(loss.count() == 1 && addresses()? == before, "the buffers have moved")
}

/// A step changes parameters and states in place: it needs no memory beyond them and its few numbers.
fn memory_of_a_step(fake: &Fake) -> ChildOutcome {
    const NUMBERS: u64 = 4096;
    let device = Device::cuda(0)?;
    let cuda = device.as_cuda().ok_or("the device is no CUDA device")?;
    type MakeOptimizer = fn(Vec<Variable>) -> selvedge::Result<Box<dyn Optimizer>>;
    let optimizers: [(&str, u64, MakeOptimizer); 5] = [
        ("Sgd", 1, |of| Ok(Box::new(Sgd::new(of, 0.1)?.with_momentum(0.9)?))),
        ("Adam", 2, |of| Ok(Box::new(Adam::new(of, 0.1)?))),
        ("AdamW", 2, |of| Ok(Box::new(AdamW::new(of, 0.1)?))),
        ("Lion", 1, |of| Ok(Box::new(Lion::new(of, 0.1)?))),
        ("Nesterov", 1, |of| Ok(Box::new(Sgd::new(of, 0.1)?.with_momentum(0.9)?.with_nesterov(true)?))),
    ];
    for (name, states, make) in optimizers {
        let model = Linear::new(256, 512, &Initializer::new(&device).with_seed(1))?;
        let parameters = Parameters::new(&model)?;
        let bytes = (256 + 1) * 512 * 4;
        let mut optimizer = make(parameters.variables())?;
        for number in 0..3 {
            for parameter in parameters.variables() {
                parameter.backward_with(&parameter.tensor().zeros_like()?)?;
            }
            let scope = cuda.memory_scope(format!("step {number} of {name}"));
            // The first step creates the states; the numbers of a step are written before its launch.
            optimizer.advance()?;
            let before = fake.launches();
            optimizer.apply()?;
            let (found, launches) = (scope.finish(), fake.launches() - before);
            check(launches == 1, &format!("{launches} launches of step {number} of {name}, wanted one"))?;
            let limit = if number == 0 { states * bytes } else { 0 } + NUMBERS;
            check(
                found.peak_bytes - found.start_bytes <= limit,
                &format!("{found}: wanted at most {limit} bytes beside those at the start"),
            )?;
        }
    }
    Ok(())
}

/// Forward, backward and optimizer of a layer need its activations, and one gradient of a weight beside those in place.
fn memory_of_a_whole_step() -> ChildOutcome {
    const ROWS: usize = 64;
    let device = Device::cuda(0)?;
    let cuda = device.as_cuda().ok_or("the device is no CUDA device")?;
    let model = Linear::new(256, 512, &Initializer::new(&device).with_seed(1))?;
    let parameters = Parameters::new(&model)?;
    let [x, y] = [256, 512].map(|width| Tensor::ones(&[ROWS, width], DType::F32, &device));
    let (x, y) = (Variable::new(x?), Variable::new(y?));
    let mut optimizer = AdamW::new(parameters.variables(), 0.1)?;
    for number in 0..3 {
        parameters.zero_grad();
        let scope = cuda.memory_scope(format!("whole step {number}"));
        mse_loss(&model.forward(&x)?, &y, Reduction::Mean)?.backward()?;
        optimizer.step()?;
        let found = scope.finish();
        let (weight, activation) = (256 * 512 * 4, (ROWS * 512 * 4) as u64);
        let states = if number == 0 { 2 * (weight + 512 * 4) } else { 0 };
        let used = found.peak_bytes - found.start_bytes;
        let limit = states + weight + 3 * activation;
        check(used <= limit, &format!("{found}: {used} bytes, wanted at most {limit}"))?;
    }
    Ok(())
}

/// The numbers of steps in an optimizer's state.
fn steps_of(optimizer: &AdamW) -> selvedge::Result<Vec<Vec<u8>>> {
    let state = optimizer.state_dict()?;
    let steps = state.into_iter().filter(|(name, _)| name.ends_with("step"));
    steps.map(|(_, tensor)| tensor.to_bytes()).collect()
}

/// A step for whose forward, backward or optimizer there is no memory is an error that changes nothing and is not
/// counted. The fake computes no numbers, so tests/gpu/steps.rs compares bits.
fn steps_without_memory() -> ChildOutcome {
    let device = Device::cuda(0)?;
    let cuda = device.as_cuda().ok_or("the device is no CUDA device")?;
    let [x, y] = [256, 512].map(|width| Tensor::ones(&[64, width], DType::F32, &device));
    let (x, y) = (Variable::new(x?), Variable::new(y?));
    /// Sets a limit that leaves this much memory.
    fn leave(cuda: &selvedge::driver::Device, bytes: Option<u64>) -> selvedge::Result<()> {
        cuda.trim()?;
        let used = cuda.pool_statistics().reserved_bytes;
        cuda.set_memory_limit(bytes.map(|bytes| used + bytes))
    }
    for part in ["forward", "backward", "optimizer"] {
        let model = Linear::new(256, 512, &Initializer::new(&device).with_seed(1))?;
        let parameters = Parameters::new(&model)?;
        let mut optimizer = AdamW::new(parameters.variables(), 0.1)?;
        let loss = || mse_loss(&model.forward(&x)?, &y, Reduction::Mean);
        let state = || -> selvedge::Result<Vec<Vec<u8>>> {
            let own = model.state_dict();
            let gradients = parameters.variables().into_iter().filter_map(|parameter| parameter.grad());
            own.into_values().chain(gradients).map(|tensor| tensor.to_bytes()).collect()
        };
        // A first backward, so that there are gradients to keep.
        loss()?.backward()?;
        device.synchronize()?;
        let before = state()?;
        let recorded = loss()?;
        leave(cuda, Some(1))?;
        let failed = match part {
            "forward" => loss().map(drop),
            "backward" => recorded.backward(),
            _ => optimizer.step(),
        };
        leave(cuda, None)?;
        let is_refused = matches!(failed, Err(selvedge::Error::OutOfMemory { .. }));
        check(is_refused, &format!("{part} without memory: {failed:?}"))?;
        check(state()? == before, &format!("{part} without memory changed parameters or gradients"))?;
        optimizer.step()?;
        check(state()? != before, &format!("the step after a failed {part} changed nothing"))?;
        // A failed step is not counted, so the next one has the numbers of the first.
        let mut undisturbed = AdamW::new(parameters.variables(), 0.1)?;
        undisturbed.step()?;
        let [found, wanted] = [&optimizer, &undisturbed].map(steps_of);
        check(found? == wanted?, &format!("a failed {part} was counted as a step"))?;
    }
    Ok(())
}

/// The check of probabilities waits for nothing.
fn captured_probabilities() -> ChildOutcome {
    let device = Device::cuda(0)?;
    let x = Variable::with_grad(Tensor::full(&[300], 0.5, DType::F32, &device)?)?;
    let run = || binary_cross_entropy(&x, &x, Reduction::Mean);
    drop(run()?);
    let (graph, loss) = device.stream()?.capture(|_| run())?;
    drop(graph);
    check(loss.shape().rank() == 0, "a mean has dimensions")
}

/// The backward of a cross-entropy writes over logits that nothing else has.
fn memory_of_a_cross_entropy() -> ChildOutcome {
    let (device, mib) = (Device::cuda(0)?, 1 << 20);
    let pool = device.as_cuda().ok_or("no CUDA device")?;
    let x = Variable::with_grad(Tensor::ones(&[256, 1], DType::F32, &device)?)?;
    let row = Variable::new(Tensor::ones(&[1, 1024], DType::F32, &device)?);
    let target = Tensor::zeros(&[256], DType::I64, &device)?;
    for (holds, wanted) in [(false, 1), (true, 2)] {
        let scope = pool.memory_scope("loss and gradient");
        let logits = (&x + &row)?;
        let loss = cross_entropy(&logits, &target, CrossEntropyOptions::default())?;
        let held = holds.then_some(logits);
        loss.backward()?;
        let found = scope.finish();
        drop(held);
        let used = found.peak_bytes - found.start_bytes;
        check(used / mib == wanted, &format!("{used} bytes at most, held: {holds}"))?;
    }
    Ok(())
}

/// Twice its operand; has the addresses of its result and of the result's gradient.
struct Twice(Arc<Mutex<Vec<u64>>>);

impl Twice {
    fn note(&self, x: &Tensor) -> selvedge::Result<()> {
        let address = x.device_slice::<f32>()?.address();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(address);
        Ok(())
    }
}

impl Function for Twice {
    fn name(&self) -> &'static str {
        "twice"
    }

    fn forward(&self, _: &mut FunctionContext, inputs: &[&Tensor]) -> selvedge::Result<Tensor> {
        let result = (inputs[0] * 2.0)?;
        self.note(&result)?;
        Ok(result)
    }

    fn backward(&self, _: &[Tensor], gradient: &Tensor) -> selvedge::Result<Vec<Option<Tensor>>> {
        self.note(gradient)?;
        Ok(vec![Some((gradient * 2.0)?)])
    }
}

/// A captured backward writes over logits that the same capture computes, and over no others: the next launch reads them.
fn captured_cross_entropies() -> ChildOutcome {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let x = Variable::with_grad(Tensor::ones(&[4, 8], DType::F32, &device)?)?;
    let target = Tensor::zeros(&[4], DType::I64, &device)?;
    for (parts_before, overwrites) in [(0, true), (1, false), (2, false)] {
        let addresses = Arc::new(Mutex::new(Vec::new()));
        let logits = || Variable::apply(Twice(addresses.clone()), &[&x]);
        let loss = |logits: Variable| cross_entropy(&logits, &target, CrossEntropyOptions::default());
        let before = if parts_before == 1 { Some(logits()?) } else { None };
        let loss_before = if parts_before == 2 { Some(loss(logits()?)?) } else { None };
        let (graph, ()) = stream.capture(|_| match (before, loss_before) {
            (_, Some(loss)) => loss.backward(),
            (Some(logits), _) => loss(logits)?.backward(),
            _ => loss(logits()?)?.backward(),
        })?;
        graph.instantiate()?.launch(&stream)?;
        x.zero_grad();
        let addresses = addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let found = addresses.len() == 2 && (addresses[0] == addresses[1]) == overwrites;
        check(found, &format!("{parts_before} parts before the capture: {addresses:?}"))?;
    }
    Ok(())
}

fn layers(device: &Device, dropout: &Generator) -> selvedge::Result<Sequential> {
    let initializer = Initializer::new(device).with_seed(1);
    Ok(Sequential::new()
        .with(Linear::new(4, 8, &initializer)?)
        .with(BatchNorm1d::new(8, &initializer)?)
        .with(Dropout::new(0.5, dropout)?)
        .with(Linear::new(8, 2, &initializer)?))
}

fn loss(model: &dyn Module, inputs: &[Variable]) -> selvedge::Result<Variable> {
    mse_loss(&model.forward(&inputs[0])?, &inputs[1], Reduction::Mean)
}

/// The first step is uncaptured, the second captured, and later ones are launches of one graph.
fn steps_of_one_graph(fake: &Fake) -> ChildOutcome {
    let device = Device::cuda(0)?;
    let (own, other) = (Generator::new(3), Generator::new(3));
    let (model, eager) = (layers(&device, &own)?, layers(&device, &other)?);
    let (parameters, apart) = (Parameters::new(&model)?, Parameters::new(&eager)?);
    let optimizer = AdamW::new(parameters.variables(), 0.1)?;
    let mut step = TrainingStep::new(&parameters, optimizer, |inputs: &[Variable]| loss(&model, inputs))?
        .with_max_norm(1.0)?;
    let mut plain =
        TrainingStep::new(&apart, AdamW::new(apart.variables(), 0.1)?, |inputs: &[Variable]| {
            loss(&eager, inputs)
        })?
        .without_capture();
    let addresses = || -> selvedge::Result<Vec<u64>> {
        let buffers = parameters.buffers().into_iter().chain(parameters.gradient_buffers());
        buffers.map(|buffer| Ok(buffer.device_slice::<f32>()?.address())).collect()
    };
    let before = addresses()?;
    let statistics = || model.state_dict()["1.running_mean"].to_bytes();
    let mut seen = vec![statistics()?];
    for number in 0..5 {
        let [x, y] =
            [4, 2].map(|width| Tensor::full(&[6, width], f64::from(number), selvedge::DType::F32, &device));
        let (x, y) = (x?, y?);
        plain.run(&[&x, &y])?;
        // The value of a backward from before the step.
        let weight = &parameters.variables()[0];
        let product = weight.square()?.sum_all()?;
        let (launches, loss) = calls(fake, "cuGraphLaunch", || step.run(&[&x, &y]))?;
        check(
            launches == u64::from(number > 0),
            &format!("{launches} launches of a graph in step {number}"),
        )?;
        check(step.is_captured() == (number > 0), &format!("step {number}: {:?}", step.uncaptured_reason()))?;
        check(loss.count() == 1 && step.grad_norm().is_some(), "no loss or norm")?;
        check(own.state() == other.state(), &format!("step {number}: {own:?} in place of {other:?}"))?;
        let error = product.backward().err().map(|error| error.to_string()).unwrap_or_default();
        check(error.contains("changed in place"), &format!("step {number}: '{error}'"))?;
        check(!seen.contains(&statistics()?), &format!("step {number} left the running statistics"))?;
        seen.push(statistics()?);
    }
    check(addresses()? == before, "the buffers have moved")?;
    let states = step.optimizer().state_dict()?;
    check(states["0.step"].item::<i64>()? == 5, "steps are not counted")?;
    // Another shape runs uncaptured beside the graph, and so does a step while a tensor shares the gradients.
    let [x, y] = [4, 2].map(|width| Tensor::ones(&[6, width], selvedge::DType::F32, &device));
    let (x, y) = (x?, y?);
    let short = [x.slice(0, 0..3)?, y.slice(0, 0..3)?];
    let (launches, _) = calls(fake, "cuGraphLaunch", || step.run(&[&short[0], &short[1]]))?;
    check(launches == 0 && step.is_captured(), "another shape was captured")?;
    let (launches, _) = calls(fake, "cuGraphLaunch", || step.run(&[&x, &y]))?;
    check(launches == 1, "the graph was lost")?;
    let shared = parameters.variables()[0].grad();
    let (launches, _) = calls(fake, "cuGraphLaunch", || step.run(&[&x, &y]))?;
    check(launches == 0 && !step.is_captured(), "a launch under a tensor that shares gradients")?;
    drop(shared);
    step.run(&[&x, &y])?;
    check(step.is_captured(), "a later step is captured again")
}

/// Steps with a loss scale are launches of one graph too, also after skipped ones, which do not count.
fn steps_with_a_loss_scale(fake: &Fake) -> ChildOutcome {
    let device = Device::cuda(0)?;
    let model = Linear::new(4, 2, &Initializer::new(&device).with_compute_dtype(DType::F16))?;
    let parameters = Parameters::new(&model)?;
    let half = |inputs: &[Variable]| {
        mse_loss(&model.forward(&inputs[0])?.cast(DType::F32)?, &inputs[1], Reduction::Mean)
    };
    let optimizer = AdamW::new(parameters.variables(), 0.1)?;
    let mut step = TrainingStep::new(&parameters, optimizer, half)?
        .with_max_norm(1.0)?
        .with_loss_scale(LossScale::dynamic())?;
    let [x, y] = [4, 2].map(|width| Tensor::ones(&[6, width], DType::F32, &device));
    let (x, y) = (x?, y?);
    let mut taken = 0;
    for number in 0..6 {
        let (launches, _) = calls(fake, "cuGraphLaunch", || step.run(&[&x, &y]))?;
        check(launches == u64::from(number > 0), &format!("{launches} launches in step {number}"))?;
        check(step.is_captured() == (number > 0), &format!("step {number}: {:?}", step.uncaptured_reason()))?;
        check(step.grad_norm().is_some(), "no norm")?;
        taken += i64::from(!step.is_skipped());
        let states = step.state_dict()?;
        let counted = states["0.step"].item::<i64>()?;
        check(counted == taken, &format!("{counted} steps are counted in place of {taken}"))?;
        check(states.contains_key("loss_scale.growth_tracker"), "no state of the loss scale")?;
    }
    Ok(())
}

/// A step within `detect_anomaly` checks its gradients without the graph, which later steps are captured as or launch.
fn checked_steps(fake: &Fake) -> ChildOutcome {
    let device = Device::cuda(0)?;
    let model = layers(&device, &Generator::new(3))?;
    let parameters = Parameters::new(&model)?;
    let [x, y] = [4, 2].map(|width| Tensor::ones(&[6, width], selvedge::DType::F32, &device));
    let (x, y) = (x?, y?);
    let optimizer = AdamW::new(parameters.variables(), 0.1)?;
    let mut step = TrainingStep::new(&parameters, optimizer, |inputs: &[Variable]| loss(&model, inputs))?;
    // The second step is the one to capture, the fourth the one to launch.
    for (number, checks, wanted) in [(0, false, 0), (1, true, 0), (2, false, 1), (3, true, 0), (4, false, 1)]
    {
        let (copies, (launches, result)) = calls(fake, "cuMemcpyDtoHAsync", || {
            calls(fake, "cuGraphLaunch", || match checks {
                true => Ok(detect_anomaly(|| step.run(&[&x, &y]))),
                false => Ok(step.run(&[&x, &y])),
            })
        })?;
        check(launches == wanted, &format!("{launches} launches of a graph in step {number}"))?;
        check(step.uncaptured_reason().is_none(), &format!("step {number}: {:?}", step.uncaptured_reason()))?;
        // The fake driver's kernels compute no gradients, so a check may refuse them: it has read them then.
        check((copies > 0) == checks, &format!("{copies} copies to the host in step {number}"))?;
        check(result.is_ok() || checks, &format!("step {number}: {:?}", result.err()))?;
    }
    Ok(())
}

/// Steps that are refused run uncaptured, count once, and say why.
fn steps_that_cannot_be_captured() -> ChildOutcome {
    let device = Device::cuda(0)?;
    let generator = Generator::new(3);
    let model = layers(&device, &generator)?;
    let parameters = Parameters::new(&model)?;
    let [x, y] = [4, 2].map(|width| Tensor::ones(&[6, width], selvedge::DType::F32, &device));
    let (x, y) = (x?, y?);
    let outside = Variable::with_grad(Tensor::ones(&[], selvedge::DType::F32, &device)?)?;
    let mut kept = Vec::new();
    type Loss<'a> = Box<dyn FnMut(&[Variable]) -> selvedge::Result<Variable> + 'a>;
    let cases: [(&str, Loss<'_>); 3] = [
        (
            "cannot be captured",
            Box::new(|inputs| {
                inputs[0].tensor().to_bytes()?;
                loss(&model, inputs)
            }),
        ),
        ("a leaf outside of Parameters", Box::new(|inputs| loss(&model, inputs)? * &outside)),
        (
            "keeps a tensor of its inputs",
            Box::new(|inputs| {
                kept.push(inputs[0].tensor());
                loss(&model, inputs)
            }),
        ),
    ];
    for (reason, loss) in cases {
        let mut step = TrainingStep::new(&parameters, AdamW::new(parameters.variables(), 0.1)?, loss)?;
        for _ in 0..3 {
            step.run(&[&x, &y])?;
        }
        let found = step.uncaptured_reason().unwrap_or("captured");
        check(found.contains(reason), &format!("'{found}' in place of '{reason}'"))?;
        let states = step.optimizer().state_dict()?;
        check(states["0.step"].item::<i64>()? == 3, &format!("{reason}: steps are not counted once"))?;
    }
    Ok(())
}

/// A captured step whose backward computes the forward again moves its generator as one without a checkpoint.
fn captured_checkpoints() -> ChildOutcome {
    let device = Device::cuda(0)?;
    let layers = |generator: &Generator| -> selvedge::Result<Arc<Sequential>> {
        let initializer = Initializer::new(&device).with_seed(1);
        let (first, second) = (Linear::new(4, 8, &initializer)?, Linear::new(8, 2, &initializer)?);
        Ok(Arc::new(Sequential::new().with(first).with(Dropout::new(0.5, generator)?).with(second)))
    };
    let generators = [Generator::new(3), Generator::new(3)];
    let [model, plain] = [layers(&generators[0])?, layers(&generators[1])?];
    let (parameters, apart) = (Parameters::new(&*model)?, Parameters::new(&*plain)?);
    let mut step =
        TrainingStep::new(&parameters, AdamW::new(parameters.variables(), 0.1)?, |inputs: &[Variable]| {
            let model = model.clone();
            let result = checkpoint(move |x: &[Variable]| model.forward(&x[0]), &[&inputs[0]])?;
            mse_loss(&result, &inputs[1], Reduction::Mean)
        })?;
    let mut other =
        TrainingStep::new(&apart, AdamW::new(apart.variables(), 0.1)?, |inputs: &[Variable]| {
            loss(&*plain, inputs)
        })?;
    let [x, y] = [4, 2].map(|width| Tensor::ones(&[6, width], selvedge::DType::F32, &device));
    let (x, y) = (x?, y?);
    for number in 0..4 {
        step.run(&[&x, &y])?;
        other.run(&[&x, &y])?;
        check(step.is_captured() == (number > 0), &format!("step {number}: {:?}", step.uncaptured_reason()))?;
        let [own, other] = generators.each_ref().map(Generator::state);
        check(own == other, &format!("step {number}: {own:?} in place of {other:?}"))?;
    }
    Ok(())
}

/// The identity, which no linear layer joins.
struct Identity;

impl Module for Identity {
    fn forward(&self, input: &Variable) -> selvedge::Result<Variable> {
        Ok(input.clone())
    }
}

/// A feed-forward launches no more than its two products: bias, activation and pre-activation are their epilogues. With 16-bit
/// types the backward launches no more than that of products without an activation.
fn launches_of_a_feed_forward(fake: &Fake) -> ChildOutcome {
    let device = Device::cuda(0)?;
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let initializer = Initializer::new(&device).with_seed(1).with_dtype(dtype);
        let layer = FeedForward::new(64, FeedForwardOptions::default(), &initializer)?;
        let x = Variable::with_grad(Tensor::ones(&[512, 64], dtype, &device)?)?;
        let parameters = layer.named_parameters();
        let weight = |name: &str| {
            let named = parameters.iter().find(|(parameter, _)| parameter == name);
            named.map(|(_, weight)| weight.tensor()).ok_or(format!("no {name}"))
        };
        let (first, second) = (weight("c_fc.weight")?, weight("c_proj.weight")?);
        let before = fake.launches();
        x.tensor().matmul(&first)?.matmul(&second)?;
        let of_products = fake.launches() - before;
        let before = fake.launches();
        let result = layer.forward(&x)?;
        let recorded = fake.launches() - before;
        let before = fake.launches();
        no_grad(|| layer.forward(&x))?;
        let found = [recorded, fake.launches() - before];
        check(
            found == [of_products; 2],
            &format!(
                "{dtype}: {found:?} launches with a gradient and without, {of_products} of the products"
            ),
        )?;
        let gradient = Tensor::ones(&[512, 64], dtype, &device)?;
        let before = fake.launches();
        result.backward_with(&gradient)?;
        let of_backward = fake.launches() - before;
        let plain =
            FeedForward::new(64, FeedForwardOptions::default(), &initializer)?.with_activation(Identity);
        let result = plain.forward(&Variable::with_grad(x.tensor())?)?;
        let before = fake.launches();
        result.backward_with(&gradient)?;
        let passes = u64::from(matches!(dtype, DType::F32 | DType::F64));
        let wanted = fake.launches() - before + passes;
        check(
            of_backward == wanted,
            &format!("{dtype}: {of_backward} launches of a backward, wanted {wanted}"),
        )?;
    }
    Ok(())
}

pub fn tests() -> Vec<Test> {
    vec![Test::new("training::a_step_is_captured_and_parameters_stay_at_their_addresses", || {
        children::must_succeed(&Variant::new(12040), "training", &[], &[("SELVEDGE_POOL", "none")]).map(drop)
    })]
}
