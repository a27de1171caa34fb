//! A network that reads handwritten digits: batches in a new order each epoch, dropout, weights
//! in a file, and images that it has not seen.
//!
//! ```text
//! cargo run --features nn --example 22-digits
//!
//! epoch  1: loss 1.767
//! epoch  4: loss 0.280
//! epoch  8: loss 0.158
//! epoch 12: loss 0.110
//! 342 of 359 images that it has not seen are right
//! ```
//!
//! The images are of `data/digits`; another `.npz` file with `images` and `labels` is an argument.

use std::process::ExitCode;

use selvedge::nn::{
    AdamW, CrossEntropyOptions, Dropout, Initializer, Linear, Module, Optimizer, Relu, Sequential, Variable,
    cross_entropy, no_grad,
};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Error, Result, Tensor};

/// The share of the images that are kept for the test is one in so many.
const TEST_SHARE: usize = 5;
const BATCH: usize = 64;
const EPOCHS: usize = 12;

/// Reads images, as rows of pixels from 0 to 1, and their digits.
fn read(path: &str, device: &Device) -> Result<(Tensor, Tensor)> {
    let arrays = Tensor::read_npz(path, device)?;
    let array = |wanted: &str| {
        let found = arrays.iter().find(|(name, _)| name == wanted);
        found.map(|(_, array)| array).ok_or_else(|| Error::UnknownName {
            kind: "array",
            wanted: wanted.to_owned(),
            found: arrays.iter().map(|(name, _)| name.clone()).collect(),
        })
    };
    let images = array("images")?.cast(DType::F32)?;
    let labels = array("labels")?.cast(DType::I64)?;
    let rows = images.reshape(&[images.shape()[0] as isize, -1])?;
    Ok(((rows / 16.0)?, labels))
}

fn layers(pixels: usize, initializer: &Initializer, generator: &Generator) -> Result<Sequential> {
    Ok(Sequential::new()
        .with(Linear::new(pixels, 64, initializer)?)
        .with(Relu)
        .with(Dropout::new(0.1, generator)?)
        .with(Linear::new(64, 10, initializer)?))
}

fn train(path: &str) -> Result<()> {
    let device = Device::best();
    let (images, labels) = read(path, &device)?;
    let (count, pixels) = (images.shape()[0], images.shape()[1]);
    let generator = Generator::new(7);
    let ids = generator.permutation(count, &device)?;
    let training = ids.narrow(0, 0, count - count / TEST_SHARE)?;
    let unseen = ids.narrow(0, training.count(), count / TEST_SHARE)?;

    let model = layers(pixels, &Initializer::new(&device).with_seed(7), &generator)?;
    let mut optimizer = AdamW::new(model.parameters(), 0.005)?;

    for epoch in 1..=EPOCHS {
        let order = training.index_select(0, &generator.permutation(training.count(), &device)?)?;
        let mut losses = 0.0;
        for start in (0..order.count()).step_by(BATCH) {
            let batch = order.narrow(0, start, BATCH.min(order.count() - start))?;
            let pixels = Variable::new(images.index_select(0, &batch)?);
            let digits = labels.index_select(0, &batch)?;
            let loss = cross_entropy(&model.forward(&pixels)?, &digits, CrossEntropyOptions::default())?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            losses += loss.tensor().item::<f32>()?;
        }
        if epoch == 1 || epoch % 4 == 0 {
            println!("epoch {epoch:2}: loss {:.3}", losses / order.count().div_ceil(BATCH) as f32);
        }
    }

    // Another model of the same layers takes over the weights from a file.
    let path = std::env::temp_dir().join(format!("digits-{}.safetensors", std::process::id()));
    let weights = model.state_dict();
    let entries: Vec<(&str, &Tensor)> = weights.iter().map(|(name, x)| (name.as_str(), x)).collect();
    Tensor::write_safetensors(&path, &entries, &[])?;
    let mut model = layers(pixels, &Initializer::new(&device), &generator)?;
    model.load_state_dict(&Tensor::read_safetensors(&path, &device)?.into_iter().collect())?;
    std::fs::remove_file(&path).ok();

    model.eval();
    let pixels = Variable::new(images.index_select(0, &unseen)?);
    let found = no_grad(|| model.forward(&pixels))?.tensor().argmax(1)?;
    let is_right = found.eq(&labels.index_select(0, &unseen)?)?.to_vec::<bool>()?;
    let right = is_right.iter().filter(|&&is_right| is_right).count();
    println!("{right} of {} images that it has not seen are right", is_right.len());
    Ok(())
}

fn main() -> ExitCode {
    let path = std::env::args().nth(1).unwrap_or_else(|| "data/digits/digits.npz".to_owned());
    match train(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
