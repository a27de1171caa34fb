//! The operations of a [`DeviceCommunicator`].

use super::arguments::check_length;
use super::call::{Call, Operation};
use super::device::{DeviceCommunicator, check_reduction};
use super::reduction::ReduceOp;
use crate::driver::{DeviceRead, DeviceSlice, DeviceSliceMut, DeviceWrite, KernelArguments, Stream};
use crate::error::Result;
use crate::nccl::{Kind, Reduction, Work};
use crate::types::Element;

impl ReduceOp {
    fn of_nccl(self) -> Reduction {
        match self {
            ReduceOp::Sum => Reduction::Sum,
            ReduceOp::Mean => Reduction::Mean,
            ReduceOp::Product => Reduction::Product,
            ReduceOp::Min => Reduction::Min,
            ReduceOp::Max => Reduction::Max,
        }
    }
}

/// The location of elements.
fn view<T>(memory: &impl DeviceRead<T>) -> crate::driver::View<'_> {
    memory.view()
}

/// The bytes of memory that is read.
fn read<T>(memory: &impl DeviceRead<T>) -> DeviceSlice<'_, u8> {
    DeviceSlice::new(memory.view().bytes::<T>())
}

/// The bytes of memory that is written.
fn write<T>(memory: &mut impl DeviceWrite<T>) -> DeviceSliceMut<'_, u8> {
    DeviceSliceMut::new(memory.view().bytes::<T>())
}

impl DeviceCommunicator {
    /// Replaces the values of every rank by their reduction.
    ///
    /// # Errors
    ///
    /// [`Error::Collective`](crate::Error::Collective) if a rank has ended; a stream or memory of another device; a dtype or an operation that NCCL does not
    /// reduce.
    pub fn all_reduce<T: Element>(
        &self,
        stream: &Stream,
        values: &mut impl DeviceWrite<T>,
        op: ReduceOp,
    ) -> Result<()> {
        let (kind, each) = check_reduction("all_reduce", T::DTYPE, op)?;
        let view = values.view();
        let (address, count) = (view.address, view.length);
        let call = Call { op: Some(op), ..Call::new(Operation::AllReduce, T::DTYPE, count) };
        let work = [Work::AllReduce { from: address, to: address, count: count * each, op: op.of_nccl() }];
        self.enqueue(stream, call, (write(values),), kind, &work)
    }

    /// Replaces the values of one rank by the reduction of all ranks' values.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The root is no rank.
    pub fn reduce<T: Element>(
        &self,
        stream: &Stream,
        values: &mut impl DeviceWrite<T>,
        root: usize,
        op: ReduceOp,
    ) -> Result<()> {
        let (kind, each) = check_reduction("reduce", T::DTYPE, op)?;
        self.control.ranks().check_root("reduce", root)?;
        let view = values.view();
        let (address, count) = (view.address, view.length);
        let call = Call { op: Some(op), root: Some(root), ..Call::new(Operation::Reduce, T::DTYPE, count) };
        let work = [Work::Reduce { from: address, to: address, count: count * each, op: op.of_nccl(), root }];
        self.enqueue(stream, call, (write(values),), kind, &work)
    }

    /// Replaces the values of every rank by those of one.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The root is no rank.
    pub fn broadcast<T: Element>(
        &self,
        stream: &Stream,
        values: &mut impl DeviceWrite<T>,
        root: usize,
    ) -> Result<()> {
        self.control.ranks().check_root("broadcast", root)?;
        let view = values.view();
        let (address, count) = (view.address, view.length);
        let call = Call { root: Some(root), ..Call::new(Operation::Broadcast, T::DTYPE, count) };
        let work = [Work::Broadcast { from: address, to: address, count: count * size_of::<T>(), root }];
        self.enqueue(stream, call, (write(values),), Kind::U8, &work)
    }

    /// Writes the values of all ranks to `gathered`, in the order of ranks. It is as long as all of them.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The lengths do not fit.
    pub fn all_gather<T: Element>(
        &self,
        stream: &Stream,
        values: &impl DeviceRead<T>,
        gathered: &mut impl DeviceWrite<T>,
    ) -> Result<()> {
        let (from, to) = (values.view(), gathered.view());
        check_length("all_gather", from.length.saturating_mul(self.world_size()), to.length)?;
        let call = Call::new(Operation::AllGather, T::DTYPE, from.length);
        let (from, to, count) = (from.address, to.address, from.length * size_of::<T>());
        let work = [Work::AllGather { from, to, count }];
        self.enqueue(stream, call, (read(values), write(gathered)), Kind::U8, &work)
    }

    /// Reduces the values of all ranks, and writes the part of each rank to its `reduced`: the first to that of rank 0.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The lengths do not fit.
    pub fn reduce_scatter<T: Element>(
        &self,
        stream: &Stream,
        values: &impl DeviceRead<T>,
        reduced: &mut impl DeviceWrite<T>,
        op: ReduceOp,
    ) -> Result<()> {
        let (kind, each) = check_reduction("reduce_scatter", T::DTYPE, op)?;
        let (from, to) = (values.view(), reduced.view());
        check_length("reduce_scatter", to.length.saturating_mul(self.world_size()), from.length)?;
        let call = Call { op: Some(op), ..Call::new(Operation::ReduceScatter, T::DTYPE, to.length) };
        let (from, to, count) = (from.address, to.address, to.length * each);
        let work = [Work::ReduceScatter { from, to, count, op: op.of_nccl() }];
        self.enqueue(stream, call, (read(values), write(reduced)), kind, &work)
    }

    /// Sends part r of the values to rank r, and writes the parts from all ranks to `received`, in the order of ranks. All parts are
    /// equally long.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The lengths do not fit.
    pub fn all_to_all<T: Element>(
        &self,
        stream: &Stream,
        values: &impl DeviceRead<T>,
        received: &mut impl DeviceWrite<T>,
    ) -> Result<()> {
        let (from, to) = (values.view(), received.view());
        check_length("all_to_all", from.length, to.length)?;
        let counts = vec![self.control.ranks().check_parts("all_to_all", from.length)?; self.world_size()];
        let call = Call::new(Operation::AllToAll, T::DTYPE, from.length);
        let work = exchange::<T>((from.address, &counts), (to.address, &counts));
        self.enqueue(stream, call, (read(values), write(received)), Kind::U8, &work)
    }

    /// Sends the next `counts[r]` of the values to rank r, and writes `received_counts[r]` elements from rank r to `received`, in the
    /// order of ranks. Ranks agree on the counts of what they send to each other: NCCL does not compare them.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The lengths do not fit.
    pub fn all_to_all_uneven<T: Element>(
        &self,
        stream: &Stream,
        (values, counts): (&impl DeviceRead<T>, &[usize]),
        (received, received_counts): (&mut impl DeviceWrite<T>, &[usize]),
    ) -> Result<()> {
        let (from, to) = (values.view(), received.view());
        let sides = [(counts, from.length), (received_counts, to.length)];
        self.control.ranks().check_counts("all_to_all_uneven", sides)?;
        let call = Call::new(Operation::AllToAllUneven, T::DTYPE, 0);
        let work = exchange::<T>((from.address, counts), (to.address, received_counts));
        self.enqueue(stream, call, (read(values), write(received)), Kind::U8, &work)
    }

    /// Writes the values of all ranks to `gathered` of one rank, in the order of ranks. The others pass `None`.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The lengths do not fit; the root is no rank, or it alone does not say where the values go.
    pub fn gather<T: Element>(
        &self,
        stream: &Stream,
        values: &impl DeviceRead<T>,
        gathered: Option<DeviceSliceMut<'_, T>>,
        root: usize,
    ) -> Result<()> {
        self.control.ranks().check_root_memory("gather", root, gathered.is_some())?;
        let from = values.view();
        let call = Call { root: Some(root), ..Call::new(Operation::Gather, T::DTYPE, from.length) };
        let count = from.length * size_of::<T>();
        let send = Work::Send { from: from.address, count, peer: root };
        let Some(mut gathered) = gathered else {
            return self.enqueue(stream, call, (read(values),), Kind::U8, &[send]);
        };
        let to = view(&gathered);
        check_length("gather", from.length.saturating_mul(self.world_size()), to.length)?;
        let mut work = vec![send];
        work.extend((0..self.world_size()).map(|peer| Work::Receive {
            to: to.address + (peer * count) as u64,
            count,
            peer,
        }));
        self.enqueue(stream, call, (read(values), write(&mut gathered)), Kind::U8, &work)
    }

    /// Writes part r of the values of one rank to `part` of rank r. The other ranks pass `None` as values.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The lengths do not fit; the root is no rank, or it alone has no values.
    pub fn scatter<T: Element>(
        &self,
        stream: &Stream,
        values: Option<DeviceSlice<'_, T>>,
        part: &mut impl DeviceWrite<T>,
        root: usize,
    ) -> Result<()> {
        self.control.ranks().check_root_memory("scatter", root, values.is_some())?;
        let to = part.view();
        let call = Call { root: Some(root), ..Call::new(Operation::Scatter, T::DTYPE, to.length) };
        let count = to.length * size_of::<T>();
        let receive = Work::Receive { to: to.address, count, peer: root };
        let Some(values) = values else {
            return self.enqueue(stream, call, (write(part),), Kind::U8, &[receive]);
        };
        let from = view(&values);
        check_length("scatter", to.length.saturating_mul(self.world_size()), from.length)?;
        let mut work = vec![receive];
        work.extend((0..self.world_size()).map(|peer| Work::Send {
            from: from.address + (peer * count) as u64,
            count,
            peer,
        }));
        self.enqueue(stream, call, (read(&values), write(part)), Kind::U8, &work)
    }

    /// Sends values to a rank, which [receives](Self::receive) as many.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The rank is this one, or none.
    pub fn send<T: Element>(&self, stream: &Stream, values: &impl DeviceRead<T>, to: usize) -> Result<()> {
        self.control.ranks().check_peer("send", to)?;
        let from = values.view();
        let call = Call::new(Operation::Send, T::DTYPE, from.length);
        let work = [Work::Send { from: from.address, count: from.length * size_of::<T>(), peer: to }];
        self.enqueue(stream, call, (read(values),), Kind::U8, &work)
    }

    /// Receives the values that a rank [sends](Self::send).
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn receive<T: Element>(
        &self,
        stream: &Stream,
        values: &mut impl DeviceWrite<T>,
        from: usize,
    ) -> Result<()> {
        self.control.ranks().check_peer("receive", from)?;
        let to = values.view();
        let call = Call::new(Operation::Send, T::DTYPE, to.length);
        let work = [Work::Receive { to: to.address, count: to.length * size_of::<T>(), peer: from }];
        self.enqueue(stream, call, (write(values),), Kind::U8, &work)
    }

    /// Sends values to one rank, and receives from another or the same one at the same time.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_receive<T: Element>(
        &self,
        stream: &Stream,
        (values, to): (&impl DeviceRead<T>, usize),
        (received, from): (&mut impl DeviceWrite<T>, usize),
    ) -> Result<()> {
        self.control.ranks().check_peer("send_receive", to)?;
        self.control.ranks().check_peer("send_receive", from)?;
        let (source, target) = (values.view(), received.view());
        let call = Call::new(Operation::Send, T::DTYPE, source.length);
        let work = [
            Work::Send { from: source.address, count: source.length * size_of::<T>(), peer: to },
            Work::Receive { to: target.address, count: target.length * size_of::<T>(), peer: from },
        ];
        self.enqueue(stream, call, (read(values), write(received)), Kind::U8, &work)
    }

    /// Queues work on the memory, which is read, written or both.
    fn enqueue(
        &self,
        stream: &Stream,
        call: Call,
        memory: impl KernelArguments,
        kind: Kind,
        work: &[Work],
    ) -> Result<()> {
        self.queue(stream, call, |wait| {
            // SAFETY: the work stays inside the memory, whose lengths were checked, writes no memory that is only read, and is
            // in the order of the stream that it is given.
            unsafe { stream.with_raw(memory, |raw| self.nccl.enqueue(raw, kind, work).and_then(|()| wait())) }
        })
    }
}

/// The messages to and from every rank, of elements that lie one behind the other.
fn exchange<T>((from, counts): (u64, &[usize]), (to, received_counts): (u64, &[usize])) -> Vec<Work> {
    let mut work = Vec::with_capacity(2 * counts.len());
    let (mut from, mut to) = (from, to);
    for (peer, (count, received)) in counts.iter().zip(received_counts).enumerate() {
        let (count, received) = (count * size_of::<T>(), received * size_of::<T>());
        work.push(Work::Send { from, count, peer });
        work.push(Work::Receive { to, count: received, peer });
        from += count as u64;
        to += received as u64;
    }
    work
}
