//! The pool of CPU threads that all operations share.
//!
//! The pool starts a thread when an operation first needs it and keeps it until `join`. A job is a closure that shares out
//! its work by itself, so any number of threads may run it: the calling thread always does, and idle threads of the pool join it.
//! When the caller's run of the closure returns, no work is left; the caller then withdraws the job and waits only for the
//! threads that joined. A small operation never waits for a thread to wake up. Between jobs that follow each other closely, such as
//! the layers of a step of decoding, threads spin for a short time before they sleep: to wake one costs as much as a small job.
//!
//! An [`Executor`] of the program around the library replaces the pool.
//!
//! Invariants: a closure is not called after [`run_on_threads`] returns; a job never needs a second thread to finish, so
//! jobs inside of jobs do not deadlock.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// The environment variable that sets the number of threads.
const VARIABLE: &str = "SELVEDGE_THREADS";

/// The number that [`set_threads`] has set; 0 for the default.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// Sets the number of CPU threads that an operation may use, the calling one included.
///
/// 0 restores the default: `SELVEDGE_THREADS`, or the number of processors that the process may run on. The setting holds
/// for every operation that starts after the call, on any thread. Results do not depend on it.
///
/// ```
/// selvedge::set_threads(1);
/// assert_eq!(selvedge::thread_count(), 1);
/// selvedge::set_threads(0);
/// ```
pub fn set_threads(count: usize) {
    CHOSEN.store(count, Ordering::Relaxed);
}

/// Returns the number of CPU threads that an operation may use, the calling one included.
///
/// A value of `SELVEDGE_THREADS` that is no positive number counts as unset here; tensors on the CPU and the networks of `burst` return
/// an error for it.
pub fn thread_count() -> usize {
    match CHOSEN.load(Ordering::Relaxed) {
        0 => default().count,
        count => count,
    }
}

/// A function that runs the jobs of CPU operations: it gets a number of jobs, at least 2, and a job, which it calls once with
/// each index below the number, on threads of its choice. It returns when all calls have returned.
pub type Executor = Arc<dyn Fn(usize, &(dyn Fn(usize) + Sync)) + Send + Sync>;

static EXECUTOR: RwLock<Option<Executor>> = RwLock::new(None);

/// Sets the executor that runs the jobs of CPU operations instead of the library's own threads; `None` restores them.
///
/// An operation asks for at most [`thread_count`] jobs, and small ones run on the calling thread without the executor. The jobs
/// share out the work of an operation by themselves: one that begins when the work is done returns at once, so their order and
/// the number of threads change no result. Jobs that the executor leaves out are done by the calling thread. A job may call
/// the executor itself, so the executor must not wait for a free thread. The setting holds for operations that start after
/// the call, on any thread; operations that run meanwhile may still use the executor before.
///
/// ```
/// use std::sync::Arc;
/// use selvedge::{Device, DType, Tensor, set_executor};
/// set_executor(Some(Arc::new(|count, job| {
///     std::thread::scope(|scope| (0..count).for_each(|index| drop(scope.spawn(move || job(index)))));
/// })));
/// let x = Tensor::ones(&[1 << 20], DType::F32, &Device::cpu())?;
/// assert_eq!(x.sum_all()?.item::<f32>()?, (1 << 20) as f32);
/// set_executor(None);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub fn set_executor(executor: Option<Executor>) {
    let previous =
        std::mem::replace(&mut *EXECUTOR.write().unwrap_or_else(PoisonError::into_inner), executor);
    // Its drop may call the library, so it is outside of the lock.
    drop(previous);
}

/// Runs `work` by an executor on so many threads, and what its jobs left on the calling one.
fn run_by_executor(executor: &Executor, threads: usize, work: &(dyn Fn() + Sync)) {
    let panic: Mutex<Option<Box<dyn Any + Send>>> = Mutex::new(None);
    executor(threads, &|_| {
        // A panic must not unwind through the executor, which may be in C.
        if let Err(found) = catch_unwind(AssertUnwindSafe(work)) {
            *panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
    });
    if let Some(found) = panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
        resume_unwind(found);
    }
    work();
}

/// The number of threads without [`set_threads`].
struct DefaultCount {
    count: usize,
    /// The value of the variable, if it is no number of threads.
    invalid: Option<String>,
}

/// Returns the default, which is read once.
fn default() -> &'static DefaultCount {
    static DEFAULT: OnceLock<DefaultCount> = OnceLock::new();
    DEFAULT.get_or_init(|| {
        let value = std::env::var_os(VARIABLE).map(|value| value.to_string_lossy().into_owned());
        let (chosen, invalid) = match from_variable(value.as_deref()) {
            Ok(chosen) => (chosen, None),
            Err(value) => (None, Some(value.to_owned())),
        };
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        DefaultCount { count: chosen.unwrap_or_else(processors), invalid }
    })
}

/// Checks the variable, unless [`set_threads`] has replaced it.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a value that is no positive number.
#[inline]
pub(crate) fn check_variable() -> Result<()> {
    match &default().invalid {
        Some(value) if CHOSEN.load(Ordering::Relaxed) == 0 => Err(invalid(value)),
        _ => Ok(()),
    }
}

#[cold]
fn invalid(value: &str) -> Error {
    Error::invalid(VARIABLE, format!("'{value}'"), "a number of threads, at least 1")
}

/// Work that pays for the start of another thread, in picoseconds.
const WORK_OF_A_THREAD: usize = 40_000_000;

/// Returns the number of threads for work of an estimated time in picoseconds.
pub(crate) fn threads_for(picoseconds: usize) -> usize {
    (picoseconds / WORK_OF_A_THREAD + 1).min(thread_count())
}

/// Parses the variable. An empty one counts as unset; a value that is no positive number is returned as the error.
fn from_variable(value: Option<&str>) -> std::result::Result<Option<usize>, &str> {
    let Some(value) = value.map(str::trim).filter(|value| !value.is_empty()) else { return Ok(None) };
    value.parse().ok().filter(|count| *count > 0).map(Some).ok_or(value)
}

/// A closure in the queue. It lives on its caller's stack until the caller has removed it.
struct Job {
    id: u64,
    work: *const (dyn Fn() + Sync),
    /// Threads that may still join.
    slots: usize,
}

// SAFETY: the closure is `Sync`, and its caller keeps it alive while a thread may call it.
unsafe impl Send for Job {}

/// The threads that run a job besides its caller.
struct Helpers {
    id: u64,
    running: usize,
    panic: Option<Box<dyn Any + Send>>,
}

struct Pool {
    queue: VecDeque<Job>,
    helpers: Vec<Helpers>,
    next_id: u64,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    /// Set while the threads end.
    is_ending: bool,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    queue: VecDeque::new(),
    helpers: Vec::new(),
    next_id: 0,
    threads: Vec::new(),
    idle: 0,
    is_ending: false,
});
/// Signals idle threads that a job is in the queue.
static JOB_ADDED: Condvar = Condvar::new();
/// Signals callers that a thread has left a job.
static HELPER_DONE: Condvar = Condvar::new();
/// The jobs in the queue, as threads see it that spin.
static QUEUED: AtomicUsize = AtomicUsize::new(0);
/// Counts the threads that have left a job.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// The time for which a thread spins before it sleeps, about that of a wake-up.
const SPIN: Duration = Duration::from_micros(50);

/// Spins until a condition holds, for a short time. A pool with more threads than processors would spin in the way of its own work.
fn spin_until(threads: usize, condition: impl Fn() -> bool) {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let count = || std::thread::available_parallelism().map_or(1, usize::from);
    if threads >= *PROCESSORS.get_or_init(count) {
        return;
    }
    let start = Instant::now();
    while !condition() && start.elapsed() < SPIN {
        std::hint::spin_loop();
    }
}

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the pool is this process's. A forked child has none of its parent's threads, and a copy of their lock in any
/// state.
fn owns_pool() -> bool {
    static OWNER: OnceLock<u32> = OnceLock::new();
    let process = std::process::id();
    *OWNER.get_or_init(|| process) == process
}

/// Runs `work` on at most so many threads, of which the calling one is the first, and returns when all have returned.
///
/// `work` must share out its work by itself: fewer threads may run it, down to the calling one alone. A panic of any
/// thread continues on the calling one. (Not generic, so it is compiled once.)
pub(crate) fn run_on_threads(threads: usize, work: &(dyn Fn() + Sync)) {
    if threads <= 1 || !owns_pool() {
        return work();
    }
    let executor = EXECUTOR.read().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(executor) = executor {
        return run_by_executor(&executor, threads, work);
    }
    let Some(id) = add_job(threads - 1, work) else { return work() };
    /// Withdraws the job even if the caller's own run panics.
    struct Withdraw(u64);
    impl Drop for Withdraw {
        fn drop(&mut self) {
            if let Some(panic) = withdraw(self.0)
                && !std::thread::panicking()
            {
                resume_unwind(panic);
            }
        }
    }
    let _withdraw = Withdraw(id);
    work();
}

/// Runs `work` on units of a slice on at most so many threads, with the index of the unit's first element.
pub(crate) fn in_units<T: Send>(
    threads: usize,
    unit: usize,
    slice: &mut [T],
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let threads = threads.min(slice.len().div_ceil(unit));
    let units = Mutex::new(slice.chunks_mut(unit).enumerate());
    run_on_threads(threads, &|| {
        loop {
            let next = units.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, elements)) = next else { break };
            work(number * unit, elements);
        }
    });
}

/// Adds a job to the queue, and starts the threads that it lacks. Returns none if the pool has no thread.
fn add_job(slots: usize, work: &(dyn Fn() + Sync)) -> Option<u64> {
    let mut pool = pool();
    while pool.threads.len() < slots && !pool.is_ending {
        let name = format!("selvedge-cpu-{}", pool.threads.len() + 1);
        // A thread that the system refuses is left out: the others do its share.
        match std::thread::Builder::new().name(name).spawn(serve) {
            Ok(thread) => pool.threads.push(thread),
            Err(_) => break,
        }
    }
    if pool.threads.is_empty() {
        return None;
    }
    let id = pool.next_id;
    pool.next_id += 1;
    // SAFETY: only the lifetime changes. The caller withdraws the job, and waits for every thread that joined, before
    // `work` ends.
    let work = unsafe {
        std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync + 'static)>(work)
    };
    pool.queue.push_back(Job { id, work, slots });
    QUEUED.store(pool.queue.len(), Ordering::Release);
    pool.helpers.push(Helpers { id, running: 0, panic: None });
    let woken = pool.idle.min(slots);
    drop(pool);
    for _ in 0..woken {
        JOB_ADDED.notify_one();
    }
    Some(id)
}

/// Removes a job, waits for the threads that joined it, and returns the panic of one of them.
fn withdraw(id: u64) -> Option<Box<dyn Any + Send>> {
    let mut pool = pool();
    pool.queue.retain(|job| job.id != id);
    QUEUED.store(pool.queue.len(), Ordering::Release);
    let mut has_spun = false;
    loop {
        let at = pool.helpers.iter().position(|helpers| helpers.id == id)?;
        if pool.helpers[at].running == 0 {
            return pool.helpers.swap_remove(at).panic;
        }
        if has_spun {
            pool = HELPER_DONE.wait(pool).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let (threads, left) = (pool.threads.len(), LEFT.load(Ordering::Acquire));
        drop(pool);
        spin_until(threads, || LEFT.load(Ordering::Acquire) != left);
        pool = self::pool();
        has_spun = true;
    }
}

/// Ends the threads of the pool and waits for them. The next operation that needs one starts it anew.
pub(crate) fn join() {
    if !owns_pool() {
        return;
    }
    let mut pool = self::pool();
    pool.is_ending = true;
    let threads = std::mem::take(&mut pool.threads);
    drop(pool);
    JOB_ADDED.notify_all();
    for thread in threads {
        // A thread of the pool catches the panics of its jobs.
        let _ = thread.join();
    }
    self::pool().is_ending = false;
}

/// Joins jobs until the pool ends its threads.
fn serve() {
    let mut pool = pool();
    let mut has_spun = false;
    loop {
        let Some(job) = pool.queue.front_mut() else {
            if pool.is_ending {
                return;
            }
            if has_spun {
                pool.idle += 1;
                pool = JOB_ADDED.wait(pool).unwrap_or_else(PoisonError::into_inner);
                pool.idle -= 1;
            } else {
                let threads = pool.threads.len();
                drop(pool);
                spin_until(threads, || QUEUED.load(Ordering::Acquire) > 0);
                pool = self::pool();
                has_spun = true;
            }
            continue;
        };
        has_spun = false;
        let (id, work) = (job.id, job.work);
        job.slots -= 1;
        if job.slots == 0 {
            pool.queue.pop_front();
            QUEUED.store(pool.queue.len(), Ordering::Release);
        }
        if let Some(helpers) = pool.helpers.iter_mut().find(|helpers| helpers.id == id) {
            helpers.running += 1;
        }
        drop(pool);
        // SAFETY: the job's caller waits for this thread, which it counts as running, before the closure ends.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (*work)() }));
        pool = self::pool();
        if let Some(helpers) = pool.helpers.iter_mut().find(|helpers| helpers.id == id) {
            helpers.running -= 1;
            LEFT.fetch_add(1, Ordering::Release);
            if let Err(panic) = outcome {
                helpers.panic = Some(panic);
            }
            if helpers.running == 0 {
                HELPER_DONE.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;

    use super::*;

    /// Shares out `count` units among threads and returns how often each ran.
    fn run_units(threads: usize, count: usize) -> Vec<usize> {
        let runs: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
        let next = AtomicUsize::new(0);
        run_on_threads(threads, &|| {
            while let Some(unit) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                unit.fetch_add(1, Ordering::Relaxed);
            }
        });
        runs.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn every_unit_runs_once_from_many_callers_at_a_time() {
        std::thread::scope(|scope| {
            for caller in 0..4 {
                scope.spawn(move || {
                    for round in 0..500 {
                        assert_eq!(run_units(1 + (caller + round) % 5, 37), [1; 37]);
                    }
                });
            }
        });
    }

    #[test]
    fn threads_are_kept_between_jobs() {
        let names = Mutex::new(HashSet::new());
        for _ in 0..50 {
            // Both threads meet at the barrier, so the pool's thread has to come.
            let barrier = Barrier::new(2);
            run_on_threads(2, &|| {
                barrier.wait();
                names.lock().unwrap().insert(std::thread::current().id());
            });
        }
        // The caller, and threads of the pool: other tests may have started a few.
        assert!(names.lock().unwrap().len() <= 1 + pool().threads.len(), "threads were started anew");
    }

    #[test]
    fn a_job_inside_of_a_job_ends() {
        run_on_threads(3, &|| assert_eq!(run_units(3, 10), [1; 10]));
    }

    #[test]
    fn a_panic_of_a_pool_thread_reaches_the_caller_and_the_pool_goes_on() {
        let caller = std::thread::current().id();
        let barrier = Barrier::new(2);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            run_on_threads(2, &|| {
                barrier.wait();
                assert_eq!(std::thread::current().id(), caller, "on the pool's thread");
            });
        }));
        assert!(outcome.is_err());
        assert_eq!(run_units(2, 9), [1; 9]);
    }

    #[test]
    fn an_executor_may_leave_out_repeat_and_panic_in_jobs() {
        let none: Executor = Arc::new(|_, _| ());
        let twice: Executor = Arc::new(|count, job| (0..2 * count).rev().for_each(|at| job(at % count)));
        for executor in [&none, &twice] {
            let count = AtomicUsize::new(0);
            let next = AtomicUsize::new(0);
            run_by_executor(executor, 3, &|| {
                while next.fetch_add(1, Ordering::Relaxed) < 37 {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert_eq!(count.into_inner(), 37);
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| run_by_executor(&twice, 2, &|| panic!("in a job"))));
        assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"in a job"));
    }

    #[test]
    fn the_variable_is_a_positive_number_or_nothing() {
        let table = [
            (None, Ok(None)),
            (Some(""), Ok(None)),
            (Some("3"), Ok(Some(3))),
            (Some(" 8 "), Ok(Some(8))),
            (Some("0"), Err("0")),
            (Some(" -1"), Err("-1")),
            (Some("many"), Err("many")),
        ];
        for (value, wanted) in table {
            assert_eq!(from_variable(value), wanted, "{value:?}");
        }
    }
}
