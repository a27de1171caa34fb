//! Whatever streams two operations on one buffer are on, the later one sees what the earlier one did.
//!
//! Each test first makes a stream late with a slow kernel and then issues at once what must wait: without order it would
//! be early by milliseconds, and the data would show it. That the stream is still late when the second operation has been
//! issued is asserted, so that a test cannot pass because its window was shut.

use selvedge::driver::{
    Argument, Copy2d, DeviceBuffer, LaunchConfig, PinnedBuffer, RawAddress, Stream, Transfer,
};

use crate::support::{Lab, Need, Outcome, SLOW, assert_all, assert_open, device_tests};

device_tests! {
    without_order_the_data_is_wrong => needs(Need::FreeRunning),
    every_reader_waits_for_every_writer, every_writer_waits_for_every_reader, every_writer_waits_for_every_writer,
    parts_of_a_buffer_are_ordered_together, a_writer_waits_for_all_readers, readers_run_side_by_side => needs(Need::FreeRunning),
    a_chain_over_many_streams, an_event_orders_what_the_library_cannot_see, a_stream_waits_for_a_stream,
    a_buffer_handed_to_another_thread, a_reader_that_was_sole_is_not_forgotten, one_stream_needs_no_waits,
}

const LENGTH: usize = 1 << 13;
const WINDOW: u64 = SLOW / 2;

/// Without the library's ordering the same programs go wrong: the other tests can fail.
fn without_order_the_data_is_wrong() -> Outcome {
    let lab = Lab::new()?;
    let copy = lab.kernel("slow_copy")?;
    let mut stale = false;
    // Two streams may share a hardware queue and be in order by chance: some pairs are tried.
    for _ in 0..8 {
        let (slow, quick) = (lab.device.stream()?, lab.device.stream()?);
        let mut values = slow.zeros::<u32>(LENGTH)?;
        let mut out = quick.zeros::<u32>(LENGTH)?;
        lab.device.synchronize()?;
        lab.set(&slow, values.slice_mut(..)?, 1, SLOW)?;
        let unseen = RawAddress(values.address());
        let config = LaunchConfig::new(1, 256);
        // SAFETY: slow_copy(const unsigned*, unsigned*, unsigned, u64) touches LENGTH elements; both buffers live on. That
        // they are read too early is the point.
        unsafe { copy.launch(&quick, config, (unseen, &mut out, LENGTH as u32, 0u64))? };
        stale |= quick.download(&out)?.contains(&0);
        lab.device.synchronize()?;
    }
    assert!(stale, "the window is shut: none of the other tests of ordering means anything");
    Ok(())
}

/// Operations that set a buffer to a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Write {
    Launch,
    LaunchList,
    Fill,
    Copy,
    CopyRows,
    UploadAsync,
    Upload,
}

const WRITES: [Write; 7] = [
    Write::Launch,
    Write::LaunchList,
    Write::Fill,
    Write::Copy,
    Write::CopyRows,
    Write::UploadAsync,
    Write::Upload,
];

/// Operations that read a buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Read {
    Launch,
    LaunchList,
    Copy,
    CopyRows,
    DownloadAsync,
    Download,
}

const READS: [Read; 6] =
    [Read::Launch, Read::LaunchList, Read::Copy, Read::CopyRows, Read::DownloadAsync, Read::Download];

const ROWS: Copy2d =
    Copy2d { width: LENGTH / 8, height: 8, source_pitch: LENGTH / 8, destination_pitch: LENGTH / 8 };

impl Write {
    /// Returns whether the call returns before the stream has done the work.
    fn returns_at_once(self) -> bool {
        self != Write::Upload
    }
}

impl Read {
    fn returns_at_once(self) -> bool {
        self != Read::Download
    }
}

/// The sources of writes: made before the window opens, so that nothing is allocated in it.
struct Source {
    device: DeviceBuffer<u32>,
    pinned: Option<PinnedBuffer<u32>>,
    on_its_way: Option<Transfer<u32>>,
    value: u32,
}

impl Source {
    fn new(lab: &Lab, stream: &Stream, value: u32) -> selvedge::Result<Source> {
        let mut pinned = lab.device.pinned(LENGTH)?;
        pinned.fill(value);
        let device = stream.upload(&vec![value; LENGTH])?;
        Ok(Source { device, pinned: Some(pinned), on_its_way: None, value })
    }

    fn write(
        &mut self,
        lab: &Lab,
        operation: Write,
        stream: &Stream,
        out: &mut DeviceBuffer<u32>,
    ) -> selvedge::Result<()> {
        match operation {
            Write::Launch => lab.set(stream, out.slice_mut(..)?, self.value, 0),
            Write::LaunchList => {
                let list = [
                    Argument::write(out),
                    Argument::integer(LENGTH as u32),
                    Argument::integer(self.value),
                    Argument::integer(0u64),
                ];
                let set = lab.kernel("slow_set")?;
                // SAFETY: slow_set(unsigned*, unsigned, unsigned, u64) writes LENGTH elements.
                unsafe { set.launch(stream, LaunchConfig::new(1, 256), &list) }
            }
            Write::Fill => stream.fill(out, self.value),
            Write::Copy => stream.copy(&self.device, out),
            Write::CopyRows => stream.copy_2d(&self.device, out, ROWS),
            Write::Upload => stream.copy_from_host(&vec![self.value; LENGTH], out),
            Write::UploadAsync => {
                if let Some(pinned) = self.pinned.take() {
                    self.on_its_way = Some(stream.upload_async(pinned, out).map_err(|failed| *failed.error)?);
                }
                Ok(())
            }
        }
    }
}

/// The destination of reads.
struct Sink {
    device: DeviceBuffer<u32>,
    pinned: Option<PinnedBuffer<u32>>,
    on_its_way: Option<Transfer<u32>>,
    host: Option<Vec<u32>>,
}

impl Sink {
    fn new(lab: &Lab, stream: &Stream) -> selvedge::Result<Sink> {
        let mut pinned = lab.device.pinned(LENGTH)?;
        pinned.fill(u32::MAX);
        let device = stream.upload(&[u32::MAX; LENGTH])?;
        Ok(Sink { device, pinned: Some(pinned), on_its_way: None, host: None })
    }

    fn read(
        &mut self,
        lab: &Lab,
        operation: Read,
        stream: &Stream,
        from: &DeviceBuffer<u32>,
    ) -> selvedge::Result<()> {
        match operation {
            Read::Launch => lab.copy(stream, from.slice(..)?, self.device.slice_mut(..)?, 0),
            Read::LaunchList => {
                let list = [
                    Argument::read(from),
                    Argument::write(&mut self.device),
                    Argument::integer(LENGTH as u32),
                    Argument::integer(0u64),
                ];
                let copy = lab.kernel("slow_copy")?;
                // SAFETY: slow_copy(const unsigned*, unsigned*, unsigned, u64) touches LENGTH elements of each.
                unsafe { copy.launch(stream, LaunchConfig::new(1, 256), &list) }
            }
            Read::Copy => stream.copy(from, &mut self.device),
            Read::CopyRows => stream.copy_2d(from, &mut self.device, ROWS),
            Read::Download => {
                self.host = Some(stream.download(from)?);
                Ok(())
            }
            Read::DownloadAsync => {
                if let Some(pinned) = self.pinned.take() {
                    self.on_its_way =
                        Some(stream.download_async(from, pinned).map_err(|failed| *failed.error)?);
                }
                Ok(())
            }
        }
    }

    /// Returns the numbers that were read.
    fn finish(self, stream: &Stream) -> selvedge::Result<Vec<u32>> {
        match (self.host, self.on_its_way) {
            (Some(host), _) => Ok(host),
            (_, Some(transfer)) => transfer.wait()?.into_vec(),
            _ => stream.download(&self.device),
        }
    }
}

/// Uses every operation once, so that none of them loads code in a window.
fn warm(lab: &Lab, streams: [&Stream; 2]) -> selvedge::Result<()> {
    for stream in streams {
        let mut buffer = stream.zeros::<u32>(LENGTH)?;
        for operation in WRITES {
            Source::new(lab, stream, 1)?.write(lab, operation, stream, &mut buffer)?;
        }
        for operation in READS {
            Sink::new(lab, stream)?.read(lab, operation, stream, &buffer)?;
        }
    }
    lab.device.synchronize()
}

fn every_reader_waits_for_every_writer() -> Outcome {
    let lab = Lab::new()?;
    let (late, prompt) = (lab.device.stream()?, lab.device.stream()?);
    warm(&lab, [&late, &prompt])?;
    for write in WRITES {
        for read in READS {
            let what = format!("{read:?} behind {write:?}");
            let mut buffer = late.zeros::<u32>(LENGTH)?;
            let (mut source, mut sink) = (Source::new(&lab, &late, 7)?, Sink::new(&lab, &prompt)?);
            lab.device.synchronize()?;
            lab.delay(&late, WINDOW)?;
            source.write(&lab, write, &late, &mut buffer)?;
            sink.read(&lab, read, &prompt, &buffer)?;
            if write.returns_at_once() && read.returns_at_once() {
                assert_open(!late.is_idle()?, &what);
            }
            assert_all(&sink.finish(&prompt)?, 7, &what);
        }
    }
    Ok(())
}

fn every_writer_waits_for_every_reader() -> Outcome {
    let lab = Lab::new()?;
    let (late, prompt) = (lab.device.stream()?, lab.device.stream()?);
    warm(&lab, [&late, &prompt])?;
    for read in READS.into_iter().filter(|read| read.returns_at_once()) {
        for write in WRITES {
            let what = format!("{write:?} behind {read:?}");
            let mut buffer = late.upload(&[1u32; LENGTH])?;
            let (mut source, mut sink) = (Source::new(&lab, &prompt, 2)?, Sink::new(&lab, &late)?);
            lab.device.synchronize()?;
            lab.delay(&late, WINDOW)?;
            sink.read(&lab, read, &late, &buffer)?;
            source.write(&lab, write, &prompt, &mut buffer)?;
            if write.returns_at_once() {
                assert_open(!late.is_idle()?, &what);
            }
            assert_all(&sink.finish(&late)?, 1, &what);
            assert_all(&late.download(&buffer)?, 2, &what);
        }
    }
    Ok(())
}

fn every_writer_waits_for_every_writer() -> Outcome {
    let lab = Lab::new()?;
    let (late, prompt) = (lab.device.stream()?, lab.device.stream()?);
    warm(&lab, [&late, &prompt])?;
    for first in WRITES.into_iter().filter(|write| write.returns_at_once()) {
        for second in WRITES {
            let what = format!("{second:?} behind {first:?}");
            let mut buffer = late.upload(&[1u32; LENGTH])?;
            let mut sources = (Source::new(&lab, &late, 2)?, Source::new(&lab, &prompt, 3)?);
            lab.device.synchronize()?;
            lab.delay(&late, WINDOW)?;
            sources.0.write(&lab, first, &late, &mut buffer)?;
            sources.1.write(&lab, second, &prompt, &mut buffer)?;
            if second.returns_at_once() {
                assert_open(!late.is_idle()?, &what);
            }
            lab.device.synchronize()?;
            assert_all(&prompt.download(&buffer)?, 3, &what);
        }
    }
    Ok(())
}

fn parts_of_a_buffer_are_ordered_together() -> Outcome {
    let lab = Lab::new()?;
    let (late, prompt) = (lab.device.stream()?, lab.device.stream()?);
    let mut buffer = late.zeros::<u32>(LENGTH)?;
    let mut out = prompt.zeros::<u32>(LENGTH)?;
    lab.device.synchronize()?;
    // Overlapping parts, one through another type.
    lab.set(&late, buffer.slice_mut(..LENGTH / 2)?, 1, SLOW)?;
    prompt.fill(&mut buffer.slice_mut(LENGTH / 4..)?.reinterpret::<[u32; 2]>()?, [2, 2])?;
    lab.copy(&prompt, buffer.slice(..)?, out.slice_mut(..)?, 0)?;
    assert_open(!late.is_idle()?, "parts");
    let out = prompt.download(&out)?;
    assert_all(&out[..LENGTH / 4], 1, "the slow part");
    assert_all(&out[LENGTH / 4..], 2, "the part written after it");
    Ok(())
}

fn a_writer_waits_for_all_readers() -> Outcome {
    let lab = Lab::new()?;
    let streams = (0..8).map(|_| lab.device.stream()).collect::<selvedge::Result<Vec<_>>>()?;
    let mut buffer = lab.stream.zeros::<u32>(LENGTH)?;
    let mut outs =
        streams.iter().map(|stream| stream.zeros::<u32>(LENGTH)).collect::<selvedge::Result<Vec<_>>>()?;
    lab.device.synchronize()?;
    for round in 1..=3u32 {
        lab.set(&lab.stream, buffer.slice_mut(..)?, round, WINDOW)?;
        for (index, (stream, out)) in streams.iter().zip(&mut outs).enumerate() {
            lab.copy(stream, buffer.slice(..)?, out.slice_mut(..)?, WINDOW / 8 * index as u64)?;
        }
        assert_open(!lab.stream.is_idle()?, "the readers' issue");
        // The last reader is the slowest; the next round's writer comes from the first stream.
        lab.set(&streams[0], buffer.slice_mut(..)?, 100 + round, 0)?;
        assert_open(!streams[7].is_idle()?, "the writer's issue");
        for (stream, out) in streams.iter().zip(&outs) {
            assert_all(&stream.download(out)?, round, "a reader");
        }
        assert_all(&lab.stream.download(&buffer)?, 100 + round, "the writer");
    }
    Ok(())
}

fn readers_run_side_by_side() -> Outcome {
    let lab = Lab::new()?;
    let mut best = f64::MAX;
    for _ in 0..4 {
        let streams = [lab.device.stream()?, lab.device.stream()?, lab.device.stream()?];
        let buffer = lab.stream.upload(&[3u32; LENGTH])?;
        let mut outs = [
            streams[0].zeros::<u32>(LENGTH)?,
            streams[1].zeros::<u32>(LENGTH)?,
            streams[2].zeros::<u32>(LENGTH)?,
        ];
        lab.device.synchronize()?;
        let started = std::time::Instant::now();
        for (stream, out) in streams.iter().zip(&mut outs) {
            lab.copy(stream, buffer.slice(..)?, out.slice_mut(..)?, SLOW)?;
        }
        lab.device.synchronize()?;
        best = best.min(started.elapsed().as_nanos() as f64 / SLOW as f64);
        for (stream, out) in streams.iter().zip(&outs) {
            assert_all(&stream.download(out)?, 3, "a reader");
        }
    }
    assert!(best < 2.0, "three readers took {best:.1} times as long as one: they wait for each other");
    Ok(())
}

fn a_chain_over_many_streams() -> Outcome {
    let lab = Lab::new()?;
    let streams = (0..8).map(|_| lab.device.stream()).collect::<selvedge::Result<Vec<_>>>()?;
    let mut buffer = lab.stream.zeros::<u32>(LENGTH)?;
    lab.increment(&lab.stream, buffer.slice_mut(..)?, SLOW)?;
    for hop in 1..400usize {
        lab.increment(&streams[hop * 5 % 8], buffer.slice_mut(..)?, 0)?;
    }
    assert_all(&streams[3].download(&buffer)?, 400, "the chain");
    Ok(())
}

fn an_event_orders_what_the_library_cannot_see() -> Outcome {
    let lab = Lab::new()?;
    let (late, prompt) = (lab.device.stream()?, lab.device.stream()?);
    let copy = lab.kernel("slow_copy")?;
    let mut buffer = late.zeros::<u32>(LENGTH)?;
    let mut out = prompt.zeros::<u32>(LENGTH)?;
    let mut event = lab.device.event()?;
    lab.device.synchronize()?;
    let unseen = RawAddress(buffer.address());
    lab.set(&late, buffer.slice_mut(..)?, 4, SLOW)?;
    event.record(&late)?;
    prompt.wait(&event)?;
    // SAFETY: slow_copy touches LENGTH elements; the event orders the read, and `buffer` lives on.
    unsafe { copy.launch(&prompt, LaunchConfig::new(1, 256), (unseen, &mut out, LENGTH as u32, 0u64))? };
    assert_open(!late.is_idle()?, "the event");
    assert_all(&prompt.download(&out)?, 4, "the copy");
    Ok(())
}

fn a_stream_waits_for_a_stream() -> Outcome {
    let lab = Lab::new()?;
    let (late, prompt) = (lab.device.stream()?, lab.device.stream()?);
    let copy = lab.kernel("slow_copy")?;
    let mut buffer = late.zeros::<u32>(LENGTH)?;
    let mut out = prompt.zeros::<u32>(LENGTH)?;
    lab.device.synchronize()?;
    for round in 1..4u32 {
        let unseen = RawAddress(buffer.address());
        lab.set(&late, buffer.slice_mut(..)?, round, WINDOW)?;
        prompt.wait_for(&late)?;
        // SAFETY: as above, with `wait_for` instead of the event.
        unsafe { copy.launch(&prompt, LaunchConfig::new(1, 256), (unseen, &mut out, LENGTH as u32, 0u64))? };
        assert_open(!late.is_idle()?, "wait_for");
        assert_all(&prompt.download(&out)?, round, "the copy");
    }
    Ok(())
}

fn a_buffer_handed_to_another_thread() -> Outcome {
    let lab = Lab::new()?;
    let mut buffer = lab.stream.zeros::<u32>(LENGTH)?;
    for round in 0..4u32 {
        lab.increment(&lab.stream, buffer.slice_mut(..)?, WINDOW)?;
        let lab = &lab;
        buffer = std::thread::scope(|scope| {
            let worker = scope.spawn(move || -> selvedge::Result<_> {
                let stream = lab.device.stream()?;
                lab.increment(&stream, buffer.slice_mut(..)?, WINDOW)?;
                Ok(buffer)
            });
            worker.join().expect("no thread panics")
        })?;
        assert_all(&lab.stream.download(&buffer)?, 2 * (round + 1), "the counters");
    }
    Ok(())
}

fn a_reader_that_was_sole_is_not_forgotten() -> Outcome {
    // The owner writes and reads; another stream reads; then the owner reads again, slowly; then the other writes.
    let lab = Lab::new()?;
    let (owner, other) = (lab.device.stream()?, lab.device.stream()?);
    let mut buffer = owner.upload(&[1u32; LENGTH])?;
    let (mut first, mut second) = (owner.zeros::<u32>(LENGTH)?, other.zeros::<u32>(LENGTH)?);
    lab.device.synchronize()?;
    lab.copy(&other, buffer.slice(..)?, second.slice_mut(..)?, 0)?;
    lab.copy(&owner, buffer.slice(..)?, first.slice_mut(..)?, SLOW)?;
    lab.set(&other, buffer.slice_mut(..)?, 2, 0)?;
    assert_open(!owner.is_idle()?, "the write's issue");
    assert_all(&owner.download(&first)?, 1, "the owner's read");
    assert_all(&other.download(&second)?, 1, "the other's read");
    assert_all(&owner.download(&buffer)?, 2, "the write");
    Ok(())
}

fn one_stream_needs_no_waits() -> Outcome {
    let lab = Lab::new()?;
    let mut buffer = lab.stream.zeros::<u32>(LENGTH)?;
    let mut copy = lab.stream.zeros::<u32>(LENGTH)?;
    lab.delay(&lab.stream, WINDOW)?;
    for round in 1..=50u32 {
        lab.stream.fill(&mut buffer, round)?;
        lab.increment(&lab.stream, buffer.slice_mut(..)?, 0)?;
        lab.stream.copy(&buffer, &mut copy)?;
        lab.increment(&lab.stream, copy.slice_mut(..)?, 0)?;
    }
    assert_all(&lab.stream.download(&copy)?, 52, "the copy");
    assert_all(&lab.stream.download(&buffer)?, 51, "the buffer");
    Ok(())
}
