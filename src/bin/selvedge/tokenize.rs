//! `selvedge tokenize`: texts become a file of ids, or a tokenizer.

use std::path::Path;
use std::time::Instant;

use selvedge::nn::{BpeOptions, SubwordTokenizer, TextFile, TokenFormat, TokenWriter, Tokenizer};
use selvedge::{DType, Error};
use serde_json::json;

use crate::failure::Failure;
use crate::files;
use crate::options::{IdDType, TokenFileFormat, TokenizeOptions};
use crate::output::{Progress, Report, Style, Table, bytes, counted, grouped, rate, seconds};
use crate::signals::Signals;

/// The most ids of a file of u16.
const U16_IDS: usize = 1 << 16;

/// Runs the command.
pub fn tokenize(options: &TokenizeOptions) -> Result<Report, Failure> {
    if options.train { train(options) } else { encode(options) }
}

/// Reads a text that has at least one byte.
fn text(path: &Path) -> selvedge::Result<TextFile> {
    let text = TextFile::read(path)?;
    if text.is_empty() {
        let wanted = "a text of at least one byte".to_owned();
        let path = path.display().to_string();
        return Err(Error::File { path, found: "an empty file".to_owned(), wanted });
    }
    Ok(text)
}

fn encode(options: &TokenizeOptions) -> Result<Report, Failure> {
    let folder = options.tokenizer.as_deref().unwrap_or(Path::new("."));
    let mut tokenizer = SubwordTokenizer::from_folder(folder)?;
    if let Some(end) = &options.end {
        tokenizer = tokenizer.with_end_token(end)?;
    }
    let refused = |found: String, wanted: &str| -> Failure {
        Error::InvalidArgument { operation: "tokenize", found, wanted: wanted.to_owned() }.into()
    };
    let Some(end) = tokenizer.end_id() else {
        let found = format!("the tokenizer {}, which names no end token", folder.display());
        return Err(refused(found, "--end with the token that ends a document, such as <|endoftext|>"));
    };
    let of_name = TokenFormat::of_path(&options.out);
    let is_npy = of_name == Some(TokenFormat::Npy);
    let format = match options.format {
        Some(TokenFileFormat::Npy) => TokenFormat::Npy,
        Some(TokenFileFormat::Raw) => TokenFormat::Raw,
        Some(TokenFileFormat::Llmc) => TokenFormat::Llmc,
        None => of_name.unwrap_or(TokenFormat::Llmc),
    };
    if is_npy != (format == TokenFormat::Npy) && (is_npy || options.format.is_some()) {
        let found = format!("the name {} for another format", options.out.display());
        return Err(refused(found, "a name that ends in .npy for NumPy's format alone"));
    }
    let vocab_size = tokenizer.vocab_size();
    let dtype = match options.dtype {
        Some(IdDType::U16) => DType::U16,
        Some(IdDType::U32) => DType::U32,
        None if vocab_size <= U16_IDS => DType::U16,
        None => DType::U32,
    };
    if dtype == DType::U16 && vocab_size > U16_IDS {
        let found = format!("a vocabulary of {vocab_size} ids for a file of u16");
        return Err(refused(found, "at most 65536 ids, or --dtype u32"));
    }
    files::check_writable(&options.out)?;
    let total = options.texts.iter().filter_map(|path| path.metadata().ok()).map(|found| found.len()).sum();
    let progress = Progress::of_bytes("tokenize", total);
    let start = Instant::now();
    let signals = Signals::catch()?;
    let mut writer = TokenWriter::create(&options.out, format, dtype, options.shard)?;
    let mut done = 0u64;
    let documents = options.texts.iter().map(|path| text(path));
    let encoded = tokenizer.encode_documents(documents, Some(end), &mut |ids, length| {
        if signals.received().is_some() {
            return Err(Error::InvalidArgument {
                operation: "tokenize",
                found: "a signal".to_owned(),
                wanted: "the time to encode the texts".to_owned(),
            });
        }
        done += length as u64;
        progress.set(done);
        writer.write(ids)
    });
    if let Some(signal) = signals.received() {
        // The drop of the writer removes the file that it writes; one of several gets its name when the next id comes.
        let whole = options.shard.map_or(0, |ids| writer.len().saturating_sub(1) / ids);
        let left = if whole == 0 { "no file" } else { "the whole files, and no other," };
        let message = format!("{} ended the run; {left} of {} is left", signal.name(), options.out.display());
        return Err(Failure { code: signal.exit_code(), message });
    }
    encoded?;
    let ids = writer.len();
    let paths = writer.finish()?;
    drop(progress);
    let time = start.elapsed().as_secs_f64();
    let per_id = done as f64 / ids as f64;
    let mut table = Table::new("<<");
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    row("texts", format!("{}, {}", counted(options.texts.len() as u64, "document"), bytes(done)));
    row("ids", format!("{} of {dtype}, {per_id:.2} bytes an id", grouped(ids)));
    row("time", format!("{}, {}", seconds(time), rate(done, time)));
    for path in &paths {
        row("file", path.display().to_string());
    }
    let json = json!({
        "documents": options.texts.len(),
        "bytes": done,
        "ids": ids,
        "vocab_size": vocab_size,
        "dtype": dtype.to_string(),
        "end_id": end,
        "seconds": time,
        "files": paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
    });
    Ok(Report { text: table.render(Style::of_stdout()), json })
}

fn train(options: &TokenizeOptions) -> Result<Report, Failure> {
    let texts = options.texts.iter().map(|path| text(path)).collect::<selvedge::Result<Vec<_>>>()?;
    let total: u64 = texts.iter().map(|text| text.len() as u64).sum();
    let defaults = BpeOptions::default();
    let bpe = BpeOptions {
        vocab_size: usize::try_from(options.vocab.unwrap_or_default()).unwrap_or(usize::MAX),
        pattern: options.pattern.map_or(defaults.pattern, Into::into),
        end_token: options.end.clone().unwrap_or(defaults.end_token),
        ..defaults
    };
    let progress = Progress::spinner("train a tokenizer");
    let start = Instant::now();
    let tokenizer = SubwordTokenizer::train(texts.iter().map(|text| &text[..]), &bpe)?;
    tokenizer.save(&options.out)?;
    drop(progress);
    let time = start.elapsed().as_secs_f64();
    let vocab_size = tokenizer.vocab_size();
    let mut table = Table::new("<<");
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    row("texts", format!("{}, {}", counted(texts.len() as u64, "document"), bytes(total)));
    let fewer = if vocab_size < bpe.vocab_size { "; no other pair of tokens occurs twice" } else { "" };
    row("vocabulary", format!("{} ids{fewer}", grouped(vocab_size as u64)));
    row("time", seconds(time));
    row("folder", options.out.display().to_string());
    let json = json!({
        "documents": texts.len(),
        "bytes": total,
        "vocab_size": vocab_size,
        "end_token": bpe.end_token,
        "seconds": time,
        "folder": options.out.display().to_string(),
    });
    Ok(Report { text: table.render(Style::of_stdout()), json })
}
