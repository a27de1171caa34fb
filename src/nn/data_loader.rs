//! [`DataLoader`], batches of the rows of tensors, in order or shuffled.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use super::permutation::Permutation;
use crate::error::{Error, Result};
use crate::tensor::{Device, Tensor};

const OPERATION: &str = "DataLoader";

/// The options of a [`DataLoader`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataLoaderOptions {
    /// The rows of a batch: 1.
    pub batch_size: usize,
    /// Set if each epoch has an order of its own, a function of the seed and the epoch: not set.
    pub is_shuffled: bool,
    /// The seed of the orders: 0.
    pub seed: u64,
    /// Set if the rows after the last whole batch are left out: not set.
    pub drop_last: bool,
    /// The threads that prepare the next batches: 0, for batches that are prepared when they are asked for.
    pub workers: usize,
    /// The batches that each thread prepares ahead: 2.
    pub prefetch: usize,
}

impl Default for DataLoaderOptions {
    fn default() -> Self {
        DataLoaderOptions {
            batch_size: 1,
            is_shuffled: false,
            seed: 0,
            drop_last: false,
            workers: 0,
            prefetch: 2,
        }
    }
}

/// The position of a [`DataLoader`], from which another one over the same rows continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataLoaderState {
    /// The seed of the orders.
    pub seed: u64,
    /// The epoch, from 0.
    pub epoch: u64,
    /// The number of the epoch's next batch.
    pub batch: u64,
    /// The rows of the tensors.
    pub rows: u64,
    /// The rows of a batch.
    pub batch_size: u64,
    /// Set if the orders are shuffled.
    pub is_shuffled: bool,
    /// Set if the rows after the last whole batch are left out.
    pub drop_last: bool,
}

/// Batches of the rows of one or several tensors, which have the same number of rows.
///
/// The order of an epoch is computed from the seed and the epoch, and is the same on every machine. The order is not stored, so tensors
/// of any length take no memory for it, and a [`DataLoaderState`] is enough to continue at any batch. Batches do not depend on the number
/// of threads.
///
/// ```
/// use selvedge::nn::{DataLoader, DataLoaderOptions};
/// use selvedge::{Device, Tensor};
/// let x = Tensor::new([[0i64, 1], [2, 3], [4, 5]], &Device::cpu())?;
/// let y = Tensor::new([0i64, 1, 2], &Device::cpu())?;
/// let options = DataLoaderOptions { batch_size: 2, workers: 1, ..DataLoaderOptions::default() };
/// let mut loader = DataLoader::new(vec![x, y], options)?;
/// let mut labels = Vec::new();
/// while let Some(batch) = loader.next_batch()? {
///     labels.push(batch[1].to_vec::<i64>()?);
/// }
/// assert_eq!(labels, [vec![0, 1], vec![2]]);
/// assert_eq!(loader.state().epoch, 1);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug)]
pub struct DataLoader {
    source: Arc<Source>,
    options: DataLoaderOptions,
    epoch: u64,
    batch: u64,
    workers: Option<Workers>,
}

/// The rows, and their division into batches.
#[derive(Debug)]
struct Source {
    tensors: Vec<Tensor>,
    rows: usize,
    batch_size: usize,
    is_shuffled: bool,
}

/// A batch by its seed, epoch and number.
#[derive(Debug, Clone, Copy)]
struct BatchIndex {
    seed: u64,
    epoch: u64,
    batch: u64,
}

impl Source {
    fn batch(&self, index: BatchIndex) -> Result<Vec<Tensor>> {
        let first = (index.batch as usize).saturating_mul(self.batch_size).min(self.rows);
        let end = first.saturating_add(self.batch_size).min(self.rows);
        if !self.is_shuffled {
            let view = |tensor: &Tensor| tensor.slice(0, first as isize..end as isize);
            return self.tensors.iter().map(view).collect();
        }
        let order = Permutation::new(self.rows as u64, index.seed, index.epoch);
        let rows: Vec<i64> = (first..end).map(|at| order.at(at as u64) as i64).collect();
        let rows = Tensor::from_vec(rows, &[end - first], &Device::cpu())?;
        let select = |tensor: &Tensor| tensor.index_select(0, &rows.to(&tensor.device())?);
        self.tensors.iter().map(select).collect()
    }
}

/// A batch to prepare, and the channel for it.
type Job = (BatchIndex, SyncSender<Result<Vec<Tensor>>>);

/// Threads that prepare batches in turns.
#[derive(Debug)]
struct Workers {
    jobs: Vec<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    is_ended: Arc<AtomicBool>,
    pending: VecDeque<Receiver<Result<Vec<Tensor>>>>,
    /// The number of the epoch's first batch that no thread has.
    next: u64,
}

impl Workers {
    fn start(source: &Arc<Source>, count: usize, next: u64) -> Result<Workers> {
        let is_ended = Arc::new(AtomicBool::new(false));
        let (jobs, threads, pending) = (Vec::new(), Vec::new(), VecDeque::new());
        let mut workers = Workers { jobs, threads, is_ended, pending, next };
        for at in 0..count {
            let (sender, receiver) = channel::<Job>();
            let (source, is_ended) = (Arc::clone(source), Arc::clone(&workers.is_ended));
            let work = move || {
                for (index, reply) in receiver {
                    if is_ended.load(Ordering::Relaxed) {
                        return;
                    }
                    // A loader that moved on has dropped the other end.
                    let _ = reply.send(source.batch(index));
                }
            };
            let started = thread::Builder::new().name(format!("selvedge-loader-{at}")).spawn(work);
            let thread = started.map_err(|error| {
                Error::invalid(OPERATION, format!("{count} workers: {error}"), "fewer workers")
            })?;
            workers.jobs.push(sender);
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Gives out batches until so many are pending, and returns the first of them.
    fn next(&mut self, index: BatchIndex, batches: u64, ahead: usize) -> Result<Vec<Tensor>> {
        let ended = || Error::invalid(OPERATION, "a worker thread that ended", "a loader made anew");
        while self.next < batches && self.pending.len() < ahead {
            let (reply, receiver) = sync_channel(1);
            let worker = self.jobs.get(self.next as usize % self.jobs.len().max(1)).ok_or_else(ended)?;
            worker.send((BatchIndex { batch: self.next, ..index }, reply)).map_err(|_| ended())?;
            self.pending.push_back(receiver);
            self.next += 1;
        }
        self.pending.pop_front().and_then(|receiver| receiver.recv().ok()).ok_or_else(ended)?
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Relaxed);
        self.jobs.clear();
        for thread in self.threads.drain(..) {
            // A panic of a thread was reported by its pending batch.
            let _ = thread.join();
        }
    }
}

impl DataLoader {
    /// Creates a loader of the rows of tensors, which begins with epoch 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for no tensors, a scalar, different numbers of rows, a batch or a prefetch of 0, and workers for tensors
    /// on a device.
    pub fn new(tensors: Vec<Tensor>, options: DataLoaderOptions) -> Result<DataLoader> {
        let refused = |found: String, wanted: &str| Err(Error::invalid(OPERATION, found, wanted));
        let Some(rows) = tensors.first().map(|tensor| tensor.shape().first().copied().unwrap_or(0)) else {
            return refused("no tensors".to_owned(), "at least one tensor");
        };
        for (at, tensor) in tensors.iter().enumerate() {
            match tensor.shape().first() {
                None => return refused(format!("tensor {at} without dimensions"), "tensors with rows"),
                Some(&found) if found != rows => {
                    let found = format!("tensor {at} of {found} rows beside tensor 0 of {rows} rows");
                    return refused(found, "tensors of the same number of rows");
                }
                Some(_) => {}
            }
            if options.workers > 0 && tensor.device() != Device::cpu() {
                let found = format!("{} workers for tensor {at} on {}", options.workers, tensor.device());
                return refused(
                    found,
                    "no workers, as the device selects rows itself, or tensors on the CPU",
                );
            }
        }
        if options.batch_size == 0 || options.prefetch == 0 {
            let found =
                format!("a batch of {} rows and a prefetch of {}", options.batch_size, options.prefetch);
            return refused(found, "at least 1 of each");
        }
        let DataLoaderOptions { batch_size, is_shuffled, .. } = options;
        let source = Arc::new(Source { tensors, rows, batch_size, is_shuffled });
        Ok(DataLoader { source, options, epoch: 0, batch: 0, workers: None })
    }

    /// Returns the next batch of the epoch, a tensor for each of the loader's, or `None` at its end. The batch after that is the first
    /// of the next epoch.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if no thread can be started; errors of memory.
    pub fn next_batch(&mut self) -> Result<Option<Vec<Tensor>>> {
        let batches = self.batches();
        if self.batch >= batches {
            self.set_epoch(self.epoch.wrapping_add(1));
            return Ok(None);
        }
        let index = BatchIndex { seed: self.options.seed, epoch: self.epoch, batch: self.batch };
        let batch = if self.options.workers == 0 {
            self.source.batch(index)?
        } else {
            let workers = match &mut self.workers {
                Some(workers) => workers,
                none => none.insert(Workers::start(&self.source, self.options.workers, self.batch)?),
            };
            let ahead = self.options.workers.saturating_mul(self.options.prefetch);
            match workers.next(index, batches, ahead) {
                Ok(batch) => batch,
                Err(error) => {
                    // The threads are ahead of the position, so the next call starts anew.
                    self.workers = None;
                    return Err(error);
                }
            }
        };
        self.batch += 1;
        Ok(Some(batch))
    }

    /// Returns the batches of an epoch.
    pub fn batches(&self) -> u64 {
        let (rows, batch) = (self.source.rows, self.options.batch_size);
        (if self.options.drop_last { rows / batch } else { rows.div_ceil(batch) }) as u64
    }

    /// Returns the options.
    pub fn options(&self) -> &DataLoaderOptions {
        &self.options
    }

    /// Moves to the first batch of an epoch.
    pub fn set_epoch(&mut self, epoch: u64) {
        (self.epoch, self.batch) = (epoch, 0);
        // Batches that the threads prepared for another position are dropped.
        if let Some(workers) = &mut self.workers {
            workers.pending.clear();
            workers.next = 0;
        }
    }

    /// Returns the position.
    pub fn state(&self) -> DataLoaderState {
        let DataLoaderOptions { batch_size, is_shuffled, seed, drop_last, .. } = self.options;
        let (rows, batch_size) = (self.source.rows as u64, batch_size as u64);
        DataLoaderState {
            seed,
            epoch: self.epoch,
            batch: self.batch,
            rows,
            batch_size,
            is_shuffled,
            drop_last,
        }
    }

    /// Continues at a position, with its seed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a state of another number of rows, another batch size or other options of the order, and for a
    /// batch behind the end of the epoch. The position stays then.
    pub fn set_state(&mut self, state: &DataLoaderState) -> Result<()> {
        let DataLoaderState { seed, epoch, batch, .. } = *state;
        let wanted = DataLoaderState { seed, epoch, batch, ..self.state() };
        if *state != wanted {
            let text = |state: &DataLoaderState| {
                let DataLoaderState { rows, batch_size, is_shuffled, drop_last, .. } = state;
                format!("{rows} rows, a batch of {batch_size}, shuffled {is_shuffled}, drop_last {drop_last}")
            };
            return Err(Error::invalid(OPERATION, format!("a state of {}", text(state)), text(&wanted)));
        }
        if batch > self.batches() {
            let wanted = format!("a batch up to {}", self.batches());
            return Err(Error::invalid(OPERATION, format!("a state at batch {batch}"), wanted));
        }
        self.options.seed = seed;
        self.set_epoch(epoch);
        self.batch = batch;
        if let Some(workers) = &mut self.workers {
            workers.next = batch;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loader(rows: usize, options: DataLoaderOptions) -> Result<DataLoader> {
        let ids = Tensor::from_vec((0..rows as i64).collect(), &[rows], &Device::cpu())?;
        DataLoader::new(vec![ids.clone(), ids.mul(10)?], options)
    }

    fn epoch(loader: &mut DataLoader) -> Result<Vec<Vec<i64>>> {
        let mut batches = Vec::new();
        while let Some(batch) = loader.next_batch()? {
            let [ids, tens] = [0, 1].map(|at| batch[at].to_vec::<i64>());
            let ids = ids?;
            assert_eq!(tens?, ids.iter().map(|id| id * 10).collect::<Vec<_>>());
            batches.push(ids);
        }
        Ok(batches)
    }

    #[test]
    fn every_row_comes_once_an_epoch_in_an_order_of_the_seed() -> Result<()> {
        let options = DataLoaderOptions { batch_size: 4, is_shuffled: true, seed: 3, ..Default::default() };
        let mut first = loader(10, options)?;
        let [one, two] = [epoch(&mut first)?, epoch(&mut first)?];
        assert_ne!(one, two);
        // The order of this seed, on every machine.
        assert_eq!(one, [vec![5, 6, 8, 0], vec![3, 9, 2, 1], vec![4, 7]]);
        for order in [&one, &two] {
            let mut ids = order.concat();
            ids.sort_unstable();
            assert!(ids.into_iter().eq(0..10));
            assert_eq!(order.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
        }
        for workers in 1..4 {
            let mut other = loader(10, DataLoaderOptions { workers, ..options })?;
            assert_eq!([epoch(&mut other)?, epoch(&mut other)?], [one.clone(), two.clone()], "{workers}");
        }
        let mut dropped = loader(10, DataLoaderOptions { drop_last: true, ..options })?;
        assert_eq!(epoch(&mut dropped)?, one[..2]);
        Ok(())
    }

    #[test]
    fn a_state_continues_within_an_epoch() -> Result<()> {
        let options =
            DataLoaderOptions { batch_size: 3, is_shuffled: true, workers: 2, ..Default::default() };
        let mut whole = loader(20, options)?;
        let _ = epoch(&mut whole)?;
        let second = epoch(&mut whole)?;
        for position in 0..=7 {
            let mut part = loader(20, DataLoaderOptions { seed: 9, ..options })?;
            let _ = part.next_batch()?;
            part.set_state(&DataLoaderState { epoch: 1, batch: position, ..loader(20, options)?.state() })?;
            assert_eq!(epoch(&mut part)?, second[position as usize..], "{position}");
            assert_eq!((part.state().epoch, part.state().batch), (2, 0));
        }
        let mut part = loader(20, options)?;
        assert!(part.set_state(&DataLoaderState { batch: 8, ..part.state() }).is_err());
        assert!(part.set_state(&DataLoaderState { rows: 21, ..part.state() }).is_err());
        Ok(())
    }

    #[test]
    fn errors_name_both_sides() -> Result<()> {
        let cpu = Device::cpu();
        let [two, three] = [2usize, 3].map(|rows| Tensor::from_vec(vec![0i64; rows], &[rows], &cpu));
        let (two, three) = (two?, three?);
        let text = |found: Result<DataLoader>| found.map(drop).map_err(|error| error.to_string());
        let found = text(DataLoader::new(vec![two.clone(), three], DataLoaderOptions::default()));
        let error = found.expect_err("tensors of different rows");
        assert!(error.contains("tensor 1 of 3 rows beside tensor 0 of 2 rows"), "{error}");
        assert!(DataLoader::new(Vec::new(), DataLoaderOptions::default()).is_err());
        let none = DataLoaderOptions { batch_size: 0, ..DataLoaderOptions::default() };
        assert!(DataLoader::new(vec![two], none).is_err());
        Ok(())
    }
}
