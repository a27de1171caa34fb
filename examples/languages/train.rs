//! Three models trained from their seeds: an MLP on a cubic, a small GPT on a verse, and a classifier of handwritten digits.
//!
//! The programs beside this one do the same in C, C++ and Python. Each prints the bits of the last loss and the FNV-1a hash of
//! all parameters, which are equal in the four languages.
//!
//! ```text
//! cargo run --release --features nn --example languages
//! cargo run --release --features nn --example languages -- data/digits/digits.npz
//! ```

use std::process::ExitCode;

use selvedge::nn::{
    AdamW, ByteTokenizer, CrossEntropyOptions, Dropout, GptConfig, Initializer, Linear, Module, Optimizer,
    Reduction, Relu, Sequential, Tanh, TextFile, Trainer, TrainerOptions, Variable, cross_entropy, mse_loss,
};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Error, Result, Tensor};

const VERSE: &str = "Over and under, the shuttle goes through;\n\
                     over and under, the green and the blue.\n\
                     Under and over, the edge holds it tight:\n\
                     the selvedge is finished and never unravels.\n";

/// Returns the line of a model: the bits of its last loss, and the FNV-1a hash of its parameters' bytes in their order.
fn line(name: &str, loss: f32, model: &dyn Module) -> Result<String> {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for (_, parameter) in model.named_parameters() {
        for byte in parameter.tensor().to_bytes()? {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    Ok(format!("{name}: loss {:08x}, parameters {hash:016x}", loss.to_bits()))
}

/// Fits y = x³ - x at 65 points by 100 steps on all of them.
fn mlp(device: &Device) -> Result<String> {
    // Multiples of 1/32, whose cubes are exact.
    let points: Vec<f32> = (-32..=32).map(|point| point as f32 / 32.0).collect();
    let values: Vec<f32> = points.iter().map(|x| x * x * x - x).collect();
    let input = Variable::new(Tensor::from_vec(points, &[65, 1], device)?);
    let target = Variable::new(Tensor::from_vec(values, &[65, 1], device)?);

    let initializer = Initializer::new(device).with_seed(4);
    let model = Sequential::new()
        .with(Linear::new(1, 32, &initializer)?)
        .with(Tanh)
        .with(Linear::new(32, 32, &initializer)?)
        .with(Tanh)
        .with(Linear::new(32, 1, &initializer)?);
    let mut optimizer = AdamW::new(model.parameters(), 0.01)?;

    let mut last = 0.0;
    for _ in 0..100 {
        let loss = mse_loss(&model.forward(&input)?, &target, Reduction::Mean)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        last = loss.tensor().item::<f32>()?;
    }
    line("mlp", last, &model)
}

/// Trains a transformer of two blocks on the verse's bytes for 12 steps.
fn gpt(device: &Device) -> Result<String> {
    let config =
        GptConfig { context: 32, width: 32, layers: 2, heads: 4, dropout: 0.1, ..GptConfig::tiny(256) };
    let options = TrainerOptions {
        steps: 12,
        warmup_steps: 3,
        batch: 4,
        learning_rate: 3e-3,
        min_learning_rate: 3e-4,
        seed: 2,
        ..TrainerOptions::default()
    };
    let text = TextFile::from_bytes(VERSE.repeat(4));
    let mut trainer = Trainer::new(config, text, &ByteTokenizer, options, device)?;
    let mut last = 0.0;
    for _ in 0..12 {
        last = trainer.step()?.loss;
    }
    line("gpt", last as f32, trainer.model())
}

/// Trains on images of 8 x 8 pixels in two epochs of 28 batches, in a new order each, with dropout.
fn digits(path: &str, device: &Device) -> Result<String> {
    let arrays = Tensor::read_npz(path, device)?;
    let array = |wanted: &str| {
        let found = arrays.iter().find(|(name, _)| name == wanted);
        found.map(|(_, array)| array).ok_or_else(|| Error::UnknownName {
            kind: "array",
            wanted: wanted.to_owned(),
            found: arrays.iter().map(|(name, _)| name.clone()).collect(),
        })
    };
    let images = (array("images")?.cast(DType::F32)?.flatten(1, -1)? / 16.0)?;
    let labels = array("labels")?.cast(DType::I64)?;

    // One generator draws the weights and then the dropout, another the orders.
    let (generator, orders) = (Generator::new(7), Generator::new(8));
    let initializer = Initializer::new(device).with_generator(&generator);
    let model = Sequential::new()
        .with(Linear::new(64, 32, &initializer)?)
        .with(Relu)
        .with(Dropout::new(0.1, &generator)?)
        .with(Linear::new(32, 10, &initializer)?);
    let mut optimizer = AdamW::new(model.parameters(), 0.005)?;

    let mut last = 0.0;
    for _ in 0..2 {
        let order = orders.permutation(labels.count(), device)?;
        for batch in 0..28 {
            let batch = order.narrow(0, 64 * batch, 64)?;
            let pixels = Variable::new(images.index_select(0, &batch)?);
            let wanted = labels.index_select(0, &batch)?;
            let loss = cross_entropy(&model.forward(&pixels)?, &wanted, CrossEntropyOptions::default())?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            last = loss.tensor().item::<f32>()?;
        }
    }
    line("digits", last, &model)
}

/// Returns the lines that the programs of all languages print.
pub(crate) fn lines(path: &str, device: &Device) -> Result<String> {
    Ok([mlp(device)?, gpt(device)?, digits(path, device)?].map(|line| line + "\n").concat())
}

fn main() -> ExitCode {
    let path = std::env::args().nth(1).unwrap_or_else(|| "data/digits/digits.npz".to_owned());
    match lines(&path, &Device::cpu()) {
        Ok(lines) => {
            print!("{lines}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
