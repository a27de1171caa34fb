//! The resonant evolution strategy.
//!
//! An evolver is used by one call at a time; others wait meanwhile.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::arguments::{out, out_structure, structure, text, write_some};
use super::super::buffer::User;
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, object, sv_srt_evolver, sv_tensor};
use super::super::nn::gpt::goes_on;
use super::super::tensor::{TensorObject, device, enter, give, tensor};
use super::exact::{golden, points};
use super::{give_all, number};
use crate::srt::{Evolver, EvolverOptions, GenerationReport};
use crate::tensor::Tensor;

/// An evolver behind a handle.
#[derive(Clone)]
pub(in super::super) struct EvolverObject(Arc<Mutex<Evolver>>);
object!(EvolverObject, Evolver);

impl EvolverObject {
    fn find(handle: u64) -> Result<EvolverObject> {
        EvolverObject::table().get(handle, "evolver")
    }

    fn lock(&self) -> MutexGuard<'_, Evolver> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(evolver: Evolver) -> Result<u64> {
        EvolverObject::table().insert(EvolverObject(Arc::new(Mutex::new(evolver))))
    }
}

/// The syntonies of the last ten generations differ by less than the threshold.
pub const SV_SRT_EVOLVER_CONVERGED: i32 = 1;
/// The evolver has had its largest number of generations.
pub const SV_SRT_EVOLVER_LIMIT: i32 = 2;
/// The callback ended the run.
pub const SV_SRT_EVOLVER_STOPPED: i32 = 3;

/// The parameters of an evolver. `sv_srt_evolver_defaults` sets all of them.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_srt_evolver_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The candidates of a generation.
    pub population: usize,
    /// The candidates that are evaluated, at most the population.
    pub survivors: usize,
    /// The generations after which a run ends.
    pub max_generations: u64,
    /// The bound of snapping, from 0 to 2^20.
    pub bound: i64,
    /// The factor of syntony in the score.
    pub lambda: f64,
    /// The width of the interval of mutations in each coefficient.
    pub mutation_scale: f64,
    /// The noise scale of the D phase.
    pub sigma: f64,
    /// A run has converged when the syntonies of ten generations differ by less than this.
    pub threshold: f64,
}

impl From<&EvolverOptions> for sv_srt_evolver_options {
    fn from(options: &EvolverOptions) -> sv_srt_evolver_options {
        sv_srt_evolver_options {
            size: size_of::<sv_srt_evolver_options>(),
            seed: options.seed,
            population: options.population,
            survivors: options.survivors,
            max_generations: options.max_generations,
            bound: options.bound,
            lambda: options.lambda,
            mutation_scale: options.mutation_scale,
            sigma: options.sigma,
            threshold: options.threshold,
        }
    }
}

/// The results of a generation.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_srt_generation {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The generations so far.
    pub generation: u64,
    /// The syntony of the best state.
    pub best_syntony: f64,
    /// The winner's position in the population, or -1 if no survivor has a score.
    pub winner: i64,
    /// The winner's syntony; NaN without a winner.
    pub winner_syntony: f64,
    /// 1 if the winner replaced the best state, else 0.
    pub is_accepted: i32,
    /// 1 if the run has converged, else 0.
    pub is_converged: i32,
}

impl From<GenerationReport> for sv_srt_generation {
    fn from(report: GenerationReport) -> sv_srt_generation {
        let (winner, winner_syntony) =
            report.winner.map_or((-1, f64::NAN), |(winner, syntony)| (winner as i64, syntony));
        sv_srt_generation {
            size: size_of::<sv_srt_generation>(),
            generation: report.generation,
            best_syntony: report.best_syntony,
            winner,
            winner_syntony,
            is_accepted: i32::from(report.is_accepted),
            is_converged: i32::from(report.is_converged),
        }
    }
}

/// A function that is called after each generation of a run, on the thread that runs it. The struct is valid during the call. It
/// returns `SV_CONTINUE`, or `SV_STOP` to end the run, and may call functions of the evolver.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_srt_generation_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, generation: *const sv_srt_generation) -> i32>;

/// A function that gives the fitness of survivors. `values` is a tensor of `SV_DTYPE_F64` of shape (survivors, n), which belongs
/// to the library; `*fitness` gets a tensor of shape (survivors) on the same device, whose reference passes to the library. It
/// returns `SV_CONTINUE`, and is called on threads that run generations. It must not call functions of the same evolver.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_srt_fitness_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, values: sv_tensor, fitness: *mut sv_tensor) -> i32>;

/// Returns an evolver with a callback of C as its fitness.
fn with_fitness(evolver: Evolver, fitness: sv_srt_fitness_callback, user: User) -> Evolver {
    let Some(fitness) = fitness else { return evolver };
    evolver.with_fitness(move |values: &Tensor| {
        let failed = |failure: Failure| crate::Error::InvalidArgument {
            operation: "the fitness of an evolver",
            found: failure.message,
            wanted: "a tensor of numbers and SV_CONTINUE".to_owned(),
        };
        let values = enter(values.clone()).map_err(failed)?;
        let mut handle = 0;
        // SAFETY: the caller of the function that took the callback vouches for it and its pointer.
        let status = unsafe { fitness(user.pointer(), values, &mut handle) };
        let table = TensorObject::table();
        // The callback may have released the values, which are not its own.
        let _ = table.release(values, "values");
        let found = tensor(handle, "fitness");
        let _ = table.release(handle, "fitness");
        match goes_on(status).map_err(failed)? {
            true => found.map_err(failed),
            false => Err(crate::Error::InvalidArgument {
                operation: "the fitness of an evolver",
                found: "SV_STOP".to_owned(),
                wanted: "SV_CONTINUE".to_owned(),
            }),
        }
    })
}

/// Writes the default parameters: a population of 64 with 16 survivors, a bound of 100, at most 1000 generations.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_evolver_defaults(options: *mut sv_srt_evolver_options) -> i32 {
    guard::call("sv_srt_evolver_defaults", || {
        let result = out_structure(options, "options")?;
        result.write((&EvolverOptions::default()).into());
        Ok(())
    })
}

/// Creates an evolver of a vector of numbers a + b phi, a pair of `SV_DTYPE_I64` tensors, on their device. `n2` has the squared
/// mode norms as `SV_DTYPE_F64`; with 0 they are 0, 1, 4, 9 and so on.
///
/// `fitness`, if not NULL, is added to the score of survivors. It waits for the device.
///
/// # Safety
///
/// `fitness` may be called with `user` until the evolver is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_evolver_create(
    a: sv_tensor,
    b: sv_tensor,
    n2: sv_tensor,
    options: *const sv_srt_evolver_options,
    fitness: sv_srt_fitness_callback,
    user: *mut c_void,
    evolver: *mut sv_srt_evolver,
) -> i32 {
    guard::call("sv_srt_evolver_create", || {
        let (options, result) = (structure(options, "options")?, out(evolver, "evolver")?);
        let state = golden(a, b, ["a", "b"])?;
        let n2 = if n2 == 0 { None } else { Some(tensor(n2, "n2")?) };
        let options = EvolverOptions {
            seed: options.seed,
            population: options.population,
            survivors: options.survivors,
            lambda: options.lambda,
            mutation_scale: options.mutation_scale,
            bound: options.bound,
            sigma: options.sigma,
            max_generations: options.max_generations,
            threshold: options.threshold,
        };
        let created = Evolver::new(&state, n2.as_ref(), options)?;
        result.write(EvolverObject::enter(with_fitness(created, fitness, User(user)))?);
        Ok(())
    })
}

/// Runs one generation, converged or not, and writes its results. After an error the evolver is as it was.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_evolver_step(
    evolver: sv_srt_evolver,
    generation: *mut sv_srt_generation,
) -> i32 {
    guard::call("sv_srt_evolver_step", || {
        let result = out_structure(generation, "generation")?;
        result.write(EvolverObject::find(evolver)?.lock().step()?.into());
        Ok(())
    })
}

/// Runs generations until convergence, the largest number of them, or `SV_STOP` of `callback`, which is called after each one if
/// it is not NULL. `*end` gets one of `SV_SRT_EVOLVER_...`.
///
/// # Safety
///
/// `end` points to an `int32_t`, and `callback` may be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_evolver_run(
    evolver: sv_srt_evolver,
    callback: sv_srt_generation_callback,
    user: *mut c_void,
    end: *mut i32,
) -> i32 {
    guard::call("sv_srt_evolver_run", || {
        let (result, user) = (out(end, "end")?, User(user));
        let object = EvolverObject::find(evolver)?;
        loop {
            let report: sv_srt_generation = {
                let mut evolver = object.lock();
                if evolver.is_converged() {
                    result.write(SV_SRT_EVOLVER_CONVERGED);
                    return Ok(());
                }
                if evolver.generation() >= evolver.options().max_generations {
                    result.write(SV_SRT_EVOLVER_LIMIT);
                    return Ok(());
                }
                evolver.step()?.into()
            };
            let Some(callback) = callback else { continue };
            // SAFETY: the caller vouches for the function and its pointer; the struct lives during the call.
            if !goes_on(unsafe { callback(user.pointer(), &report) })? {
                result.write(SV_SRT_EVOLVER_STOPPED);
                return Ok(());
            }
        }
    })
}

/// Writes the best state so far, numbers a + b phi.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_evolver_best(
    evolver: sv_srt_evolver,
    a: *mut sv_tensor,
    b: *mut sv_tensor,
) -> i32 {
    give_all("sv_srt_evolver_best", [(a, "a"), (b, "b")], || {
        Ok(points(EvolverObject::find(evolver)?.lock().best()))
    })
}

/// Writes 1 if the run has converged, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_evolver_is_converged(evolver: sv_srt_evolver, result: *mut i32) -> i32 {
    number("sv_srt_evolver_is_converged", result, || {
        Ok(i32::from(EvolverObject::find(evolver)?.lock().is_converged()))
    })
}

/// Writes the parameters of an evolver, which a file of `sv_srt_evolver_save` has too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_evolver_get_options(
    evolver: sv_srt_evolver,
    options: *mut sv_srt_evolver_options,
) -> i32 {
    guard::call("sv_srt_evolver_get_options", || {
        let result = out_structure(options, "options")?;
        result.write(EvolverObject::find(evolver)?.lock().options().into());
        Ok(())
    })
}

/// Writes the squared mode norms of an evolver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_evolver_n2(evolver: sv_srt_evolver, result: *mut sv_tensor) -> i32 {
    give("sv_srt_evolver_n2", result, || Ok(EvolverObject::find(evolver)?.lock().n2().clone()))
}

/// Writes the syntony of the best state at the start and after each generation.
///
/// `count` gets their number; the array gets the first `capacity` of them. A capacity of 0 asks for the number alone.
///
/// # Safety
///
/// `syntonies` points to `capacity` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_evolver_history(
    evolver: sv_srt_evolver,
    syntonies: *mut f64,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_srt_evolver_history", || {
        let count = out(count, "count")?;
        let object = EvolverObject::find(evolver)?;
        let evolver = object.lock();
        write_some(evolver.history(), syntonies, capacity, "syntonies")?;
        count.write(evolver.history().len());
        Ok(())
    })
}

/// Writes the state, the history and the options of an evolver to a file, replacing the file at that path. A fitness is not in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_evolver_save(evolver: sv_srt_evolver, path: *const c_char) -> i32 {
    guard::call("sv_srt_evolver_save", || {
        let path = text(path, "path")?;
        Ok(EvolverObject::find(evolver)?.lock().save(path)?)
    })
}

/// Reads an evolver from a file of `sv_srt_evolver_save`. Its next generations are those of the one that was saved, with the same
/// fitness.
///
/// # Safety
///
/// `fitness` may be called with `user` until the evolver is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_evolver_restore(
    path: *const c_char,
    device: i32,
    fitness: sv_srt_fitness_callback,
    user: *mut c_void,
    evolver: *mut sv_srt_evolver,
) -> i32 {
    guard::call("sv_srt_evolver_restore", || {
        let (path, result) = (text(path, "path")?, out(evolver, "evolver")?);
        let restored = Evolver::restore(path, &self::device(device)?)?;
        result.write(EvolverObject::enter(with_fitness(restored, fitness, User(user)))?);
        Ok(())
    })
}
