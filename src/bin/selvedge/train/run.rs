//! The loop of a run: steps, evaluations, checkpoints, samples.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use selvedge::nn::{
    ByteTokenizer, CharTokenizer, CheckpointList, Checkpoints, Generation, Gpt, GptConfig, LossScale, Module,
    Sampler, SamplerOptions, TextFile, Tokenizer, Trainer, TrainerOptions,
};
use selvedge::{DType, Device, Error};

use super::report::{Evaluation, Finished, Start, report, sample_after_step};
use super::signals::{Signal, Signals};
use super::{memory, plot, source};
use crate::device::{self, reason_text};
use crate::failure::Failure;
use crate::files;
use crate::options::{ComputeDType, TokenizerKind, TrainOptions};
use crate::output::{Progress, Report, Style, grouped};

/// The folder of a run that names none.
const FOLDER: &str = "selvedge-run";
/// The most likely ids that a sample draws from.
const SAMPLE_TOP_K: usize = 40;
const SAMPLE_TEMPERATURE: f64 = 0.8;
/// The evaluations during a run that write a sample: the first ones, while a text changes most.
const EARLY_SAMPLES: usize = 3;

/// The result of a run.
pub struct Outcome {
    pub report: Report,
    pub signal: Option<Signal>,
}

/// Prints lines while a run goes on, unless its result is JSON.
struct Screen {
    prints: bool,
}

impl Screen {
    fn print(&self, text: &str) {
        if self.prints {
            let mut stdout = std::io::stdout().lock();
            // A reader that has gone ends the output, not the training.
            let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        }
    }
}

pub fn run(options: &TrainOptions) -> Result<Outcome, Failure> {
    let screen = Screen { prints: !options.json };
    if let Some(path) = &options.plot {
        files::check_writable(path)?;
    }
    let (device, reason) = device::choose(options.device)?;
    let (text, name) = source::text(options.text.as_deref())?;
    let tokenizer = tokenizer(options, &text)?;
    let config = config(options, tokenizer.vocab_size())?;
    let numbers = trainer_options(options, &config);
    let new = |text, options| Trainer::new(config, text, &*tokenizer, options, &device);
    // A new run with another batch, for the advice of an error.
    let steps_of_batch = |batch| {
        let smaller = TrainerOptions { batch: batch as usize, ..numbers };
        let mut trainer = new(source::text(options.text.as_deref())?.0, smaller)?;
        (0..memory::STEPS).try_for_each(|_| trainer.step().map(drop))
    };
    let explained = |error| memory::explained(error, (options.batch, options.accumulation), steps_of_batch);
    let mut trainer = new(text, numbers).map_err(explained)?;
    let (mut checkpoints, folder) = open(options)?;
    if options.resume {
        resume(&mut trainer, &folder, options.force, &device)?;
    }
    let plot = options.plot.clone().unwrap_or_else(|| folder.join("loss.svg"));
    let signals = Signals::catch()?;
    let mut start = Start {
        text: name,
        ids: trainer.text().len(),
        entropy: trainer.text().unigram_entropy(),
        vocab_size: tokenizer.vocab_size(),
        config,
        device: device.to_string(),
        cpu_because: reason.as_ref().map(Error::to_string),
        folder: folder.clone(),
        ended_writer: checkpoints.ended_writer().map(|(pid, host)| format!("process {pid} on host {host}")),
        first_step: trainer.step_count(),
        sample: String::new(),
    };
    start.sample = sample(trainer.model_mut(), &*tokenizer, options)?;
    screen.print(&start.render(Style::of_stdout()));
    if let Some(writer) = &start.ended_writer {
        screen.print(&format!("The lock of {writer}, which has ended, was taken over.\n"));
    }
    if let Some(reason) = &reason {
        screen.print(&format!("{}\n", reason_text(reason)));
    }
    screen.print(&Evaluation::head(Style::of_stdout()));

    let mut course = Course::default();
    let begun = Instant::now();
    let result =
        steps(options, (&mut trainer, &*tokenizer), &mut checkpoints, (&signals, &screen), &mut course);
    let signal = match result {
        Ok(signal) => signal,
        Err(error) => {
            drop(trainer);
            return Err(explained(error));
        }
    };
    let sample = sample(trainer.model_mut(), &*tokenizer, options)?;
    files::write(&plot, &plot::draw(&course.losses, &course.evaluations, start.entropy))?;
    let finished = Finished {
        last_step: trainer.step_count(),
        seconds: begun.elapsed().as_secs_f64(),
        steps_per_second: course.steps_per_second(),
        ids_of_a_step: trainer.ids_of_a_step(),
        sample,
        plot,
        signal,
        course,
    };
    Ok(Outcome { report: report(&start, &finished), signal })
}

/// The losses of a run.
#[derive(Debug, Default)]
pub struct Course {
    /// Steps and their losses.
    pub losses: Vec<(u64, f64)>,
    pub evaluations: Vec<Evaluation>,
    /// Steps and the samples after them.
    pub samples: Vec<(u64, String)>,
    /// Seconds of steps alone.
    step_seconds: f64,
}

impl Course {
    fn steps_per_second(&self) -> f64 {
        self.losses.len() as f64 / self.step_seconds.max(1e-9)
    }

    /// Returns the loss of the last step and the rate so far, for the bar.
    fn last_step(&self, ids_of_a_step: usize) -> String {
        let loss = self.losses.last().map_or(f64::NAN, |(_, loss)| *loss);
        let rate = grouped((self.steps_per_second() * ids_of_a_step as f64) as u64);
        format!("loss {loss:.4}, {rate} ids/s")
    }
}

/// Takes steps until the last one or a signal. Each evaluation saves a checkpoint.
fn steps(
    options: &TrainOptions,
    (trainer, tokenizer): (&mut Trainer, &dyn Tokenizer),
    checkpoints: &mut Checkpoints,
    (signals, screen): (&Signals, &Screen),
    course: &mut Course,
) -> Result<Option<Signal>, Error> {
    let progress = Progress::of_steps("steps", options.steps);
    let mut signal = signals.received();
    if trainer.step_count() == 0 {
        evaluate(trainer, course, screen)?;
    }
    while trainer.step_count() < options.steps && signal.is_none() {
        let begun = Instant::now();
        let report = trainer.step()?;
        course.step_seconds += begun.elapsed().as_secs_f64();
        course.losses.push((report.step, report.loss));
        progress.set(report.step);
        progress.describe(course.last_step(trainer.ids_of_a_step()));
        signal = signals.received();
        let is_last = report.step >= options.steps;
        if is_last || report.step % options.every == 0 || signal.is_some() {
            // A signal leaves no time for an evaluation.
            let has_time = signal.is_none();
            if has_time {
                progress.suspend(|| evaluate(trainer, course, screen))?;
            }
            checkpoints.save(&trainer.checkpoint()?)?;
            if has_time && !is_last && course.samples.len() < EARLY_SAMPLES {
                progress.suspend(|| write_sample((trainer, tokenizer), options, course, screen))?;
            }
        }
    }
    Ok(signal)
}

fn evaluate(trainer: &mut Trainer, course: &mut Course, screen: &Screen) -> Result<(), Error> {
    let validation = trainer.evaluate()?;
    let since = course.evaluations.last().map_or(0, |evaluation| evaluation.step);
    let recent: Vec<f64> =
        course.losses.iter().filter(|(step, _)| *step > since).map(|(_, loss)| *loss).collect();
    let training = (!recent.is_empty()).then(|| recent.iter().sum::<f64>() / recent.len() as f64);
    let evaluation = Evaluation {
        step: trainer.step_count(),
        training,
        validation,
        ids_per_second: course.steps_per_second() * trainer.ids_of_a_step() as f64,
        seconds: course.step_seconds,
    };
    screen.print(&evaluation.line());
    course.evaluations.push(evaluation);
    Ok(())
}

/// Prints and records a sample of the model as it is now.
fn write_sample(
    (trainer, tokenizer): (&mut Trainer, &dyn Tokenizer),
    options: &TrainOptions,
    course: &mut Course,
    screen: &Screen,
) -> Result<(), Error> {
    let text = sample(trainer.model_mut(), tokenizer, options)?;
    let step = trainer.step_count();
    screen.print(&format!("{}\n", sample_after_step(step, &text, Style::of_stdout())));
    course.samples.push((step, text));
    Ok(())
}

fn trainer_options(options: &TrainOptions, config: &GptConfig) -> TrainerOptions {
    let learning_rate = options.learning_rate.unwrap_or(1.0 / config.width as f64);
    TrainerOptions {
        steps: options.steps,
        batch: options.batch as usize,
        context: options.context.map(|count| count as usize),
        accumulation: options.accumulation as usize,
        learning_rate,
        min_learning_rate: learning_rate / 10.0,
        warmup_steps: options.warmup,
        weight_decay: options.weight_decay,
        max_norm: (options.max_norm != 0.0).then_some(options.max_norm),
        seed: options.seed,
        loss_scale: (config.compute_dtype == Some(DType::F16)).then(LossScale::dynamic),
        ..TrainerOptions::default()
    }
}

fn tokenizer(options: &TrainOptions, text: &TextFile) -> Result<Box<dyn Tokenizer>, Failure> {
    Ok(match options.tokenizer {
        TokenizerKind::Char => Box::new(CharTokenizer::from_text(text)?),
        TokenizerKind::Byte => Box::new(ByteTokenizer),
    })
}

/// Returns the configuration of a name or a file, with the vocabulary of the tokenizer.
fn config(options: &TrainOptions, vocab_size: usize) -> Result<GptConfig, Failure> {
    let config = match options.model.as_str() {
        "tiny" => GptConfig::tiny(vocab_size),
        "gpt2" => GptConfig::gpt2(),
        path => {
            let text = files::read_text(Path::new(path), "tiny, gpt2, or a configuration of GPT-2 in JSON")?;
            GptConfig::from_json(&text)?
        }
    };
    let compute_dtype = match options.dtype {
        None => config.compute_dtype,
        Some(ComputeDType::F32) => None,
        Some(ComputeDType::Bf16) => Some(DType::BF16),
        Some(ComputeDType::F16) => Some(DType::F16),
    };
    let dropout = options.dropout.unwrap_or(config.dropout);
    Ok(GptConfig { vocab_size, dropout, compute_dtype, ..config })
}

/// Opens the folder of the run.
fn open(options: &TrainOptions) -> Result<(Checkpoints, PathBuf), Failure> {
    let Some(folder) = &options.run else {
        let free = (1..).map(|number| match number {
            1 => PathBuf::from(FOLDER),
            number => PathBuf::from(format!("{FOLDER}-{number}")),
        });
        for folder in free {
            if !folder.exists() {
                return Ok((Checkpoints::open(&folder)?, folder));
            }
        }
        return Err(Failure::failed(format!("no name like {FOLDER} is free")));
    };
    let checkpoints = Checkpoints::open(folder)?;
    if !options.resume {
        if let Some(latest) = checkpoints.list()?.latest() {
            let path = folder.display().to_string();
            let found = format!("a run at step {}", latest.step());
            let wanted = "a new folder, or --resume to continue the run".to_owned();
            return Err(Error::File { path, found, wanted }.into());
        }
    }
    Ok((checkpoints, folder.clone()))
}

fn resume(trainer: &mut Trainer, folder: &Path, force: bool, device: &Device) -> Result<(), Failure> {
    let list = CheckpointList::read(folder)?;
    let Some(latest) = list.latest() else {
        let (path, found) = (folder.display().to_string(), "no checkpoint".to_owned());
        let wanted = "the folder of a run to resume".to_owned();
        return Err(Error::File { path, found, wanted }.into());
    };
    match trainer.resume(&latest.load(device)?, force) {
        Err(error @ Error::InvalidArgument { .. }) if error.to_string().contains("hash") => {
            let mut failure = Failure::from(error);
            failure.message += "; --force continues with this text";
            Err(failure)
        }
        result => Ok(result?),
    }
}

/// Returns a sample of the model's text.
fn sample(model: &mut Gpt, tokenizer: &dyn Tokenizer, options: &TrainOptions) -> Result<String, Error> {
    model.eval();
    let sampler = SamplerOptions {
        temperature: SAMPLE_TEMPERATURE,
        top_k: Some(SAMPLE_TOP_K),
        ..SamplerOptions::default()
    };
    // A line's end, or the first id of a vocabulary without one.
    let prompt = tokenizer.encode("\n").unwrap_or_else(|_| vec![0]);
    let generation = Generation::new(model, &prompt, Sampler::new(sampler, options.seed)?)?;
    let ids = generation.take(options.sample as usize).collect::<Result<Vec<u32>, Error>>()?;
    tokenizer.decode(&ids)
}
