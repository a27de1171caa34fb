//! `selvedge explain attention`: the kernels of an attention, or the reason why it stores its scores.

use selvedge::attention::{Band, Dropout, Pass, Plan, PlannedKernel, Problem};
use selvedge::types::Layout;
use serde_json::{Value, json};

use super::{device_text, properties};
use crate::failure::Failure;
use crate::options::AttentionOptions;
use crate::output::Report;
use crate::plan::invalid;

pub fn attention(options: &AttentionOptions) -> Result<Report, Failure> {
    let AttentionOptions { batch, heads, length, dimension, dtype, soft_cap, dropout, .. } = *options;
    let key_heads = options.key_heads.unwrap_or(heads);
    let keys = options.keys.unwrap_or(length);
    let (before, after) = match options.window[..] {
        [] => (None, None),
        [before, after] => (Some(before), Some(after)),
        _ => return Err(invalid("--window with one number, or more than two", "--window BEFORE,AFTER")),
    };
    if !(0.0..=1.0).contains(&dropout) {
        return Err(invalid(format!("--dropout {dropout}"), "a probability from 0 to 1"));
    }
    let queries = Layout::contiguous(&[batch, heads, length, dimension])?;
    let of_keys = Layout::contiguous(&[batch, key_heads, keys, dimension])?;
    let threshold = Dropout::threshold(dropout);
    let problem = Problem {
        band: Band { before, after: if options.causal { Some(0) } else { after } },
        soft_cap,
        dropout: (threshold > 0).then_some(Dropout { seed: 0, offset: 0, threshold }),
        ..Problem::new(dtype, queries, of_keys, of_keys)
    };
    let (properties, here) = properties(options.arch)?;
    let plan = match (options.decode, options.backward) {
        (true, _) => Plan::explain_decode(&problem, properties)?,
        (false, true) => Plan::explain(&problem, Pass::Backward, properties)?,
        (false, false) => Plan::explain(&problem, Pass::Forward, properties)?,
    };
    let (major, minor) = properties.capability;
    let kernel = |kernel: &PlannedKernel| {
        let PlannedKernel { name, tile: (queries, keys), blocks } = kernel;
        json!({ "name": name, "tile": [queries, keys], "blocks": blocks })
    };
    let json = json!({
        "queries": queries.shape().to_vec(),
        "keys": of_keys.shape().to_vec(),
        "dtype": dtype.to_string(),
        "backward": options.backward,
        "decode": options.decode,
        "device": { "compute_capability": format!("{major}.{minor}"), "here": here },
        "engine": plan.engine(),
        "kernels": plan.kernels().iter().map(kernel).collect::<Vec<Value>>(),
        "stored_probabilities": plan.stored_probabilities(),
        "lacks": plan.unsupported().map(ToString::to_string),
    });
    Ok(Report { text: format!("On {}:\n{plan}\n", device_text(here)), json })
}
