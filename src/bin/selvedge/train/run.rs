//! The loop of a run: steps, evaluations, checkpoints, samples.

use std::io::Write;
use std::time::Instant;

use selvedge::Error;
use selvedge::nn::{Checkpoints, Module, SamplerOptions, Split, Tokenizer, Trainer};

use super::language_model::RunModel;
use super::losses::LossFile;
use super::memory::Meter;
use super::profile::Profiler;
use super::report::{Evaluation, Finished, Start, report, sample_after_step};
use super::resume::{self, Prepared, Resumed};
use super::settings::Settings;
use super::{memory, plot, source};
use crate::device::{self, reason_text};
use crate::failure::Failure;
use crate::files;
use crate::options::TrainOptions;
use crate::output::{Progress, Report, Style, grouped};
use crate::signals::{Signal, Signals};

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
    options.check()?;
    let screen = Screen { prints: !options.json };
    let resumed = if options.resume { Some(Resumed::open(options)?) } else { None };
    let prepared = match &resumed {
        Some(resumed) => resumed.prepare(options)?,
        None => Prepared::new(options)?,
    };
    let Prepared { text, name, tokenizer, settings, changes } = prepared;
    let Settings { config, numbers, stored } = &settings;
    if let Some(path) = &stored.plot {
        files::check_writable(path)?;
    }
    let done = resumed.as_ref().map_or(0, Resumed::step);
    let mut profiler = Profiler::new(options, done, numbers.steps)?;
    let (device, reason) = device::choose(stored.device)?;
    let tokenizer = tokenizer.as_deref();
    // A resumed run takes its weights from the checkpoint, but for those under adapters.
    let has_base = resumed.is_none() || config.lora().is_some();
    let base = stored.model.as_deref().filter(|_| has_base);
    let new_model = || config.new_model(base, numbers.seed, &device);
    let new_trainer = |model, numbers| Trainer::with_model(model, text.clone(), tokenizer, numbers);
    let meter = Meter { device, numbers: *numbers, new_model: &new_model, new_trainer: &new_trainer };
    if options.memory {
        return Ok(Outcome { report: memory::report(&meter)?, signal: None });
    }
    let explained = |error| memory::explained(error, &meter);
    let new = || new_trainer(new_model()?, *numbers);
    let mut trainer = new().map_err(explained)?;
    let (mut checkpoints, folder, set_aside) = match resumed {
        Some(resumed) => resumed.load(&mut trainer, &settings, options.force, &device)?,
        None => {
            let (checkpoints, folder) = resume::new_folder(options)?;
            resume::copy_tokenizer(options, stored, &folder)?;
            (checkpoints, folder, Vec::new())
        }
    };
    let plot = stored.plot.clone().unwrap_or_else(|| folder.join("loss.svg"));
    if let Some(profiler) = &mut profiler {
        profiler.set_picture(&plot);
    }
    let signals = Signals::catch()?;
    let mut course = Course::default();
    let mut losses = LossFile::open(&folder, trainer.step_count(), &mut course)?;
    let mut start = Start {
        text: name,
        ids: trainer.text().len(),
        entropy: trainer.text().unigram_entropy(),
        held_out: text.range(Split::Validation).len(),
        is_text: stored.data.is_empty(),
        has_tokenizer: tokenizer.is_some(),
        vocab_size: tokenizer.map_or(config.vocab_size(), Tokenizer::vocab_size),
        config: config.clone(),
        base: stored.model.clone(),
        trained: trainer.model().parameters().iter().map(|x| x.shape().count()).sum(),
        device: device.to_string(),
        cpu_because: reason.as_ref().map(Error::to_string),
        folder: folder.clone(),
        ended_writer: checkpoints.ended_writer().map(|(pid, host)| format!("process {pid} on host {host}")),
        first_step: trainer.step_count(),
        steps: numbers.steps,
        changes,
        set_aside,
        prompt: stored.prompt.clone(),
        sample: String::new(),
    };
    start.sample = sample(trainer.model_mut(), tokenizer, &settings)?;
    screen.print(&start.render(Style::of_stdout()));
    if let Some(writer) = &start.ended_writer {
        screen.print(&format!("The lock of {writer}, which has ended, was taken over.\n"));
    }
    if let Some(reason) = &reason {
        screen.print(&format!("{}\n", reason_text(reason)));
    }
    if let Some(reason) = profiler.as_ref().and_then(Profiler::failure) {
        eprintln!("warning: no profile: {reason}");
    }
    if !start.is_finished() {
        screen.print(&Evaluation::head(Style::of_stdout()));
    }

    let begun = Instant::now();
    let mut loop_of_steps = Steps {
        settings: &settings,
        tokenizer,
        checkpoints: &mut checkpoints,
        losses: &mut losses,
        signals: &signals,
        screen: &screen,
        course: &mut course,
        profiler: profiler.as_mut(),
    };
    let result = loop_of_steps.run(&mut trainer);
    let draw =
        |course: &Course| files::write(&plot, plot::draw(&course.losses, &course.evaluations, start.entropy));
    let signal = match result {
        Ok(signal) => signal,
        Err(error) => {
            drop(trainer);
            let has_losses = !course.losses.is_empty();
            let mut failure = match error {
                StepsError::Trainer(error) => explained(error),
                StepsError::Losses(failure) => failure,
            };
            // The picture shows how the run came to its end. The first error is the one to report.
            if has_losses && draw(&course).is_ok() {
                failure.message += &format!("; {} has the losses until then", plot.display());
            }
            return Err(failure);
        }
    };
    // Nothing has changed since the first sample.
    let sample = match start.is_finished() {
        true => start.sample.clone(),
        false => sample(trainer.model_mut(), tokenizer, &settings)?,
    };
    draw(&course)?;
    let finished = Finished {
        last_step: trainer.step_count(),
        seconds: begun.elapsed().as_secs_f64(),
        steps_per_second: course.steps_per_second(),
        ids_of_a_step: trainer.ids_of_a_step(),
        sample,
        plot,
        signal,
        course,
        profile: profiler.map(|profiler| profiler.finish(&device)),
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
    /// The steps of this process, and their seconds.
    steps: u64,
    step_seconds: f64,
}

impl Course {
    fn steps_per_second(&self) -> f64 {
        self.steps as f64 / self.step_seconds.max(1e-9)
    }

    /// Returns the last step that has a loss.
    pub fn last(&self) -> Option<u64> {
        let evaluated = self.evaluations.last().map(|evaluation| evaluation.step);
        self.losses.last().map(|(step, _)| *step).max(evaluated)
    }

    /// Returns the loss of the last step and the rate so far, for the bar.
    fn last_step(&self, ids_of_a_step: usize) -> String {
        let loss = self.losses.last().map_or(f64::NAN, |(_, loss)| *loss);
        let rate = grouped((self.steps_per_second() * ids_of_a_step as f64) as u64);
        format!("loss {loss:.4}, {rate} ids/s")
    }
}

/// The loop of steps.
struct Steps<'a> {
    settings: &'a Settings,
    tokenizer: Option<&'a dyn Tokenizer>,
    checkpoints: &'a mut Checkpoints,
    losses: &'a mut LossFile,
    signals: &'a Signals,
    screen: &'a Screen,
    course: &'a mut Course,
    profiler: Option<&'a mut Profiler>,
}

/// An error of the training, or one of the file of losses.
enum StepsError {
    Trainer(Error),
    Losses(Failure),
}

impl From<Error> for StepsError {
    fn from(error: Error) -> StepsError {
        StepsError::Trainer(error)
    }
}

impl Steps<'_> {
    /// Takes steps until the last one or a signal. Each evaluation saves a checkpoint.
    fn run(&mut self, trainer: &mut Trainer<RunModel>) -> Result<Option<Signal>, StepsError> {
        let (last, every) = (self.settings.numbers.steps, self.settings.stored.every);
        let mut signal = self.signals.received();
        if trainer.step_count() >= last {
            return Ok(signal);
        }
        let progress = Progress::of_steps("steps", last);
        if trainer.step_count() == 0 {
            progress.suspend(|| self.evaluate(trainer))?;
        }
        while trainer.step_count() < last && signal.is_none() {
            let begun = Instant::now();
            let report = match &mut self.profiler {
                Some(profiler) => profiler.step(trainer)?,
                None => trainer.step()?,
            };
            self.course.step_seconds += begun.elapsed().as_secs_f64();
            self.course.steps += 1;
            self.course.losses.push((report.step, report.loss));
            progress.set(report.step);
            progress.describe(self.course.last_step(trainer.ids_of_a_step()));
            signal = self.signals.received();
            let is_last = report.step >= last;
            if is_last || report.step % every == 0 || signal.is_some() {
                // A signal leaves no time for an evaluation.
                let has_time = signal.is_none();
                if has_time {
                    progress.suspend(|| self.evaluate(trainer))?;
                }
                self.save(trainer)?;
                if has_time && !is_last && self.course.samples.len() < EARLY_SAMPLES {
                    progress.suspend(|| self.write_sample(trainer))?;
                }
            }
        }
        Ok(signal)
    }

    /// Saves a checkpoint with the options of the run, then the losses.
    fn save(&mut self, trainer: &Trainer<RunModel>) -> Result<(), StepsError> {
        let mut checkpoint = trainer.checkpoint()?;
        checkpoint.info.program = serde_json::json!(self.settings.stored);
        self.checkpoints.save(&checkpoint)?;
        self.losses.append(self.course).map_err(StepsError::Losses)
    }

    fn evaluate(&mut self, trainer: &mut Trainer<RunModel>) -> Result<(), Error> {
        let validation = trainer.evaluate()?;
        let course = &mut *self.course;
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
        self.screen.print(&evaluation.line());
        course.evaluations.push(evaluation);
        Ok(())
    }

    /// Prints and records a sample of the model as it is now.
    fn write_sample(&mut self, trainer: &mut Trainer<RunModel>) -> Result<(), Error> {
        let text = sample(trainer.model_mut(), self.tokenizer, self.settings)?;
        if text.is_empty() {
            return Ok(());
        }
        let step = trainer.step_count();
        self.screen.print(&format!("{}\n", sample_after_step(step, &text, Style::of_stdout())));
        self.course.samples.push((step, text));
        Ok(())
    }
}

/// Returns a sample of the model's text, which is empty if none is wanted, and without a tokenizer.
fn sample(
    model: &mut RunModel,
    tokenizer: Option<&dyn Tokenizer>,
    settings: &Settings,
) -> Result<String, Error> {
    let Settings { config, numbers, stored } = settings;
    let Some(tokenizer) = tokenizer.filter(|_| stored.sample > 0) else { return Ok(String::new()) };
    model.eval();
    let sampler = SamplerOptions {
        temperature: SAMPLE_TEMPERATURE,
        top_k: Some(SAMPLE_TOP_K),
        ..SamplerOptions::default()
    };
    let prompt = source::default_prompt(tokenizer, &stored.prompt);
    let context = numbers.context.unwrap_or(config.context());
    let ids = model.continued(&prompt, (sampler, numbers.seed), context, stored.sample)?;
    // An embedding may have more rows than the tokenizer has tokens.
    let is_known =
        |id: &Result<u32, Error>| !id.as_ref().is_ok_and(|id| *id as usize >= tokenizer.vocab_size());
    tokenizer.decode(&ids.filter(is_known).collect::<Result<Vec<u32>, Error>>()?)
}
