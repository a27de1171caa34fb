//! [`DeviceCommunicator`]: collective operations on the memory of devices, by NCCL.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::call::Call;
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
/// communicator. `SELVEDGE_COLLECTIVE_CHECK=1` compares each call with those of the other ranks before it is queued, which takes some 100
/// microseconds: ranks that disagree, or do not come within the time-out, are then named, and nothing hangs on the device.
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
    control: Communicator,
    pub(super) device: Device,
    pub(super) nccl: Arc<nccl::Communicator>,
    compares_calls: bool,
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
        // All ranks know who lacks NCCL before any of them waits for it.
        let made = if rank == 0 { UniqueId::new().map(Some) } else { nccl::version().map(|_| None) };
        let mut versions = vec![0u64; world_size];
        let own = made
            .as_ref()
            .map_or(0, |_| nccl::version().map_or(0, |(a, b, c)| (a * 10_000 + b * 100 + c) as u64));
        control.all_gather(&[own], &mut versions)?;
        let mut id = match made? {
            Some(id) => id.to_bytes(),
            None => [0; 128],
        };
        let failed = |culprit: usize, reason: String| Error::Collective {
            rank,
            world_size,
            call: "DeviceCommunicator::new".to_owned(),
            culprit: Some(culprit),
            reason,
        };
        if let Some(lacking) = versions.iter().position(|version| *version == 0) {
            return Err(failed(
                lacking,
                "it has no NCCL of 2.18 or newer: its own error says where it looked".to_owned(),
            ));
        }
        if let Some(other) = versions.iter().position(|version| *version != versions[0]) {
            let show = |number: u64| format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100);
            let reason = format!(
                "it has NCCL {}, and rank 0 has {}: use one version",
                show(versions[other]),
                show(versions[0])
            );
            return Err(failed(other, reason));
        }
        control.broadcast(&mut id, 0)?;
        let id = UniqueId::from_bytes(id);
        let created = device.with_context(|| nccl::Communicator::new(id, rank, world_size));
        let nccl = created.inspect_err(|error| {
            // The others wait for this rank.
            control.mesh().peers.fail(Failure::of(rank, error.to_string()));
        })?;
        let compares_calls = std::env::var_os("SELVEDGE_COLLECTIVE_CHECK").is_some_and(|value| value == "1");
        let made = DeviceCommunicator { control, device: *device, nccl: Arc::new(nccl), compares_calls };
        made.end_work_of_failures();
        made.wait_until_ready(Instant::now() + made.control.timeout())
            .map_err(|error| made.failed("DeviceCommunicator::new".to_owned(), error))?;
        log::info!("collective: rank {rank} of {world_size} computes on {device} with NCCL {}", versions[0]);
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
        match stream.synchronize_timeout(self.control.timeout()) {
            Err(Error::TimedOut { waited_ms, what, .. }) => {
                let reason =
                    format!("{what} did not end within {waited_ms} ms: a rank may not have made this call");
                let error = Error::invalid("synchronize", reason, "all ranks");
                let error = self.failed("synchronize".to_owned(), error);
                // The aborted work ends now, and the stream has nothing of this communicator.
                stream.synchronize()?;
                Err(error)
            }
            other => other,
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
        if let Some(failure) = self.control.mesh().peers.failure() {
            return Err(self.named(call.describe(), failure));
        }
        if self.compares_calls {
            self.control.compare(call)?;
        }
        let deadline = Instant::now() + self.control.timeout();
        let wait = || self.wait_until_ready(deadline);
        work(&wait).map_err(|error| match error {
            // Refusals of arguments and of the driver leave the communicator as it is.
            Error::Library { .. } | Error::TimedOut { .. } | Error::Collective { .. } => {
                self.failed(call.describe(), error)
            }
            other => match self.control.mesh().peers.failure() {
                Some(failure) => self.named(call.describe(), failure),
                None => other,
            },
        })
    }

    /// Waits until NCCL has done its part on the host.
    fn wait_until_ready(&self, deadline: Instant) -> Result<()> {
        while !self.nccl.is_ready()? {
            if Instant::now() >= deadline {
                let waited_ms = self.control.timeout().as_millis() as u64;
                let what = "NCCL, for ranks that have not come".to_owned();
                return Err(Error::TimedOut { operation: "a collective call", waited_ms, what });
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Ends the work on the device when a rank fails, so that nothing waits for it, and has the next wait return the error.
    fn end_work_of_failures(&self) {
        let (nccl, device) = (Arc::downgrade(&self.nccl), self.device);
        let (rank, world_size) = (self.rank(), self.world_size());
        self.control.mesh().peers.on_failure(Box::new(move |failure| {
            let Some(nccl) = nccl.upgrade() else { return };
            device.report_failure(Error::Collective {
                rank,
                world_size,
                call: "work on the device".to_owned(),
                culprit: failure.culprit,
                reason: failure.reason.clone(),
            });
            nccl.abort();
        }));
    }

    /// Ends the communicator because of an error.
    fn failed(&self, call: String, error: Error) -> Error {
        let mesh = self.control.mesh();
        let failure = match error {
            Error::Collective { culprit, reason, .. } => Failure { culprit, reason },
            other => Failure { culprit: None, reason: other.to_string() },
        };
        let failure = mesh.peers.fail(failure);
        self.named(call, failure)
    }

    fn named(&self, call: String, failure: Failure) -> Error {
        Error::Collective {
            rank: self.rank(),
            world_size: self.world_size(),
            call,
            culprit: failure.culprit,
            reason: failure.reason,
        }
    }
}

impl Drop for DeviceCommunicator {
    fn drop(&mut self) {
        if self.control.mesh().peers.failure().is_some() {
            return;
        }
        // Without the others, whose work may wait for this rank's.
        let deadline = Instant::now() + self.control.timeout();
        let keep_waiting = || {
            std::thread::sleep(POLL);
            let is_over = Instant::now() >= deadline || self.control.mesh().peers.failure().is_some();
            if is_over {
                Err(Error::invalid("drop", "a rank that does not end", "all ranks"))
            } else {
                Ok(())
            }
        };
        let finished = self.device.with_context(|| self.nccl.finish(keep_waiting));
        if let Err(error) = finished {
            log::debug!("collective: a communicator of NCCL was aborted at its end: {error}");
        }
    }
}

impl Communicator {
    /// Compares a call with those of the other ranks.
    fn compare(&self, call: Call) -> Result<()> {
        let nothing = vec![&[][..]; self.world_size()];
        self.exchange_parts(call, &nothing, &mut [], &vec![0; self.world_size()])
    }
}
