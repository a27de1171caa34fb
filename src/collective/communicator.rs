//! [`Communicator`]: a rank's end of a world, and its collective operations.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::arguments::{Ranks, check_length};
use super::call::{Call, Operation};
use super::mesh::{CHUNK, Mesh, World};
use super::peers::{Failure, Peers};
use super::proof::{Secret, random};
use super::reduction::{self, Accumulator, ReduceOp};
use super::rendezvous::{self, Found};
use super::world::{MAX_TIMEOUT, MAX_WORLD, WorldOptions};
use crate::error::{Error, Result};
use crate::types::{DType, Element};

/// Elements up to these bytes are reduced by every rank, with one exchange; of more, each rank reduces a part.
const SMALL_REDUCTION: usize = 16 << 10;
/// The time-out of [`Communicator::in_process`].
const IN_PROCESS_TIMEOUT: Duration = Duration::from_secs(60);

/// A rank's end of a world.
///
/// All ranks call the same operations in the same order; a call blocks until it has ended on this rank. Threads may share a
/// communicator, and their calls then follow one another, but nothing orders them as on the other ranks.
///
/// Drop it when this rank has made all of its calls. A rank that ends without it, or calls [`abort`](Self::abort), fails the others.
pub struct Communicator {
    pub(super) mesh: Mutex<Mesh>,
    /// The connections of the mesh, for what does not wait for a call in progress.
    pub(super) peers: Arc<Peers>,
    rank: usize,
    world_size: usize,
    timeout: Duration,
    pub(super) secret: Secret,
    /// The address at which this rank listens for new worlds.
    pub(super) address: SocketAddr,
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Communicator { rank, world_size, timeout, address, .. } = self;
        let mut shown = formatter.debug_struct("Communicator");
        shown.field("rank", rank).field("world_size", world_size).field("timeout", timeout);
        shown.field("address", address).finish_non_exhaustive()
    }
}

/// The ranges of a number of elements that ranks reduce, as equal as they can be.
fn parts(count: usize, ranks: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let (each, more) = (count / ranks, count % ranks);
    let start = move |rank: usize| rank * each + rank.min(more);
    (0..ranks).map(move |rank| start(rank)..start(rank + 1))
}

impl Communicator {
    /// Finds the other ranks, and connects to them.
    ///
    /// ```
    /// use selvedge::collective::{Communicator, WorldOptions};
    ///
    /// // The rank that a launcher gave to this process, or a world of one.
    /// let options = match WorldOptions::from_environment()? {
    ///     Some(options) => options,
    ///     None => WorldOptions::new(0, 1)?.with_address("127.0.0.1", 0),
    /// };
    /// let communicator = Communicator::connect(&options)?;
    /// assert!(communicator.rank() < communicator.world_size());
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Collective`]: a rank did not come within the time-out, two processes have the same number, or the ranks differ in their
    /// world, version or secret. [`Error::InvalidArgument`]: the address of rank 0 is not one, its port is in use, or it is not this
    /// machine's.
    pub fn connect(options: &WorldOptions) -> Result<Communicator> {
        let deadline = Instant::now() + options.timeout;
        let secret = Secret::new(&options.secret);
        let (found, listener) = rendezvous::find(options, &secret, deadline)?;
        let communicator =
            Self::of_world((found, &listener), options.rank, secret, options.timeout, deadline)?;
        log::info!(
            "collective: rank {} of {} is connected to the others through TCP at {}",
            options.rank,
            options.world_size,
            communicator.address
        );
        Ok(communicator)
    }

    /// Creates the ranks of a world within this process, one for each thread that is to take part. Their time-out is one minute.
    ///
    /// # Errors
    ///
    /// There are no ranks or more than 65,536; the system has no ports or threads left.
    pub fn in_process(world_size: usize) -> Result<Vec<Communicator>> {
        if world_size == 0 || world_size > MAX_WORLD {
            let wanted = format!("a world of 1 to {MAX_WORLD} ranks");
            return Err(Error::invalid("Communicator::in_process", format!("{world_size} ranks"), wanted));
        }
        let failed = |error: std::io::Error| {
            Error::invalid(
                "Communicator::in_process",
                error,
                "a system with ports and threads for every pair of ranks",
            )
        };
        let listeners =
            (0..world_size).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<std::io::Result<Vec<_>>>();
        let listeners = listeners.map_err(failed)?;
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<std::io::Result<Vec<_>>>();
        let addresses = addresses.map_err(failed)?;
        let id = random().map_err(failed)?;
        let deadline = Instant::now() + IN_PROCESS_TIMEOUT;
        std::thread::scope(|scope| {
            let connect = |(rank, listener): (usize, TcpListener)| {
                let found = Found { id, addresses: addresses.clone() };
                let work = move || {
                    Self::of_world((found, &listener), rank, Secret::new(""), IN_PROCESS_TIMEOUT, deadline)
                };
                std::thread::Builder::new().spawn_scoped(scope, work).map_err(failed)
            };
            let threads = listeners.into_iter().enumerate().map(connect).collect::<Result<Vec<_>>>()?;
            let joined = |thread: std::thread::ScopedJoinHandle<'_, Result<Communicator>>| {
                thread.join().unwrap_or_else(|_| Err(failed(std::io::Error::other("a thread has ended"))))
            };
            threads.into_iter().map(joined).collect()
        })
    }

    pub(super) fn of_world(
        (found, listener): (Found, &TcpListener),
        rank: usize,
        secret: Secret,
        timeout: Duration,
        deadline: Instant,
    ) -> Result<Communicator> {
        let Found { id, addresses } = found;
        let world_size = addresses.len();
        let world = World { id, secret: &secret, addresses: &addresses, rank, deadline };
        let connected = world.connect(listener);
        let mesh = connected.map_err(|failure| failure.into_error(rank, world_size, "connect"))?;
        Ok(Communicator {
            peers: Arc::clone(&mesh.peers),
            mesh: Mutex::new(mesh),
            rank,
            world_size,
            timeout,
            secret,
            address: addresses[rank],
        })
    }

    /// Returns the number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn world_size(&self) -> usize {
        self.world_size
    }

    /// Returns the rank and the number of ranks, for checks of arguments.
    pub(super) fn ranks(&self) -> Ranks {
        Ranks { rank: self.rank, world_size: self.world_size }
    }

    /// Returns the time within which the others must take part in each call.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sets the time within which the others must take part in each call.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout.min(MAX_TIMEOUT);
    }

    /// Ends the communicator: this rank's further calls fail, and so do those of the others, in progress or to come.
    pub fn abort(&self) {
        let failure = Failure::of(self.rank, "it has aborted the communicator");
        self.peers.fail(failure);
    }

    /// Replaces the values of every rank by their reduction.
    ///
    /// # Errors
    ///
    /// [`Error::Collective`]: a rank has ended, does not take part within the time-out, or makes another call. The values are then of
    /// no use. [`Error::DTypeMismatch`]: the dtype has no such operation.
    pub fn all_reduce<T: Element>(&self, values: &mut [T], op: ReduceOp) -> Result<()> {
        let call = self.reducing::<T>(Operation::AllReduce, values.len(), op)?;
        let bytes = bytemuck::cast_slice_mut(values);
        self.run(call, |mesh, deadline| {
            let ranges: Vec<_> = match bytes.len() <= SMALL_REDUCTION {
                true => (0..self.world_size).map(|_| 0..bytes.len()).collect(),
                false => byte_parts::<T>(bytes.len(), self.world_size),
            };
            let is_small = ranges[self.rank].len() == bytes.len();
            let outgoing: Vec<&[u8]> = ranges.iter().map(|range| &bytes[range.clone()]).collect();
            let own = ranges[self.rank].clone();
            let sum = self.reduce_frames::<T>(mesh, &call, op, &outgoing, &bytes[own.clone()], deadline)?;
            sum.finish(&mut bytes[own.clone()]);
            if is_small {
                return Ok(());
            }
            let reduced = bytes[own].to_vec();
            let outgoing = vec![&reduced[..]; self.world_size];
            let wanted: Vec<usize> = ranges.iter().map(std::ops::Range::len).collect();
            mesh.exchange((&call, 1), &outgoing, &wanted, deadline, &mut |from, incoming| {
                if from == self.rank { Ok(()) } else { incoming.read(from, &mut bytes[ranges[from].clone()]) }
            })?;
            Ok(())
        })
    }

    /// Writes the reduction of all ranks' values to `reduced` of one rank, which is as long. The others pass `None`.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The root is no rank, or it alone does not say where the result goes.
    pub fn reduce<T: Element>(
        &self,
        values: &[T],
        reduced: Option<&mut [T]>,
        root: usize,
        op: ReduceOp,
    ) -> Result<()> {
        let mut call = self.reducing::<T>(Operation::Reduce, values.len(), op)?;
        self.ranks().check_root_memory("reduce", root, reduced.is_some())?;
        call.root = Some(root);
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let Some(reduced) = reduced else {
            let outgoing = self.to_each(|to| if to == root { bytes } else { &[] });
            return self.exchange_parts(call, &outgoing, &mut [], &vec![0; self.world_size]);
        };
        check_length("reduce", values.len(), reduced.len())?;
        self.run(call, |mesh, deadline| {
            let nothing = vec![&[][..]; self.world_size];
            let sum = self.reduce_frames::<T>(mesh, &call, op, &nothing, bytes, deadline)?;
            sum.finish(bytemuck::cast_slice_mut(reduced));
            Ok(())
        })
    }

    /// Replaces the values of every rank by those of one.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The root is no rank.
    pub fn broadcast<T: Element>(&self, values: &mut [T], root: usize) -> Result<()> {
        self.ranks().check_root("broadcast", root)?;
        let call = Call { root: Some(root), ..Call::new(Operation::Broadcast, T::DTYPE, values.len()) };
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(values);
        if root == self.rank {
            return self.exchange_parts(
                call,
                &vec![&*bytes; self.world_size],
                &mut [],
                &vec![0; self.world_size],
            );
        }
        let counts = self.to_each(|from| if from == root { bytes.len() } else { 0 });
        self.exchange_parts(call, &vec![&[][..]; self.world_size], bytes, &counts)
    }

    /// Writes the values of all ranks to `gathered`, in the order of ranks. It is as long as all of them; ranks have equally many.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The lengths do not fit.
    pub fn all_gather<T: Element>(&self, values: &[T], gathered: &mut [T]) -> Result<()> {
        check_length("all_gather", values.len().saturating_mul(self.world_size), gathered.len())?;
        let call = Call::new(Operation::AllGather, T::DTYPE, values.len());
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let counts = vec![bytes.len(); self.world_size];
        self.exchange_parts(call, &vec![bytes; self.world_size], bytemuck::cast_slice_mut(gathered), &counts)
    }

    /// Reduces the values of all ranks, and writes the part of each rank to its `reduced`: the first to that of rank 0. `values` has
    /// as many elements as the parts of all ranks.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The lengths do not fit.
    pub fn reduce_scatter<T: Element>(&self, values: &[T], reduced: &mut [T], op: ReduceOp) -> Result<()> {
        check_length("reduce_scatter", reduced.len().saturating_mul(self.world_size), values.len())?;
        let call = self.reducing::<T>(Operation::ReduceScatter, reduced.len(), op)?;
        let count = reduced.len();
        self.run(call, |mesh, deadline| {
            let part = |rank: usize| bytemuck::cast_slice(&values[rank * count..][..count]);
            let outgoing: Vec<&[u8]> = self.to_each(part);
            let sum = self.reduce_frames::<T>(mesh, &call, op, &outgoing, part(self.rank), deadline)?;
            sum.finish(bytemuck::cast_slice_mut(reduced));
            Ok(())
        })
    }

    /// Sends part r of the values to rank r, and writes the parts from all ranks to `received`, in the order of ranks. All parts are
    /// equally long.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The lengths do not fit.
    pub fn all_to_all<T: Element>(&self, values: &[T], received: &mut [T]) -> Result<()> {
        check_length("all_to_all", values.len(), received.len())?;
        let count = self.ranks().check_parts("all_to_all", values.len())?;
        let call = Call::new(Operation::AllToAll, T::DTYPE, values.len());
        let outgoing = self.to_each(|to| bytemuck::cast_slice(&values[to * count..][..count]));
        let counts = vec![count * size_of::<T>(); self.world_size];
        self.exchange_parts(call, &outgoing, bytemuck::cast_slice_mut(received), &counts)
    }

    /// Sends the next `counts[r]` of the values to rank r, and writes `received_counts[r]` elements from rank r to `received`, in the
    /// order of ranks.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce), also if two ranks differ in the count of what one sends to the other. The lengths do not
    /// fit.
    pub fn all_to_all_uneven<T: Element>(
        &self,
        values: &[T],
        counts: &[usize],
        received: &mut [T],
        received_counts: &[usize],
    ) -> Result<()> {
        let sides = [(counts, values.len()), (received_counts, received.len())];
        self.ranks().check_counts("all_to_all_uneven", sides)?;
        let call = Call::new(Operation::AllToAllUneven, T::DTYPE, 0);
        let mut rest = values;
        let outgoing = self.to_each(|to| {
            let (part, behind) = rest.split_at(counts[to]);
            rest = behind;
            bytemuck::cast_slice(part)
        });
        let bytes: Vec<usize> = received_counts.iter().map(|count| count * size_of::<T>()).collect();
        self.exchange_parts(call, &outgoing, bytemuck::cast_slice_mut(received), &bytes)
    }

    /// Writes the values of all ranks to `gathered` of one rank, in the order of ranks. The others pass `None`.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The lengths do not fit; the root is no rank, or it alone does not say where the values go.
    pub fn gather<T: Element>(&self, values: &[T], gathered: Option<&mut [T]>, root: usize) -> Result<()> {
        self.ranks().check_root_memory("gather", root, gathered.is_some())?;
        let call = Call { root: Some(root), ..Call::new(Operation::Gather, T::DTYPE, values.len()) };
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let outgoing = self.to_each(|to| if to == root { bytes } else { &[] });
        match gathered {
            Some(gathered) => {
                check_length("gather", values.len().saturating_mul(self.world_size), gathered.len())?;
                let counts = vec![bytes.len(); self.world_size];
                self.exchange_parts(call, &outgoing, bytemuck::cast_slice_mut(gathered), &counts)
            }
            None => self.exchange_parts(call, &outgoing, &mut [], &vec![0; self.world_size]),
        }
    }

    /// Writes part r of the values of one rank to `part` of rank r. The other ranks pass `None` as values.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The lengths do not fit; the root is no rank, or it alone has no values.
    pub fn scatter<T: Element>(&self, values: Option<&[T]>, part: &mut [T], root: usize) -> Result<()> {
        self.ranks().check_root_memory("scatter", root, values.is_some())?;
        let call = Call { root: Some(root), ..Call::new(Operation::Scatter, T::DTYPE, part.len()) };
        let count = part.len();
        let own_bytes = size_of_val(part);
        let outgoing = match values {
            Some(values) => {
                check_length("scatter", count.saturating_mul(self.world_size), values.len())?;
                self.to_each(|to| bytemuck::cast_slice(&values[to * count..][..count]))
            }
            None => vec![&[][..]; self.world_size],
        };
        let counts = self.to_each(|from| if from == root { own_bytes } else { 0 });
        self.exchange_parts(call, &outgoing, bytemuck::cast_slice_mut(part), &counts)
    }

    /// Waits until every rank has come here.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce).
    pub fn barrier(&self) -> Result<()> {
        self.compare(Call::new(Operation::Barrier, DType::U8, 0))
    }

    /// Waits until every rank has made the same call, without values.
    pub(super) fn compare(&self, call: Call) -> Result<()> {
        self.exchange_parts(call, &vec![&[][..]; self.world_size], &mut [], &vec![0; self.world_size])
    }

    /// Runs an exchange that writes the frames of the ranks one behind the other.
    pub(super) fn exchange_parts(
        &self,
        call: Call,
        outgoing: &[&[u8]],
        mut received: &mut [u8],
        counts: &[usize],
    ) -> Result<()> {
        self.run(call, |mesh, deadline| {
            mesh.exchange((&call, 0), outgoing, counts, deadline, &mut |from, incoming| {
                let (part, behind) = std::mem::take(&mut received).split_at_mut(counts[from]);
                received = behind;
                match from == self.rank {
                    true => {
                        part.copy_from_slice(&outgoing[from][..part.len()]);
                        Ok(())
                    }
                    false => incoming.read(from, part),
                }
            })
        })
    }

    /// Sends frames, and reduces those of all ranks, each as long as this rank's own.
    fn reduce_frames<T: Element>(
        &self,
        mesh: &Mesh,
        call: &Call,
        op: ReduceOp,
        outgoing: &[&[u8]],
        own: &[u8],
        deadline: Instant,
    ) -> std::result::Result<Accumulator, Failure> {
        let memory = |error: Error| Failure::of(self.rank, error.to_string());
        let mut sum = Accumulator::new(call.operation.name(), T::DTYPE, op, own.len()).map_err(memory)?;
        let mut chunk = vec![0; own.len().min(CHUNK)];
        let wanted = vec![own.len(); self.world_size];
        mesh.exchange((call, 0), outgoing, &wanted, deadline, &mut |from, incoming| {
            if from == self.rank {
                sum.add(0, own);
            } else {
                for start in (0..own.len()).step_by(CHUNK) {
                    let chunk = &mut chunk[..CHUNK.min(own.len() - start)];
                    incoming.read(from, chunk)?;
                    sum.add(start, chunk);
                }
            }
            sum.end_rank();
            Ok(())
        })?;
        Ok(sum)
    }

    /// Runs a call that all ranks make.
    fn run<R>(
        &self,
        call: Call,
        work: impl FnOnce(&mut Mesh, Instant) -> std::result::Result<R, Failure>,
    ) -> Result<R> {
        self.attempt(call, |mesh, deadline| {
            mesh.begin();
            work(mesh, deadline)
        })
    }

    /// Runs a call, and gives its failure a name.
    pub(super) fn attempt<R>(
        &self,
        call: Call,
        work: impl FnOnce(&mut Mesh, Instant) -> std::result::Result<R, Failure>,
    ) -> Result<R> {
        let named = |failure: Failure| failure.into_error(self.rank, self.world_size, call.describe());
        let mut mesh = self.mesh();
        if let Some(failure) = self.peers.failure() {
            return Err(named(failure));
        }
        work(&mut mesh, Instant::now() + self.timeout).map_err(|failure| named(self.peers.fail(failure)))
    }

    pub(super) fn mesh(&self) -> MutexGuard<'_, Mesh> {
        self.mesh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reducing<T: Element>(&self, operation: Operation, count: usize, op: ReduceOp) -> Result<Call> {
        reduction::check(operation.name(), T::DTYPE, op)?;
        Ok(Call { op: Some(op), ..Call::new(operation, T::DTYPE, count) })
    }

    fn to_each<R>(&self, of_rank: impl FnMut(usize) -> R) -> Vec<R> {
        (0..self.world_size).map(of_rank).collect()
    }
}

/// Returns the parts of elements as ranges of bytes.
fn byte_parts<T>(bytes: usize, ranks: usize) -> Vec<std::ops::Range<usize>> {
    let size = size_of::<T>();
    parts(bytes / size, ranks).map(|part| part.start * size..part.end * size).collect()
}
