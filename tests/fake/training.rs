//! A step of a small GPT on the fake driver: its forward, backward, clipping and optimizer are captured as one graph, the
//! parameters stay at their addresses, and the optimizer is a launch for each run of neighbours.

use selvedge::nn::{
    AdamW, CrossEntropyOptions, Embedding, FeedForward, FeedForwardOptions, Initializer, LayerNorm, Linear,
    Module, MultiHeadAttention, MultiHeadAttentionOptions, Optimizer, Parameters, TransformerBlock, Variable,
    cross_entropy,
};
use selvedge::tensor::{Device, Tensor};

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

pub fn tests() -> Vec<Test> {
    vec![Test::new("training::a_step_is_captured_and_parameters_stay_at_their_addresses", || {
        children::must_succeed(&Variant::new(12040), "training", &[], &[("SELVEDGE_POOL", "none")]).map(drop)
    })]
}
