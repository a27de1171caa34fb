//! Anything may be dropped at any time, on any thread, while it is in use: the drop does not wait, and the memory is not
//! given out again before its last user is done.

use std::time::{Duration, Instant};

use selvedge::driver::{Argument, Device, DeviceBuffer, LaunchConfig, Stream};

use crate::support::{Lab, Outcome, SLOW, assert_all, assert_open, device_tests, serialised};

device_tests! {
    drops_do_not_wait, memory_of_a_reader_is_not_reused_early, memory_of_another_streams_reader_is_not_reused_early,
    memory_of_a_closed_stream_is_not_reused_early, memory_of_many_readers_is_not_reused_early, a_stream_dropped_first,
    dropped_on_another_thread, dropped_at_the_end_of_a_thread, arguments_dropped_after_the_launch, every_order,
    nothing_is_reported => in_child(&[]), a_busy_crowd,
}

const LENGTH: usize = 1 << 16;

/// Takes as many buffers of the same size as could meet a dropped one, and writes over each.
fn overwrite(lab: &Lab, stream: &Stream) -> selvedge::Result<Vec<DeviceBuffer<u32>>> {
    let mut buffers = Vec::new();
    for _ in 0..6 {
        let mut buffer = stream.uninitialized::<u32>(LENGTH)?;
        lab.set(stream, buffer.slice_mut(..)?, 0xDEAD, 0)?;
        buffers.push(buffer);
    }
    Ok(buffers)
}

fn drops_do_not_wait() -> Outcome {
    let lab = Lab::new()?;
    let other = lab.device.stream()?;
    let mut buffers = Vec::new();
    for _ in 0..8 {
        buffers.push(lab.stream.zeros::<u32>(LENGTH)?);
    }
    let mut out = other.zeros::<u32>(LENGTH)?;
    let module = lab.device.load(crate::support::basic_ptx())?;
    let set = module.function("slow_set")?;
    lab.device.synchronize()?;
    for buffer in &mut buffers {
        lab.increment(&lab.stream, buffer.slice_mut(..)?, SLOW / 4)?;
        lab.copy(&other, buffer.slice(..)?, out.slice_mut(..)?, 0)?;
    }
    // SAFETY: slow_set(unsigned*, unsigned, unsigned, u64) writes one element.
    unsafe { set.launch(&other, LaunchConfig::new(1, 1), (out.slice_mut(..1)?, 1u32, 1u32, SLOW / 2))? };
    let Lab { stream, device, .. } = &lab;
    let stream = stream.clone();
    let started = Instant::now();
    drop((buffers, out, module, set, other));
    let took = started.elapsed();
    assert_open(!stream.is_idle()?, "the drops");
    assert!(serialised() || took < Duration::from_millis(5), "the drops took {took:?}");
    device.synchronize()?;
    Ok(())
}

fn memory_of_a_reader_is_not_reused_early() -> Outcome {
    let lab = Lab::new()?;
    let mut out = lab.stream.zeros::<u32>(LENGTH)?;
    let source = lab.stream.upload(&vec![5u32; LENGTH])?;
    lab.copy(&lab.stream, source.slice(..)?, out.slice_mut(..)?, SLOW)?;
    drop(source);
    let others = overwrite(&lab, &lab.stream)?;
    assert_open(!lab.stream.is_idle()?, "the re-use");
    assert_all(&lab.stream.download(&out)?, 5, "what the kernel read");
    drop(others);
    Ok(())
}

fn memory_of_another_streams_reader_is_not_reused_early() -> Outcome {
    let lab = Lab::new()?;
    let reader = lab.device.stream()?;
    let mut out = reader.zeros::<u32>(LENGTH)?;
    let source = lab.stream.upload(&vec![5u32; LENGTH])?;
    lab.device.synchronize()?;
    lab.copy(&reader, source.slice(..)?, out.slice_mut(..)?, SLOW)?;
    let address = source.address();
    drop(source);
    // Its own stream gets the block back at once, behind a wait for the reader.
    let others = overwrite(&lab, &lab.stream)?;
    assert_open(!reader.is_idle()?, "the re-use");
    assert!(serialised() || others[0].address() == address, "nothing was re-used, so this proves nothing");
    assert_all(&reader.download(&out)?, 5, "what the kernel read");
    assert_all(&lab.stream.download(&others[0])?, 0xDEAD, "the next buffer");
    Ok(())
}

fn memory_of_a_closed_stream_is_not_reused_early() -> Outcome {
    let lab = Lab::new()?;
    let (home, reader) = (lab.device.stream()?, lab.device.stream()?);
    let mut out = reader.zeros::<u32>(LENGTH)?;
    let (before, after) = (home.upload(&vec![6u32; LENGTH])?, home.upload(&vec![7u32; LENGTH])?);
    let mut second = reader.zeros::<u32>(LENGTH)?;
    lab.device.synchronize()?;
    lab.copy(&reader, before.slice(..)?, out.slice_mut(..)?, SLOW)?;
    lab.copy(&reader, after.slice(..)?, second.slice_mut(..)?, 0)?;
    // One block goes back before its stream is closed, the other after.
    drop(before);
    drop(home);
    drop(after);
    let others = overwrite(&lab, &lab.stream)?;
    assert_open(!reader.is_idle()?, "the re-use");
    assert_all(&reader.download(&out)?, 6, "dropped before the stream");
    assert_all(&reader.download(&second)?, 7, "dropped after the stream");
    drop(others);
    Ok(())
}

fn memory_of_many_readers_is_not_reused_early() -> Outcome {
    let lab = Lab::new()?;
    let readers = (0..6).map(|_| lab.device.stream()).collect::<selvedge::Result<Vec<_>>>()?;
    let source = lab.stream.upload(&vec![8u32; LENGTH])?;
    let mut outs =
        readers.iter().map(|stream| stream.zeros::<u32>(LENGTH)).collect::<selvedge::Result<Vec<_>>>()?;
    lab.device.synchronize()?;
    for (index, (reader, out)) in readers.iter().zip(&mut outs).enumerate() {
        lab.copy(reader, source.slice(..)?, out.slice_mut(..)?, SLOW / 6 * (index as u64 + 1))?;
    }
    drop(source);
    let others = overwrite(&lab, &lab.stream)?;
    assert_open(!readers[5].is_idle()?, "the re-use");
    for (reader, out) in readers.iter().zip(&outs) {
        assert_all(&reader.download(out)?, 8, "what a kernel read");
    }
    drop(others);
    Ok(())
}

fn a_stream_dropped_first() -> Outcome {
    let lab = Lab::new()?;
    let home = lab.device.stream()?;
    let mut buffer = home.zeros::<u32>(LENGTH)?;
    lab.set(&home, buffer.slice_mut(..)?, 3, SLOW)?;
    drop(home);
    // Its work goes on, and others wait for it.
    lab.increment(&lab.stream, buffer.slice_mut(..)?, 0)?;
    assert_all(&lab.stream.download(&buffer)?, 4, "the buffer");
    drop(buffer);
    let next = overwrite(&lab, &lab.stream)?;
    assert_all(&lab.stream.download(&next[5])?, 0xDEAD, "the next buffer");
    Ok(())
}

fn dropped_on_another_thread() -> Outcome {
    let lab = Lab::new()?;
    let reader = lab.device.stream()?;
    let mut out = reader.zeros::<u32>(LENGTH)?;
    let source = lab.stream.upload(&vec![9u32; LENGTH])?;
    lab.device.synchronize()?;
    lab.copy(&reader, source.slice(..)?, out.slice_mut(..)?, SLOW)?;
    std::thread::spawn(move || drop(source)).join().map_err(|_| "the drop panicked")?;
    let others = overwrite(&lab, &lab.stream)?;
    assert_open(!reader.is_idle()?, "the re-use");
    assert_all(&reader.download(&out)?, 9, "what the kernel read");
    drop(others);
    Ok(())
}

fn dropped_at_the_end_of_a_thread() -> Outcome {
    use std::cell::RefCell;
    thread_local! {
        static AT_EXIT: RefCell<Vec<(Stream, DeviceBuffer<u32>)>> = const { RefCell::new(Vec::new()) };
    }
    let lab = Lab::new()?;
    for _ in 0..3 {
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| -> selvedge::Result<()> {
                let stream = lab.device.stream()?;
                let mut buffer = stream.zeros::<u32>(LENGTH)?;
                lab.set(&stream, buffer.slice_mut(..)?, 1, SLOW / 4)?;
                // Dropped by the thread's own end, when other thread-locals may be gone.
                AT_EXIT.with(|held| held.borrow_mut().push((stream, buffer)));
                Ok(())
            });
            worker.join().expect("no thread panics")
        })?;
    }
    let next = overwrite(&lab, &lab.stream)?;
    lab.device.synchronize()?;
    for buffer in &next {
        assert_all(&lab.stream.download(buffer)?, 0xDEAD, "the next buffer");
    }
    Ok(())
}

fn arguments_dropped_after_the_launch() -> Outcome {
    let lab = Lab::new()?;
    let reader = lab.device.stream()?;
    let copy = lab.kernel("slow_copy")?;
    let mut out = reader.zeros::<u32>(LENGTH)?;
    let source = lab.stream.upload(&vec![4u32; LENGTH])?;
    lab.device.synchronize()?;
    {
        let list = [
            Argument::read(&source),
            Argument::write(&mut out),
            Argument::integer(LENGTH as u32),
            Argument::integer(SLOW),
        ];
        // SAFETY: slow_copy(const unsigned*, unsigned*, unsigned, u64) touches LENGTH elements of each.
        unsafe { copy.launch(&reader, LaunchConfig::new(1, 256), &list)? };
    }
    drop(source);
    drop(copy);
    let others = overwrite(&lab, &lab.stream)?;
    assert_all(&reader.download(&out)?, 4, "what the kernel read");
    drop(others);
    Ok(())
}

/// Drops a stream, a buffer of it, its module, an event and a transfer in every order, while all are in use.
fn every_order() -> Outcome {
    let lab = Lab::new()?;
    let mut orders = Vec::new();
    permutations(&mut [0, 1, 2, 3, 4], 0, &mut orders);
    assert_eq!(orders.len(), 120);
    for order in orders {
        let stream = lab.device.stream()?;
        let mut buffer = stream.uninitialized::<u32>(1000)?;
        let module = lab.device.load(crate::support::basic_ptx())?;
        let set = module.function("slow_set")?;
        let mut event = lab.device.event()?;
        let pinned = lab.device.pinned::<u32>(1000)?;
        // SAFETY: slow_set(unsigned*, unsigned, unsigned, u64) writes 1000 elements.
        unsafe { set.launch(&stream, LaunchConfig::new(1, 64), (&mut buffer, 1000u32, 1u32, 300_000u64))? };
        event.record(&stream)?;
        let transfer = stream.download_async(&buffer, pinned).map_err(|failed| failed.error)?;
        let mut things: Vec<Option<Box<dyn std::any::Any>>> = vec![
            Some(Box::new(stream)),
            Some(Box::new(buffer)),
            Some(Box::new((module, set))),
            Some(Box::new(event)),
            Some(Box::new(transfer)),
        ];
        for index in order {
            things[index] = None;
        }
    }
    lab.device.synchronize()?;
    lab.device.trim()?;
    Ok(())
}

fn permutations(items: &mut [usize; 5], from: usize, all: &mut Vec<[usize; 5]>) {
    if from == items.len() {
        all.push(*items);
        return;
    }
    for index in from..items.len() {
        items.swap(from, index);
        permutations(items, from + 1, all);
        items.swap(from, index);
    }
}

fn nothing_is_reported() -> Outcome {
    use std::sync::{Arc, Mutex};
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = reports.clone();
    selvedge::error::set_deferred_error_hook(Some(Box::new(move |error| {
        seen.lock().expect("no panic holds it").push(error.to_string());
    })));
    drops_do_not_wait()?;
    memory_of_a_closed_stream_is_not_reused_early()?;
    dropped_at_the_end_of_a_thread()?;
    every_order()?;
    Device::new(0)?.trim()?;
    let reports = reports.lock().expect("no panic holds it");
    assert!(reports.is_empty(), "{reports:?}");
    Ok(())
}

/// Buffers that come and go over many streams; each is written by one stream and read by another before it goes.
fn a_busy_crowd() -> Outcome {
    let lab = Lab::new()?;
    let streams = (0..6).map(|_| lab.device.stream()).collect::<selvedge::Result<Vec<_>>>()?;
    let mut numbers = crate::support::Numbers(3);
    let mut results = Vec::new();
    for round in 0..400u32 {
        let (writer, reader) = (&streams[numbers.below(6)], &streams[numbers.below(6)]);
        let length = [1000, 4000, LENGTH][numbers.below(3)];
        let mut source = writer.uninitialized::<u32>(length)?;
        lab.set(writer, source.slice_mut(..)?, round, u64::from(numbers.next() % 50_000))?;
        let mut out = reader.uninitialized::<u32>(length)?;
        lab.copy(reader, source.slice(..)?, out.slice_mut(..)?, u64::from(numbers.next() % 50_000))?;
        drop(source);
        results.push((round, out));
        if results.len() > 20 {
            let (round, out) = results.swap_remove(numbers.below(20));
            assert_all(&streams[numbers.below(6)].download(&out)?, round, "a result");
        }
    }
    for (round, out) in results {
        assert_all(&streams[0].download(&out)?, round, "a result");
    }
    Ok(())
}
