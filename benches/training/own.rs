//! Our side: a trainer with captured steps on random ids, as `selvedge train --data` runs it.

use selvedge::driver::{Event, MemoryScope, Stream};
use selvedge::nn::{
    Decoder, DecoderConfig, Gpt, Initializer, LanguageModel, TokenFiles, TokenFormat, TokenWriter,
    TokenizedText, Trainer, TrainerOptions,
};
use selvedge::tensor::Device;
use selvedge::types::DType;

use crate::harness::random::Random;
use crate::harness::report::Failure;
use crate::rows::{LLAMA, Model, Row};

/// Ids of the data.
const IDS: usize = 4 << 20;
/// The steps before the first one that counts: the first loads kernels, and the second is captured.
const WARM_UP: usize = 5;
/// More than a run takes, so that the learning rate does not reach its end.
const SCHEDULED: u64 = 100_000;

/// The steps of a trainer of any model.
trait Steps {
    /// Takes a step, and returns its loss.
    fn step(&mut self) -> selvedge::Result<f64>;
    fn is_captured(&self) -> bool;
}

impl<M: LanguageModel> Steps for Trainer<M> {
    fn step(&mut self) -> selvedge::Result<f64> {
        Trainer::step(self).map(|report| report.loss)
    }

    fn is_captured(&self) -> bool {
        Trainer::is_captured(self)
    }
}

/// A training, warmed up.
pub struct Own {
    steps: Box<dyn Steps>,
    stream: Stream,
    start: Event,
    end: Event,
    memory: MemoryScope,
}

impl Own {
    pub fn new(row: &Row, device: &Device) -> Result<Own, Failure> {
        let stream = device.stream()?;
        let driver = stream.device();
        let (start, end) = (driver.timing_event()?, driver.timing_event()?);
        let memory = driver.memory_scope(row.name);
        let steps = trainer(row, random_ids(row.model.vocab_size()?)?, device)?;
        let mut own = Own { steps, stream, start, end, memory };
        own.milliseconds(WARM_UP)?;
        if !own.steps.is_captured() {
            return Err(format!("the steps of {} were not captured; RUST_LOG=info says why", row.name).into());
        }
        Ok(own)
    }

    /// Milliseconds of one of some steps, from the first one's batch until the host has the last loss.
    pub fn milliseconds(&mut self, steps: usize) -> Result<f64, Failure> {
        self.start.record(&self.stream)?;
        for _ in 0..steps {
            self.steps.step()?;
        }
        self.end.record(&self.stream)?;
        self.end.synchronize()?;
        Ok(f64::from(self.start.elapsed_ms(&self.end)?) / steps as f64)
    }

    /// The peak of live bytes in the memory pool since before the model was made.
    pub fn peak_bytes(&self) -> u64 {
        self.memory.so_far().peak_bytes
    }
}

fn trainer(row: &Row, text: TokenizedText, device: &Device) -> Result<Box<dyn Steps>, Failure> {
    let options = TrainerOptions {
        steps: SCHEDULED,
        batch: row.batch,
        learning_rate: 6e-4,
        min_learning_rate: 6e-5,
        is_shuffled: true,
        ..TrainerOptions::default()
    };
    let compute_dtype = row.is_bf16.then_some(DType::BF16);
    Ok(match &row.model {
        Model::Gpt2 { config, .. } => {
            let mut config = config();
            config.compute_dtype = compute_dtype;
            let model = Gpt::from_seed(config, options.seed, device)?;
            Box::new(Trainer::with_model(model, text, None, options)?)
        }
        Model::Llama => {
            let initializer = Initializer::new(device).with_seed(options.seed);
            let initializer = match compute_dtype {
                Some(dtype) => initializer.with_compute_dtype(dtype),
                None => initializer,
            };
            let model = Decoder::new(DecoderConfig::from_json(LLAMA, None)?, &initializer)?;
            Box::new(Trainer::with_model(model, text, None, options)?)
        }
    })
}

/// Ids of a uniform distribution, by way of a file as a run reads them.
fn random_ids(vocab_size: usize) -> Result<TokenizedText, Failure> {
    let mut random = Random::new(7);
    let ids: Vec<u32> = (0..IDS).map(|_| (random.bits() % vocab_size as u64) as u32).collect();
    let path = std::env::temp_dir().join(format!("selvedge-training-{}.bin", std::process::id()));
    let mut writer = TokenWriter::create(&path, TokenFormat::Llmc, DType::U16, None)?;
    writer.write(&ids)?;
    let paths = writer.finish()?;
    let files = TokenFiles::read(&paths);
    for path in &paths {
        std::fs::remove_file(path)?;
    }
    Ok(TokenizedText::from_files(files?)?)
}
