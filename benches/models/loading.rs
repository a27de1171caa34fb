//! Loading a folder of weights to the device, beside copies of page-locked memory.

use std::time::Instant;

use selvedge::nn::{Decoder, DecoderConfig, DecoderOptions, Initializer};
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use crate::Options;
use crate::decoding::LLAMA;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

/// Bytes of a copy of page-locked memory.
const COPIED: usize = 1 << 30;

const METHOD: &str = "Milliseconds of the host's clock to load a Llama of 1.1 B parameters in bf16, one safetensors file of 2.2 GB that the page \
     cache holds, until its weights are on the device, beside copies of as many bytes from page-locked memory, 1 GiB at a time.";

pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(bare, "loading", "Loading a model's folder", METHOD)?;
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let folder = std::env::temp_dir().join(format!("selvedge-loading-{}", std::process::id()));
    let config = DecoderConfig::from_json(LLAMA, None)?;
    let bytes = 2 * config.parameter_count();
    Decoder::new(config, &Initializer::new(&device).with_seed(1).with_dtype(DType::BF16))?.save(&folder)?;
    let pinned = Tensor::from_pinned(stream.device().pinned::<u8>(COPIED)?, &[COPIED])?;
    for (name, is_mapped) in [("read", false), ("mapped", true)] {
        let name = format!("Llama 1.1B, {name}");
        let subject = Subject {
            name: &name,
            against: "copies of page-locked memory",
            unit: Unit::Milliseconds,
            bytes: Some((bytes as u64, bytes as u64)),
            rule: Rule::Speed,
            goal: Some(0.8),
        };
        let load = DecoderOptions::default();
        let figure = turns(
            options.turns(2, 20),
            &subject,
            || {
                let start = Instant::now();
                let model = match is_mapped {
                    false => Decoder::load(&folder, &device, &load)?,
                    // SAFETY: nobody else knows the folder.
                    true => unsafe { Decoder::load_mapped(&folder, &device, &load) }?,
                };
                device.synchronize()?;
                let taken = start.elapsed().as_secs_f64() * 1e3;
                drop(model);
                Ok(taken)
            },
            || {
                let start = Instant::now();
                let copied = pinned.to(&device)?;
                device.synchronize()?;
                drop(copied);
                Ok(start.elapsed().as_secs_f64() * 1e3 * bytes as f64 / COPIED as f64)
            },
        )?;
        println!("  {name}: {:.1} ms, {:.1} GB/s", figure.own.median, bytes as f64 / figure.own.median / 1e6);
        recorder.add(figure);
    }
    std::fs::remove_dir_all(&folder)?;
    recorder.finish(&options.out)
}
