//! The GPT model beside an independent implementation, whose weights and results are in tests/data/gpt2: tests/nn runs it on the CPU and
//! tests/gpu/nn.rs on a device.

use std::collections::BTreeMap;
use std::path::Path;

use selvedge::nn::{CrossEntropyOptions, Gpt, GptConfig, Initializer, Module, Variable, cross_entropy};
use selvedge::{DType, Device, Result, Tensor};

/// The largest difference of elements over the largest element.
pub fn distance(found: &Tensor, wanted: &Tensor) -> Result<f64> {
    let (found, wanted) =
        (found.cast(DType::F64)?.to_vec::<f64>()?, wanted.cast(DType::F64)?.to_vec::<f64>()?);
    assert_eq!(found.len(), wanted.len());
    let largest = wanted.iter().fold(0f64, |most, x| most.max(x.abs()));
    Ok(found.iter().zip(&wanted).fold(0f64, |most, (a, b)| most.max((a - b).abs())) / largest)
}

/// Checks logits, loss and each gradient of the set `NAME.json`, `NAME.safetensors` and `NAME.reference.safetensors`, given the path of
/// the first, without and with a padded vocabulary. The reference was computed in f64 and rounded to f32.
pub fn logits_loss_and_gradients_are_those_of_the_reference(path: &Path, device: &Device) -> Result<()> {
    let config = GptConfig::from_json(&std::fs::read_to_string(path).expect("a configuration"))?;
    let read = |extension: &str| -> Result<BTreeMap<String, Tensor>> {
        Ok(Tensor::read_safetensors(path.with_extension(extension), device)?.into_iter().collect())
    };
    let (weights, reference) = (read("safetensors")?, read("reference.safetensors")?);
    let plain = config;
    for (dtype, tolerance, vocab_multiple) in
        [(DType::F32, 2e-4, 1), (DType::F64, 2e-6, 1), (DType::F32, 2e-4, 64)]
    {
        let config = GptConfig { vocab_multiple, ..plain };
        let near = |part: &str, found: &Tensor, wanted: &Tensor| -> Result<()> {
            let far = distance(found, wanted)?;
            assert!(
                far < tolerance,
                "{}: {part} in {dtype}, padded to {vocab_multiple}: {far}",
                path.display()
            );
            Ok(())
        };
        let mut model = Gpt::new(config, &Initializer::new(device).with_dtype(dtype))?;
        model.load_state_dict(&weights)?;
        assert_eq!(
            model.parameters().iter().map(|p| p.shape().iter().product::<usize>()).sum::<usize>(),
            config.parameter_count()
        );
        let ids = reference["ids"].cast(DType::I64)?;
        let length = ids.shape()[1] - 1;
        let logits = model.forward(&Variable::new(ids.narrow(1, 0, length)?))?;
        near("logits", &logits.tensor(), &reference["logits"])?;
        let targets = ids.narrow(1, 1, length)?.reshape(&[-1])?;
        let rows = logits.reshape(&[-1, config.vocab_size as isize])?;
        let loss = cross_entropy(&rows, &targets, CrossEntropyOptions::default())?;
        near("loss", &loss.tensor().reshape(&[1])?, &reference["loss"])?;
        loss.backward()?;
        let mut gradients = 0;
        for (name, parameter) in model.named_parameters() {
            let gradient = parameter.grad().expect("each parameter has a gradient");
            near(&format!("gradient of {name}"), &gradient, &reference[&format!("grad.{name}")])?;
            gradients += 1;
        }
        let wanted = reference.keys().filter(|name| name.starts_with("grad.")).count();
        assert_eq!(gradients, wanted);
    }
    Ok(())
}
