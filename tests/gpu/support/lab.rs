//! A device, a stream and the basic kernels, loaded anew for each test.

use selvedge::Result;
use selvedge::driver::{Device, DeviceSlice, DeviceSliceMut, Function, LaunchConfig, Module, Stream};

/// How long the slow kernels wait, in nanoseconds: long beside anything that the host does meanwhile.
pub const SLOW: u64 = 20_000_000;

/// The kernels of `tests/data/gpu/basic.cu`.
pub fn basic_ptx() -> &'static [u8] {
    include_bytes!("../../data/gpu/basic.ptx")
}

pub struct Lab {
    pub device: Device,
    pub stream: Stream,
    pub module: Module,
    set: Function,
    copy: Function,
    increment: Function,
}

impl Lab {
    pub fn new() -> Result<Lab> {
        Lab::on(Device::new(0)?)
    }

    pub fn on(device: Device) -> Result<Lab> {
        let module = device.load(basic_ptx())?;
        let lab = Lab {
            device,
            stream: device.stream()?,
            set: module.function("slow_set")?,
            copy: module.function("slow_copy")?,
            increment: module.function("slow_increment")?,
            module,
        };
        // The first launch of a kernel may load its code, which waits for the device: that must not close a window later.
        let mut scratch = lab.stream.zeros::<u32>(2)?;
        let (mut left, mut right) = scratch.split_at_mut(1)?;
        lab.set(&lab.stream, left.reborrow(), 0, 0)?;
        lab.increment(&lab.stream, left.reborrow(), 0)?;
        lab.copy(&lab.stream, left.slice(..)?, right.reborrow(), 0)?;
        // The driver's own fills are kernels too, one for each width.
        lab.stream.fill(&mut scratch.reinterpret_mut::<u16>()?, 0x0102)?;
        lab.stream.fill(&mut scratch, 0x0102_0304)?;
        lab.stream.fill(&mut scratch.reinterpret_mut::<[u32; 2]>()?, [1, 2])?;
        lab.stream.synchronize()?;
        Ok(lab)
    }

    pub fn kernel(&self, name: &str) -> Result<Function> {
        self.module.function(name)
    }

    /// After `nanoseconds`, sets every element to `value`.
    pub fn set(
        &self,
        stream: &Stream,
        out: DeviceSliceMut<'_, u32>,
        value: u32,
        nanoseconds: u64,
    ) -> Result<()> {
        let length = out.len() as u32;
        // SAFETY: slow_set(unsigned*, unsigned, unsigned, u64) writes `length` elements.
        unsafe { self.set.launch(stream, LaunchConfig::new(1, 256), (out, length, value, nanoseconds)) }
    }

    /// After `nanoseconds`, copies every element.
    pub fn copy(
        &self,
        stream: &Stream,
        source: DeviceSlice<'_, u32>,
        out: DeviceSliceMut<'_, u32>,
        nanoseconds: u64,
    ) -> Result<()> {
        assert_eq!(source.len(), out.len());
        let length = out.len() as u32;
        // SAFETY: slow_copy(const unsigned*, unsigned*, unsigned, u64) touches `length` elements of each.
        unsafe { self.copy.launch(stream, LaunchConfig::new(1, 256), (source, out, length, nanoseconds)) }
    }

    /// After `nanoseconds`, adds 1 to every element.
    pub fn increment(
        &self,
        stream: &Stream,
        values: DeviceSliceMut<'_, u32>,
        nanoseconds: u64,
    ) -> Result<()> {
        let length = values.len() as u32;
        // SAFETY: slow_increment(unsigned*, unsigned, u64) touches `length` elements.
        unsafe { self.increment.launch(stream, LaunchConfig::new(1, 256), (values, length, nanoseconds)) }
    }

    /// Keeps the stream busy: whatever it is given next is late.
    pub fn delay(&self, stream: &Stream, nanoseconds: u64) -> Result<()> {
        let mut scratch = stream.uninitialized::<u32>(1)?;
        self.set(stream, scratch.slice_mut(..)?, 0, nanoseconds)
    }
}
