//! The device time that a burst's traffic takes at least: its synapses at the speed of a copy, and as many reductions of 64 bits
//! to random places of 8 MB.

use selvedge::driver::{Attribute, Device, DeviceBuffer, Event, Function, LaunchConfig, Stream};

use crate::harness::report::Failure;

const SCATTER_ADD: &str = include_str!("../../csrc/bench/scatter_add.ptx");
/// Sums that the reductions go to: 8 MB.
const SUMS: usize = 1 << 20;
/// Bytes of a synapse.
const SYNAPSE: u64 = 6;

pub struct Probe {
    stream: Stream,
    add: Function,
    sums: DeviceBuffer<u64>,
    source: DeviceBuffer<u8>,
    target: DeviceBuffer<u8>,
    blocks: u32,
}

impl Probe {
    /// For bursts of up to that many events.
    pub fn new(device: Device, most_events: u64) -> Result<Probe, Failure> {
        let stream = device.stream()?;
        let bytes = usize::try_from(most_events * SYNAPSE / 2)?.max(1);
        Ok(Probe {
            add: device.load(SCATTER_ADD.as_bytes())?.function("scatter_add")?,
            sums: stream.zeros(SUMS)?,
            source: stream.zeros(bytes)?,
            target: stream.zeros(bytes)?,
            blocks: device.attribute(Attribute::MULTIPROCESSOR_COUNT)? as u32 * 8,
            stream,
        })
    }

    fn device_time(&mut self, work: impl FnOnce(&mut Probe) -> selvedge::Result<()>) -> Result<f64, Failure> {
        let device = self.stream.device();
        let (mut start, mut end): (Event, Event) = (device.timing_event()?, device.timing_event()?);
        start.record(&self.stream)?;
        work(self)?;
        end.record(&self.stream)?;
        end.synchronize()?;
        Ok(f64::from(start.elapsed_ms(&end)?))
    }

    /// Milliseconds of that many reductions.
    pub fn reductions(&mut self, events: u64) -> Result<f64, Failure> {
        let count = u32::try_from(events)?;
        self.device_time(|probe| {
            let arguments = (&mut probe.sums, SUMS as u32 - 1, count);
            // SAFETY: scatter_add(u64*, u32 mask, u32 count) writes to sums that the mask reaches.
            unsafe { probe.add.launch(&probe.stream, LaunchConfig::new(probe.blocks, 256), arguments) }
        })
    }

    /// Milliseconds in which a copy moves as many bytes as that many synapses have.
    pub fn traffic(&mut self, events: u64) -> Result<f64, Failure> {
        let bytes = usize::try_from(events * SYNAPSE / 2)?.max(1);
        self.device_time(|probe| {
            let mut target = probe.target.slice_mut(..bytes)?;
            probe.stream.copy(&probe.source.slice(..bytes)?, &mut target)
        })
    }

    /// The slower of the two.
    pub fn least(&mut self, events: u64) -> Result<f64, Failure> {
        Ok(self.reductions(events)?.max(self.traffic(events)?))
    }
}
