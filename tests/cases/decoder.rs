//! Small models of each family beside what transformers computes from them, in tests/data/models: tests/nn runs them on the CPU and
//! tests/gpu/nn.rs on a device.

use std::collections::BTreeMap;
use std::path::Path;

use selvedge::nn::{
    CrossEntropyOptions, Decoder, DecoderCache, DecoderOptions, GenerationOptions, Module, Variable,
    cross_entropy, no_grad,
};
use selvedge::{DType, Device, Result, Tensor};
use serde_json::Value;

#[path = "model_folders.rs"]
mod model_folders;

pub use model_folders::unpacked;

/// The cases.
pub const NAMES: [&str; 11] = [
    "gpt2",
    "llama2",
    "llama3",
    "mistral",
    "qwen2",
    "qwen2_yarn",
    "qwen3",
    "gemma2",
    "gemma3",
    "phi3",
    "bf16",
];

/// A loaded case.
struct Case {
    name: String,
    model: Decoder,
    tensors: BTreeMap<String, Tensor>,
    values: Value,
    tolerance: f64,
}

impl Case {
    fn new(folder: &Path, name: &str, dtype: DType, device: &Device) -> Result<Case> {
        let folder = folder.join(name);
        let options = DecoderOptions { dtype: Some(dtype), ..DecoderOptions::default() };
        let text = std::fs::read_to_string(folder.join("reference.json")).expect("a reference");
        Ok(Case {
            name: format!("{name} in {dtype}"),
            model: Decoder::load(&folder, device, &options)?,
            tensors: Tensor::read_safetensors(folder.join("reference.safetensors"), device)?
                .into_iter()
                .collect(),
            values: serde_json::from_str(&text).expect("JSON"),
            tolerance: match dtype {
                DType::F64 => 1e-10,
                DType::F32 => 1e-5,
                DType::F16 => 1e-2,
                // Three bits fewer than f16.
                _ => 8e-2,
            },
        })
    }

    fn number(&self, key: &str) -> f64 {
        self.values[key].as_f64().expect("a number")
    }

    fn ids(&self, key: &str) -> Vec<u32> {
        serde_json::from_value(self.values[key].clone()).expect("ids")
    }

    fn rows(&self, key: &str) -> Vec<Vec<u32>> {
        serde_json::from_value(self.values[key].clone()).expect("rows of ids")
    }

    /// Compares numbers, given the number to which the tolerance is relative.
    fn near(&self, part: &str, found: &Tensor, wanted: &Tensor, largest: f64) -> Result<()> {
        let numbers = |x: &Tensor| x.cast(DType::F64)?.to_vec::<f64>();
        assert_eq!(found.shape(), wanted.shape(), "{}: {part}", self.name);
        let (found, wanted) = (numbers(found)?, numbers(wanted)?);
        let differences = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs() / largest);
        // A difference of NaN is larger than every other.
        let far = differences.max_by(f64::total_cmp).unwrap_or(f64::NAN);
        assert!(far < self.tolerance, "{}: {part}: {far}", self.name);
        Ok(())
    }

    /// Returns the cross-entropy of each id after the first, where a mask is 1.
    fn loss(&self, logits: &Variable, ids: &Tensor, mask: Option<&Tensor>) -> Result<Variable> {
        let length = ids.shape()[1] - 1;
        let rows = logits.narrow(1, 0, length)?.reshape(&[-1, self.model.config().vocab_size() as isize])?;
        let targets = ids.narrow(1, 1, length)?.cast(DType::I64)?.reshape(&[-1])?;
        let options = CrossEntropyOptions::default();
        let Some(mask) = mask else { return cross_entropy(&rows, &targets, options) };
        let mask = mask.narrow(1, 1, length)?.cast(DType::I64)?.to_vec::<i64>()?;
        let chosen: Vec<i64> = (0..).zip(&mask).filter(|(_, mask)| **mask == 1).map(|(at, _)| at).collect();
        let chosen = Tensor::from_slice(&chosen, &[chosen.len()], &ids.device())?;
        cross_entropy(&rows.index_select(0, &chosen)?, &targets.index_select(0, &chosen)?, options)
    }
}

/// Checks logits, both losses, and parts of three gradients of a case.
pub fn logits_losses_and_gradients(folder: &Path, name: &str, dtype: DType, device: &Device) -> Result<()> {
    let case = Case::new(folder, name, dtype, device)?;
    let tensor = |key: &str| &case.tensors[key];
    let largest = case.number("max_logit");
    let near_number = |part: &str, found: &Variable, wanted: f64| {
        let wanted = Tensor::new([wanted], device)?;
        case.near(part, &found.tensor().reshape(&[1])?, &wanted, largest)
    };
    let logits = case.model.forward(&Variable::new(tensor("ids").clone()))?;
    let chosen = logits.tensor().index_select(1, tensor("positions.logits"))?;
    case.near("logits", &chosen, tensor("logits"), largest)?;
    let loss = case.loss(&logits, tensor("ids"), None)?;
    near_number("loss", &loss, case.number("loss"))?;
    loss.backward()?;
    let parameters: BTreeMap<String, Variable> = case.model.named_parameters().into_iter().collect();
    let mut gradients = 0;
    for (key, wanted) in &case.tensors {
        let Some(name) = key.strip_prefix("grad.") else { continue };
        let gradient = parameters[name].grad().expect("a gradient");
        let largest = gradient.abs()?.max_all()?.cast(DType::F64)?.item::<f64>()?;
        let rows = gradient.index_select(0, tensor(&format!("rows.{name}")))?;
        case.near(key, &rows, wanted, largest)?;
        gradients += 1;
    }
    assert_eq!(gradients, 3, "{}", case.name);
    assert!(parameters.values().all(|parameter| parameter.grad().is_some()), "{}", case.name);

    let (ids, mask) = (tensor("ragged.ids"), tensor("ragged.mask"));
    let logits = case.model.forward(&Variable::new(ids.clone()))?;
    let positions = tensor("positions.ragged.logits");
    let found = logits.tensor().index_select(1, positions)?;
    case.near("ragged logits", &found, tensor("ragged.logits"), largest)?;
    near_number("ragged loss", &case.loss(&logits, ids, Some(mask))?, case.number("ragged_loss"))
}

/// Checks continuations: with a cache and without one, to an end id, and of a batch padded on the left.
pub fn continuations(folder: &Path, name: &str, dtype: DType, device: &Device) -> Result<()> {
    let case = Case::new(folder, name, dtype, device)?;
    let (prompt, greedy) = (case.ids("prompt"), case.ids("greedy"));
    let options = GenerationOptions {
        max_new_ids: greedy.len(),
        end_ids: Some(Vec::new()),
        ..GenerationOptions::default()
    };
    assert_eq!(case.model.generate(&[&prompt], &options)?, [&greedy[..]], "{}", case.name);
    let mut ids: Vec<i64> = prompt.iter().map(|&id| i64::from(id)).collect();
    for (step, &wanted) in greedy.iter().enumerate() {
        let input = Variable::new(Tensor::from_slice(&ids, &[1, ids.len()], device)?);
        let last = no_grad(|| case.model.forward(&input))?.tensor().select(1, -1)?;
        if step == 0 {
            let top: Vec<(i64, f64)> =
                serde_json::from_value(case.values["first_top5"].clone()).expect("pairs");
            let found = last.log_softmax(-1)?.reshape(&[-1])?;
            let top_ids: Vec<i64> = top.iter().map(|(id, _)| *id).collect();
            let found = found.index_select(0, &Tensor::from_slice(&top_ids, &[top.len()], device)?)?;
            let wanted: Vec<f64> = top.iter().map(|(_, number)| *number).collect();
            let wanted = Tensor::from_slice(&wanted, &[top.len()], device)?;
            case.near("log-probabilities", &found, &wanted, case.number("max_logit"))?;
        }
        let id = last.argmax(&[1])?.to_vec::<i64>()?[0];
        assert_eq!(id, i64::from(wanted), "{}: id {step} without a cache", case.name);
        ids.push(id);
    }
    let until_end = GenerationOptions { end_ids: None, ..options.clone() };
    let found = case.model.generate(&[&prompt], &until_end)?;
    assert_eq!(found, [case.ids("greedy_until_eos")], "{}", case.name);

    let (left_ids, mask, wanted) = (case.rows("left_ids"), case.rows("left_mask"), case.rows("left_new_ids"));
    let prompts: Vec<Vec<u32>> = left_ids
        .iter()
        .zip(&mask)
        .map(|(ids, mask)| ids.iter().zip(mask).filter(|(_, mask)| **mask == 1).map(|(id, _)| *id).collect())
        .collect();
    let found = case.model.generate(&prompts, &GenerationOptions { max_new_ids: 14, ..until_end })?;
    let end_ids = case.model.config().end_ids();
    for (found, wanted) in found.iter().zip(&wanted) {
        // Rows of the reference go on with padding behind an end id.
        let end = wanted.iter().position(|id| end_ids.contains(id)).map_or(wanted.len(), |at| at + 1);
        assert_eq!(found, &wanted[..end], "{}: padded on the left", case.name);
    }
    assert_eq!(found.len(), wanted.len());
    Ok(())
}

/// Checks that a cache that is filled in parts gives the logits of a whole pass, over windows, both rotary bases and longrope's
/// switch, for sequences of equal and of different lengths.
pub fn cached_logits(folder: &Path, name: &str, dtype: DType, device: &Device) -> Result<()> {
    let case = Case::new(folder, name, dtype, device)?;
    let (ids, largest) = (&case.tensors["ids"], case.number("max_logit"));
    let rows = [ids.narrow(0, 0, 1)?, ids.narrow(0, 1, 1)?];
    // New ids of each sequence in each part.
    let equal: Vec<[usize; 2]> = [5, 1, 11, 1, 10, 1, 3].map(|count| [count; 2]).to_vec();
    let differing = vec![[2, 5], [1, 1], [1, 1], [1, 1], [11, 4], [1, 1], [1, 9], [1, 1], [1, 1]];
    let single = vec![[1, 1]; 20];
    for parts in [equal, differing, single] {
        let mut cache = DecoderCache::new();
        let mut read = [0, 0];
        for counts in parts {
            let longest = counts[0].max(counts[1]);
            let part = |row: usize| -> Result<Tensor> {
                // Ids behind a sequence's last one are any.
                let own = rows[row].narrow(1, read[row], counts[row])?;
                let more = rows[row].narrow(1, 0, longest - counts[row])?;
                Tensor::cat(&[&own, &more], 1)
            };
            let part = Tensor::cat(&[&part(0)?, &part(1)?], 0)?;
            let found = no_grad(|| case.model.forward_ragged(&part, &counts, &mut cache))?;
            read = [read[0] + counts[0], read[1] + counts[1]];
            assert_eq!(cache.lengths(), read);
            let all = read[0].max(read[1]);
            let padding = read.map(|length| all - length);
            let padded = |row: usize| -> Result<Tensor> {
                let (before, own) =
                    (rows[row].narrow(1, 0, padding[row])?, rows[row].narrow(1, 0, read[row])?);
                Tensor::cat(&[&before, &own], 1)
            };
            let whole = Tensor::cat(&[&padded(0)?, &padded(1)?], 0)?;
            let whole = no_grad(|| case.model.forward_padded(&whole, &padding))?;
            let wanted = whole.tensor().select(1, -1)?;
            case.near(&format!("logits of {read:?} cached positions"), &found.tensor(), &wanted, largest)?;
        }
    }
    Ok(())
}
