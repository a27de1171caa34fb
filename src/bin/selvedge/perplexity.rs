//! `selvedge eval --model`: the perplexity of a published model.

use std::path::{Path, PathBuf};
use std::time::Instant;

use selvedge::Error;
use selvedge::nn::{TextLoss, TokenFiles, TokenFormat};
use serde_json::json;

use crate::device::reason_text;
use crate::failure::Failure;
use crate::files;
use crate::model::LoadedModel;
use crate::options::EvaluateOptions;
use crate::output::{Progress, Report, Style, Table, counted, grouped};

pub fn evaluate(options: &EvaluateOptions, folder: &Path) -> Result<Report, Failure> {
    let refused = |found: String, wanted: String| -> Failure {
        Error::InvalidArgument { operation: "eval", found, wanted }.into()
    };
    if options.data.is_empty() {
        return Err(refused("no data".to_owned(), "--data with texts, or files of ids".to_owned()));
    }
    let loaded = LoadedModel::new(folder, options.device, options.dtype, options.lora.as_deref())?;
    let config = loaded.model.config();
    let count = |option: Option<u64>, default: usize| {
        option.map_or(default, |count| usize::try_from(count).unwrap_or(usize::MAX))
    };
    let context = count(options.context, config.context());
    if context < 2 || context > config.context() {
        let wanted = format!("2 to {}, the context of the model", config.context());
        return Err(refused(format!("a context of {context}"), wanted));
    }
    let stride = count(options.stride, context);
    if stride > context {
        return Err(refused(format!("a stride of {stride}"), format!("at most the context, {context}")));
    }
    let sequences = read(&options.data, &loaded)?;
    let losses = sequences.iter().map(|ids| loaded.model.text_losses(ids, Some(context), Some(stride)));
    let losses = losses.collect::<Result<Vec<_>, Error>>()?;
    let total: usize = losses.iter().map(ExactSizeIterator::len).sum();
    let progress = Progress::of_steps("evaluates", total as u64);
    let start = Instant::now();
    let mut counted_loss = TextLoss::default();
    for (done, loss) in losses.into_iter().flatten().enumerate() {
        counted_loss += loss?;
        progress.set(done as u64 + 1);
    }
    drop(progress);
    let seconds = start.elapsed().as_secs_f64();
    let (ids, loss) = (counted_loss.ids, counted_loss.mean());
    let rate = ids as f64 / seconds.max(1e-9);
    let mut table = Table::new("<<");
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    row(
        "data",
        format!("{}, {} ids counted", counted(sequences.len() as u64, "sequence"), grouped(ids as u64)),
    );
    row("windows", format!("{} of {context} ids, {stride} apart", grouped(total as u64)));
    row("loss", format!("{loss:.4} nats an id, {:.3} bits", loss / std::f64::consts::LN_2));
    row("perplexity", format!("{:.3}", loss.exp()));
    row("speed", format!("{} ids/s on {}", grouped(rate as u64), loaded.device));
    let mut text = table.render(Style::of_stdout());
    if let Some(reason) = &loaded.reason {
        text += &format!("\n{}", reason_text(reason));
    }
    let mut json = json!({
        "data": options.data.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        "ids": ids,
        "windows": total,
        "context": context,
        "stride": stride,
        "loss": loss,
        "perplexity": loss.exp(),
        "seconds": seconds,
        "ids_per_second": rate,
    });
    loaded.describe(folder, &mut json);
    Ok(Report { text, json })
}

/// Reads each text as a sequence, and all files of ids as one.
fn read(paths: &[PathBuf], loaded: &LoadedModel) -> Result<Vec<Vec<u32>>, Failure> {
    let has_ids = |path: &&PathBuf| TokenFormat::of_path(path).is_some();
    let (tokens, texts): (Vec<&PathBuf>, Vec<&PathBuf>) = paths.iter().partition(has_ids);
    let mut sequences = Vec::new();
    if !tokens.is_empty() {
        let files = TokenFiles::read(&tokens)?;
        sequences.push((tokens[0], files.ids(0..files.len())?));
    }
    for path in texts {
        let text = files::read_text(path, "a text, or a .bin or .npy file of ids")?;
        sequences.push((path, loaded.tokenizer.encode_prompt(&text)?));
    }
    let vocab_size = loaded.model.config().vocab_size();
    let checked = sequences.into_iter().map(|(path, ids)| {
        let refused = |found: String, wanted: String| {
            Err(Error::File { path: path.display().to_string(), found, wanted }.into())
        };
        if ids.len() < 2 {
            return refused(counted(ids.len() as u64, "id"), "at least two ids".to_owned());
        }
        match ids.iter().find(|&&id| id as usize >= vocab_size) {
            Some(id) => refused(format!("the id {id}"), format!("ids below {vocab_size}, the model's")),
            None => Ok(ids),
        }
    });
    checked.collect()
}
