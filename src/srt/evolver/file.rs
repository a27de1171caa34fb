//! `.evolver` files: a state from which an evolution continues bit for bit.
//!
//! A [state file](crate::io::state_file) with magic `SELVEVOL`. Its contents, in words of 64 bits: seed, population, survivors,
//! bound, largest number of generations; λ, mutation scale, σ, threshold; n and the length of the history; a and b of the best
//! state, n², the history.

use std::path::Path;

use super::{Evolver, EvolverOptions};
use crate::error::Result;
use crate::io::state_file::{self, StateFileKind, StateReader};
use crate::srt::GoldenTensor;
use crate::tensor::{Device, Tensor};

const KIND: StateFileKind =
    StateFileKind { magic: *b"SELVEVOL", version: 1, oldest: 1, name: ".evolver file" };

impl Evolver {
    /// Saves the options, the best state, n² and the history. The file appears whole under its name or not at all. The
    /// fitness is not saved. Waits for the device.
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`](crate::Error::FileNotWritten); those of the device.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use selvedge::srt::{Evolver, EvolverOptions, GoldenTensor};
    /// # use selvedge::tensor::Device;
    /// let start = GoldenTensor::from_slice(&[(1, 0).into(), (-6, 4).into()], &[2], &Device::best())?;
    /// let mut evolver = Evolver::new(&start, None, EvolverOptions::default())?;
    /// evolver.step()?;
    /// evolver.save("run.evolver")?;
    /// let mut again = Evolver::restore("run.evolver", &Device::cpu())?;
    /// assert_eq!(again.step()?, evolver.step()?);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let (a, b) = (self.best.a().to_vec::<i64>()?, self.best.b().to_vec::<i64>()?);
        let n2 = self.n2.to_vec::<f64>()?;
        let options = &self.options;
        state_file::save(path.as_ref(), &KIND, |output| {
            output.array(&[options.seed, options.population as u64, options.survivors as u64])?;
            output.array(&[options.bound])?;
            output.array(&[options.max_generations])?;
            output.array(&[options.lambda, options.mutation_scale, options.sigma, options.threshold])?;
            output.array(&[n2.len() as u64, self.history.len() as u64])?;
            output.array(&a)?;
            output.array(&b)?;
            output.array(&n2)?;
            output.array(&self.history)
        })
    }

    /// Continues a saved evolution on a device. A fitness must be set again.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) for a file that cannot be read, is damaged, of a newer version, or without a history of
    /// syntonies that never fall; [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a state or options that
    /// [`Evolver::new`] refuses; those of the device. The file stays as it is.
    pub fn restore(path: impl AsRef<Path>, device: &Device) -> Result<Evolver> {
        let (mut input, _) = StateReader::open(path.as_ref(), &KIND)?;
        let [seed, population, survivors, bound, max_generations] = input.numbers("options")?;
        let [lambda, mutation_scale, sigma, threshold] = input.numbers("options")?.map(f64::from_bits);
        let [n, entries] = input.numbers("lengths")?;
        let count = |input: &StateReader<'_>, name: &str, count: u64| {
            usize::try_from(count)
                .map_err(|_| input.error(format!("{name} = {count}"), "a number that this machine holds"))
        };
        let options = EvolverOptions {
            seed,
            population: count(&input, "population", population)?,
            survivors: count(&input, "survivors", survivors)?,
            lambda,
            mutation_scale,
            bound: bound as i64,
            sigma,
            max_generations,
            threshold,
        };
        let (a, b) = (input.array::<i64>("state", n)?, input.array::<i64>("state", n)?);
        let n2 = input.array::<f64>("n2", n)?;
        let history = input.array::<f64>("history", entries)?;
        let is_syntony = history.iter().all(|s| (0.0..=1.0).contains(s));
        if history.is_empty() || !is_syntony || !history.is_sorted() {
            let found = format!("a history of {entries} numbers that are no best syntonies");
            return Err(input.error(found, "at least one number from 0 to 1, none below the one before"));
        }
        input.finish()?;
        let shape = [n2.len()];
        let state =
            GoldenTensor::new(Tensor::from_vec(a, &shape, device)?, Tensor::from_vec(b, &shape, device)?)?;
        Evolver::with_history(&state, Tensor::from_vec(n2, &shape, device)?, options, history)
    }
}
