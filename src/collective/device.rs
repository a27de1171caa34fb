//! [`DeviceCommunicator`]: collective operations on the memory of devices, by NCCL.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::call::{Call, Operation};
use super::communicator::Communicator;
use super::peers::Failure;
use super::reduction::ReduceOp;
use crate::driver::{Device, Stream};
use crate::error::{Error, Result};
use crate::nccl::{self, Kind, UniqueId};
use crate::types::DType;

/// A rank's end of a world whose ranks have a device each. Its operations are work of a stream, in order with all other work, and may be
/// captured.
///
/// Every rank calls the same operations in the same order. A call returns when the work is queued, and the wait for the stream is that
/// for all ranks: [`synchronize`](Self::synchronize) has a time-out.
///
/// A rank that ends makes the others' work end at once, with wrong elements. The next call that waits for the device, such as
/// [`Stream::synchronize`] or a copy to the host, then returns [`Error::Collective`] with the rank at fault, as do all further calls of the
/// communicator, until it is dropped. A rank that drops its communicator early is named by the next call.
///
/// `SELVEDGE_COLLECTIVE_CHECK=1` compares each call but messages with those of the other ranks on the host before it is queued: ranks that
/// disagree, or do not come within the time-out, are then named, and nothing hangs on the device.
///
/// Drop graphs that were captured with it first: NCCL waits for them.
///
/// NCCL chooses the order of sums; it is the same in every run on the same devices.
///
/// ```no_run
/// use selvedge::collective::{Communicator, DeviceCommunicator, ReduceOp, WorldOptions};
/// use selvedge::driver::Device;
///
/// # fn main() -> selvedge::Result<()> {
/// let options = WorldOptions::from_environment()?.expect("a launcher");
/// let communicator = Communicator::connect(&options)?;
/// let device = Device::new(options.local_rank())?;
/// let ranks = DeviceCommunicator::new(&communicator, &device)?;
/// let stream = device.stream()?;
/// let mut gradient = stream.upload(&[1.0f32; 1024])?;
/// ranks.all_reduce(&stream, &mut gradient, ReduceOp::Mean)?;
/// ranks.synchronize(&stream)?;
/// # Ok(())
/// # }
/// ```
pub struct DeviceCommunicator {
    /// The ranks' connections on the host, for the name of the world and for failures.
    pub(super) control: Communicator,
    device: Device,
    pub(super) nccl: Arc<nccl::Communicator>,
    compares_calls: bool,
    /// One call at a time is between its comparison and NCCL's answer.
    calling: Mutex<()>,
}

impl std::fmt::Debug for DeviceCommunicator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("DeviceCommunicator");
        shown
            .field("rank", &self.rank())
            .field("world_size", &self.world_size())
            .field("device", &self.device);
        shown.finish_non_exhaustive()
    }
}

/// The time for which a call asks NCCL without a pause.
const SPIN: Duration = Duration::from_micros(200);
/// The time between two looks at NCCL's errors while a stream is waited for.
const SLICE: Duration = Duration::from_millis(100);
/// The longest time for which a failed call waits for the end of an abort.
const MAX_ABORT: Duration = Duration::from_secs(1);
/// The time for which the end of a communicator waits for the others.
const FINISH: Duration = Duration::from_millis(500);
/// The time between two questions to NCCL.
const POLL: Duration = Duration::from_micros(20);

/// Returns the element that NCCL reduces for a dtype, and how many there are in one.
fn reduced(dtype: DType) -> Option<(Kind, usize)> {
    Some(match dtype {
        DType::I8 => (Kind::I8, 1),
        DType::U8 => (Kind::U8, 1),
        DType::I32 => (Kind::I32, 1),
        DType::U32 => (Kind::U32, 1),
        DType::I64 => (Kind::I64, 1),
        DType::U64 => (Kind::U64, 1),
        DType::F16 => (Kind::F16, 1),
        DType::BF16 => (Kind::BF16, 1),
        DType::F32 => (Kind::F32, 1),
        DType::F64 => (Kind::F64, 1),
        DType::C64 => (Kind::F32, 2),
        DType::C128 => (Kind::F64, 2),
        _ => return None,
    })
}

/// Checks a reduction, and returns the element that NCCL reduces, and how many there are in one of the dtype.
pub(super) fn check_reduction(operation: &'static str, dtype: DType, op: ReduceOp) -> Result<(Kind, usize)> {
    super::reduction::check(operation, dtype, op)?;
    reduced(dtype).ok_or_else(|| {
        let wanted =
            "an integer of 8, 32 or 64 bits, a float of 16 bits or more, or a complex number".to_owned();
        Error::DTypeMismatch { operation, wanted, found: format!("{dtype}, which NCCL does not reduce") }
    })
}

impl DeviceCommunicator {
    /// Creates the communicator of this rank's device. All ranks of `communicator` call it, and it stays as it is.
    ///
    /// # Errors
    ///
    /// NCCL is missing or older than 2.18 on a rank, two ranks have the same device, or a rank ends or does not come within the time-out of
    /// `communicator`.
    pub fn new(communicator: &Communicator, device: &Device) -> Result<DeviceCommunicator> {
        let rank = communicator.rank();
        // Every rank has a color.
        let Some(control) = communicator.split(Some(0), rank as i64)? else {
            return Err(Error::invalid(
                "DeviceCommunicator::new",
                "no world",
                "a communicator that has not failed",
            ));
        };
        let world_size = control.world_size();
        let failed = |failure: Failure| failure.into_error(rank, world_size, "DeviceCommunicator::new");
        // All ranks know who lacks NCCL before any of them waits for it.
        let made = nccl::version().and_then(|version| {
            let id = if rank == 0 { UniqueId::new()?.to_bytes() } else { [0; 128] };
            Ok((version, id))
        });
        let number = |(major, minor, patch)| (major * 10_000 + minor * 100 + patch) as u64;
        let own = made.as_ref().map_or(0, |(version, _)| number(*version));
        let mut versions = vec![0u64; world_size];
        control.all_gather(&[own], &mut versions)?;
        let (_, mut id) = made?;
        if let Some(lacking) = versions.iter().position(|version| *version == 0) {
            let reason = "it has no NCCL of 2.18 or newer: its own error says where it looked";
            return Err(failed(Failure::of(lacking, reason)));
        }
        let show = |number: u64| format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100);
        if let Some(other) = versions.iter().position(|version| *version != versions[0]) {
            let (found, wanted) = (show(versions[other]), show(versions[0]));
            let reason = format!("it has NCCL {found}, and rank 0 has {wanted}: use one version");
            return Err(failed(Failure::of(other, reason)));
        }
        control.broadcast(&mut id, 0)?;
        let id = UniqueId::from_bytes(id);
        let created = device.with_context(|| nccl::Communicator::new(id, rank, world_size));
        let nccl = created.inspect_err(|error| {
            // The others wait for this rank.
            control.peers.fail(Failure::of(rank, error.to_string()));
        })?;
        let compares_calls = std::env::var_os("SELVEDGE_COLLECTIVE_CHECK").is_some_and(|value| value == "1");
        let made = DeviceCommunicator {
            control,
            device: *device,
            nccl: Arc::new(nccl),
            compares_calls,
            calling: Mutex::new(()),
        };
        made.end_work_of_failures();
        made.wait_until_ready(Instant::now() + made.control.timeout())
            .map_err(|error| made.failed("DeviceCommunicator::new".to_owned(), error))?;
        log::info!("collective: rank {rank} of {world_size} computes on {device} with NCCL {}", show(own));
        Ok(made)
    }

    /// Creates the ranks of a world within this process, one for each device. Each is used by a thread of its own.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); there are no devices, or one is there twice.
    pub fn in_process(devices: &[Device]) -> Result<Vec<DeviceCommunicator>> {
        for (at, device) in devices.iter().enumerate() {
            if devices[..at].contains(device) {
                let found = format!("{device} for two ranks");
                return Err(Error::invalid("DeviceCommunicator::in_process", found, "devices that differ"));
            }
        }
        let ranks = Communicator::in_process(devices.len())?;
        std::thread::scope(|scope| {
            let create = |(rank, device)| {
                std::thread::Builder::new()
                    .spawn_scoped(scope, move || DeviceCommunicator::new(rank, device))
                    .map_err(|error| {
                        Error::invalid("DeviceCommunicator::in_process", error, "a thread for each rank")
                    })
            };
            let threads = ranks.iter().zip(devices).map(create).collect::<Result<Vec<_>>>()?;
            let ended =
                || Error::invalid("DeviceCommunicator::in_process", "a thread that has ended", "a result");
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(ended()))).collect()
        })
    }

    /// Returns the number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.control.rank()
    }

    /// Returns the number of ranks.
    pub fn world_size(&self) -> usize {
        self.control.world_size()
    }

    /// Returns this rank's device.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Sets the time within which the others must take part in a call, and in what [`synchronize`](Self::synchronize) waits for.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.control.set_timeout(timeout);
    }

    /// Ends the communicator: work in progress ends on all ranks, and further calls fail.
    pub fn abort(&self) {
        self.control.abort();
    }

    /// Waits for the work of a stream, within the time-out of the communicator.
    ///
    /// # Errors
    ///
    /// [`Error::Collective`] after the time-out, which ends the communicator, and if a rank has ended. Otherwise as
    /// [`Stream::synchronize`].
    pub fn synchronize(&self, stream: &Stream) -> Result<()> {
        let deadline = Instant::now() + self.control.timeout();
        loop {
            let found =
                stream.synchronize_timeout(SLICE.min(deadline.saturating_duration_since(Instant::now())));
            let Err(Error::TimedOut { what, .. }) = found else { return found };
            let error = match self.nccl.is_ready() {
                Err(error) => error,
                Ok(_) if Instant::now() < deadline => continue,
                Ok(_) => {
                    let waited_ms = self.control.timeout().as_millis() as u64;
                    let what = format!("{what}; a rank may not have made this call");
                    Error::TimedOut { operation: "DeviceCommunicator::synchronize", waited_ms, what }
                }
            };
            return Err(self.failed("synchronize".to_owned(), error));
        }
    }

    /// Divides the ranks into new worlds, as [`Communicator::split`].
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn split(&self, color: Option<usize>, key: i64) -> Result<Option<DeviceCommunicator>> {
        match self.control.split(color, key)? {
            Some(group) => DeviceCommunicator::new(&group, &self.device).map(Some),
            None => Ok(None),
        }
    }

    /// Waits on the host until every rank has come here. Work of streams goes on.
    ///
    /// # Errors
    ///
    /// As [`Communicator::barrier`].
    pub fn barrier(&self) -> Result<()> {
        self.control.barrier()
    }

    /// Runs a call that queues work on a stream: checks it, and compares it with those of the others if that was asked for.
    pub(super) fn queue(
        &self,
        stream: &Stream,
        call: Call,
        work: impl FnOnce(&dyn Fn() -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        if stream.device() != self.device {
            return Err(Error::DeviceMismatch {
                operation: call.operation.name(),
                left: format!("a communicator of {}", self.device),
                right: format!("a stream of {}", stream.device()),
            });
        }
        let _alone = self.calling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = self.control.peers.failure() {
            return Err(self.named(call.describe(), failure));
        }
        if let Some(failure) = self.control.peers.finished() {
            return Err(self.named(call.describe(), self.control.peers.fail(failure)));
        }
        // Two ranks alone make a message.
        if self.compares_calls && call.operation != Operation::Send {
            self.control.compare(call)?;
        }
        let deadline = Instant::now() + self.control.timeout();
        let wait = || self.wait_until_ready(deadline);
        work(&wait).map_err(|error| match error {
            // Refusals of arguments and of the driver leave the communicator as it is.
            Error::Library { .. } | Error::TimedOut { .. } | Error::Collective { .. } => {
                self.failed(call.describe(), error)
            }
            other => match self.control.peers.failure() {
                Some(failure) => self.named(call.describe(), failure),
                None => other,
            },
        })
    }

    /// Waits until NCCL has done its part on the host.
    fn wait_until_ready(&self, deadline: Instant) -> Result<()> {
        let start = Instant::now();
        while !self.nccl.is_ready()? {
            if Instant::now() >= deadline {
                let waited_ms = self.control.timeout().as_millis() as u64;
                let what = "NCCL, for ranks that have not come".to_owned();
                return Err(Error::TimedOut { operation: "a collective call", waited_ms, what });
            }
            // Most calls are ready at once.
            if start.elapsed() < SPIN { std::hint::spin_loop() } else { std::thread::sleep(POLL) }
        }
        Ok(())
    }

    /// Ends the work on the device when a rank fails, so that nothing waits for it, and has the next wait return the error.
    fn end_work_of_failures(&self) {
        let (nccl, device) = (Arc::downgrade(&self.nccl), self.device);
        let (rank, world_size) = (self.rank(), self.world_size());
        self.control.peers.on_failure(Box::new(move |failure| {
            let Some(nccl) = nccl.upgrade() else { return };
            let error = failure.clone().into_error(rank, world_size, "work on the device");
            device.report_failure(nccl.id(), error);
            // NCCL may wait for the others, which learn of the failure after this, and for graphs that hold its work.
            let abort = move || nccl.abort();
            if let Err(error) = std::thread::Builder::new().name("abort of NCCL".to_owned()).spawn(abort) {
                log::warn!("collective: a communicator of NCCL is not aborted: {error}");
            }
        }));
    }

    /// Ends the communicator because of an error.
    fn failed(&self, call: String, error: Error) -> Error {
        let failure = match error {
            Error::Collective { culprit, reason, .. } => Failure { culprit, reason },
            other => Failure { culprit: None, reason: other.to_string() },
        };
        let failure = self.control.peers.fail(failure);
        // NCCL queues nothing more afterwards, so that the caller may free memory. It does not return while a graph holds its work.
        let limit = Instant::now() + MAX_ABORT;
        while !self.nccl.is_aborted() && Instant::now() < limit {
            std::thread::sleep(POLL);
        }
        self.named(call, failure)
    }

    fn named(&self, call: String, failure: Failure) -> Error {
        failure.into_error(self.rank(), self.world_size(), call)
    }
}

impl Drop for DeviceCommunicator {
    fn drop(&mut self) {
        // A failure from now on reports nothing, which nobody would take back.
        self.control.peers.forget_on_failure();
        self.device.clear_failure(self.nccl.id());
        if self.control.peers.failure().is_some() {
            return;
        }
        // NCCL waits for the work of all ranks here, and for graphs that hold it. Ranks that are dropped one after another by one
        // thread would wait for each other, so each goes on after a while, and its thread ends with the others'.
        let (nccl, device) = (Arc::clone(&self.nccl), self.device);
        let (send, done) = mpsc::channel();
        let finish = move || {
            let keep_waiting = || {
                std::thread::sleep(POLL);
                Ok(())
            };
            if let Err(error) = device.with_context(|| nccl.finish(keep_waiting)) {
                log::debug!("collective: a communicator of NCCL was aborted at its end: {error}");
            }
            // The receiver does not wait any longer.
            let _ = send.send(());
        };
        match std::thread::Builder::new().name("end of NCCL".to_owned()).spawn(finish) {
            Ok(_) => drop(done.recv_timeout(FINISH)),
            Err(error) => log::warn!("collective: a communicator of NCCL is aborted at its end: {error}"),
        }
    }
}
