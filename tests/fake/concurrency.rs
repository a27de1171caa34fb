//! Threads that use one buffer, one device or one kernel at the same time, in the one order that would go wrong: a kernel's
//! argument that pauses while it is entered holds one thread between its entry and its driver call.

use std::ffi::c_void;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Barrier, Mutex};

use selvedge::Error;
use selvedge::driver::image::ArgumentKind;
use selvedge::driver::{
    Copy2d, Device, DeviceBuffer, KernelArgument, LaunchConfig, LaunchTarget, RawAddress, Stream,
    TensorElement, TensorMap, TensorMapLayout,
};

use super::children;
use super::kernels::PTX;
use super::support::Fake;
use super::variant::Variant;
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// An integer that says when it is entered and waits to be let go.
struct Pause(u64, Sender<()>, Mutex<Receiver<()>>);

// SAFETY: the pointer is to 8 bytes of the value, which names no memory.
unsafe impl KernelArgument for Pause {
    const KIND: ArgumentKind = ArgumentKind::Integer;
    const SIZE: usize = 8;

    fn enter(&self, _: LaunchTarget<'_>) -> selvedge::Result<()> {
        let _ = self.1.send(());
        if let Ok(receiver) = self.2.lock() {
            let _ = receiver.recv();
        }
        Ok(())
    }

    fn pointer(&self) -> *mut c_void {
        std::ptr::from_ref(&self.0).cast_mut().cast()
    }
}

/// Runs `paused` on a thread until its argument is entered, then `between`, then lets the thread go on.
fn in_between(paused: impl FnOnce(Pause) + Send, between: impl FnOnce() -> selvedge::Result<()>) -> Outcome {
    let ((entered, has_entered), (go, may_go)) = (channel(), channel());
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || paused(Pause(64, entered, Mutex::new(may_go))));
        has_entered.recv()?;
        let result = between();
        go.send(())?;
        thread.join().map_err(|_| "the paused thread panicked")?;
        Ok(result?)
    })
}

fn sound(fake: &Fake, what: &str) -> Outcome {
    let violations = fake.violations();
    if violations.is_empty() { Ok(()) } else { Err(format!("{what}: {}", violations.join("\n")).into()) }
}

/// Drops a buffer and takes its memory for something else.
fn reuse(fake: &Fake, home: &Stream, buffer: DeviceBuffer<u8>) -> Outcome {
    let length = buffer.len();
    drop(buffer);
    let mut other = home.uninitialized::<u8>(length)?;
    home.fill(&mut other, 9)?;
    home.synchronize()?;
    sound(fake, "after the memory was given out again")
}

/// Two threads write the halves of a buffer; the first has entered but not launched when the second comes.
fn halves(fake: &Fake, second_reads: bool) -> Outcome {
    fake.set_strict(true);
    let device = Device::new(0)?;
    let (home, first, second) = (device.stream()?, device.stream()?, device.stream()?);
    let make = device.load(PTX.as_bytes())?.function("make")?;
    let mut buffer = home.zeros::<u8>(128)?;
    let (mut a, mut b) = buffer.split_at_mut(64)?;
    let launched = |pause| {
        // SAFETY: the fake driver's kernel writes the 64 bytes that its arguments name.
        let result = unsafe { make.launch(&first, LaunchConfig::new(1, 32), (&mut a, pause, 1u32)) };
        assert!(result.is_ok(), "{result:?}");
    };
    in_between(launched, || match second_reads {
        true => second.download(&b).map(drop),
        false => second.fill(&mut b, 2u8),
    })?;
    let read = home.download(&buffer)?;
    sound(fake, "after the whole was read")?;
    let mut wanted = vec![0u8; 64];
    let scalars = (64u64.to_ne_bytes(), 1u32.to_ne_bytes());
    use super::support::Parameter;
    fake.kernel_effect(
        "make",
        &mut [Parameter::Write(&mut wanted), Parameter::Scalar(&scalars.0), Parameter::Scalar(&scalars.1)],
    );
    if read[..64] != wanted || read[64] != if second_reads { 0 } else { 2 } {
        return Err("the whole is not what the two threads wrote".into());
    }
    reuse(fake, &home, buffer)
}

/// The same in safe code, by chance and often.
fn halves_by_chance(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let (home, first, second) = (device.stream()?, device.stream()?, device.stream()?);
    for round in 0..3000 {
        let mut buffer = home.zeros::<u8>(128)?;
        let (mut a, mut b) = buffer.split_at_mut(64)?;
        let barrier = Barrier::new(2);
        let filled = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                barrier.wait();
                first.fill(&mut a, 1u8)
            });
            barrier.wait();
            second.fill(&mut b, 2u8).and(other.join().unwrap_or(Ok(())))
        });
        filled?;
        let read = home.download(&buffer)?;
        sound(fake, &format!("round {round}"))?;
        if (read[0], read[64]) != (1, 2) {
            return Err(format!("round {round}: {} {}", read[0], read[64]).into());
        }
    }
    Ok(())
}

/// Threads that share a stream each wait for their own transfers and for nothing less.
fn transfers_on_one_stream(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let work = |thread: usize| -> Result<(), String> {
        let run = || -> Result<bool, Error> {
            let mut buffer = stream.zeros::<u8>(64)?;
            for round in 0..4000 {
                let value = (round + 37 * thread) as u8 | 1;
                stream.fill(&mut buffer, value)?;
                let transfer = stream.download_async(&buffer, device.pinned::<u8>(64)?)?;
                // Something follows, so the transfer's end is an event.
                stream.fill(&mut buffer, 0)?;
                let found = transfer.wait()?;
                fake.host_read(&found);
                if found[..] != [value; 64] {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match run() {
            Ok(true) => Ok(()),
            other => Err(format!("thread {thread}: {other:?}")),
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Err("a panic".to_owned())))
    })?;
    sound(fake, "after transfers of many threads")
}

/// A map reads a buffer on one thread while it is written on another: no order, but no use after the memory is free.
fn tensor_map(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let device = Device::new(0)?;
    let (home, first) = (device.stream()?, device.stream()?);
    let boxes = device.load(PTX.as_bytes())?.function("boxes")?;
    let mut buffer = home.zeros::<u8>(64)?;
    let mut out = first.zeros::<u8>(64)?;
    let map = TensorMap::tiled(&buffer, &TensorMapLayout::contiguous(TensorElement::U8, &[64], &[64]))?;
    let launched = |pause| {
        // SAFETY: the fake driver's kernel touches the 64 bytes that its arguments name.
        let result = unsafe { boxes.launch(&first, LaunchConfig::new(1, 32), (&map, &mut out, pause)) };
        assert!(result.is_ok(), "{result:?}");
    };
    in_between(launched, || home.fill(&mut buffer, 2u8))?;
    let unordered = fake.violations().len();
    drop(map);
    let mut rest = fake.violations();
    drop(buffer);
    let mut other = home.uninitialized::<u8>(64)?;
    home.fill(&mut other, 9)?;
    home.synchronize()?;
    rest = fake.violations().split_off(rest.len().max(unordered));
    if rest.is_empty() { Ok(()) } else { Err(rest.join("\n").into()) }
}

/// Two threads that run out of memory: the second waits for the first one's trim instead of giving up.
fn memory_for_two(fake: &Fake) -> Outcome {
    fake.set_memory(64 << 20);
    let device = Device::new(0)?;
    for round in 0..200 {
        let stream = device.stream()?;
        let cached: Result<Vec<_>, _> = (0..60).map(|_| stream.uninitialized::<u8>(1 << 20)).collect();
        drop(cached?);
        let barrier = Barrier::new(2);
        let ask = || {
            let stream = device.stream()?;
            barrier.wait();
            stream.uninitialized::<u8>(20 << 20).map(drop)
        };
        let results = std::thread::scope(|scope| {
            let other = scope.spawn(ask);
            [ask(), other.join().unwrap_or(Ok(()))]
        });
        for result in results {
            result.map_err(|error| format!("round {round}: {error}"))?;
        }
        device.trim()?;
    }
    Ok(())
}

/// Two `Function`s of one kernel share the driver's limit of shared memory.
fn shared_memory(_: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let module = device.load(PTX.as_bytes())?;
    let (first, second) = (module.function("make")?, module.function("make")?);
    let mut buffer = stream.zeros::<u8>(64)?;
    for (function, kilobytes) in [(&first, 100), (&second, 64), (&first, 100)] {
        let config = LaunchConfig::new(1, 32).shared(kilobytes << 10);
        // SAFETY: the fake driver's kernel writes the 64 bytes that its arguments name.
        unsafe { function.launch(&stream, config, (&mut buffer, 64u64, 1u32))? };
    }
    Ok(())
}

/// An event that was never recorded is complete, whatever its earlier life left in the pool.
fn fresh_events(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let mut buffer = stream.zeros::<u8>(64)?;
    let mut event = device.event()?;
    stream.fill(&mut buffer, 1)?;
    event.record(&stream)?;
    drop(event);
    let fresh = device.event()?;
    stream.wait(&fresh)?;
    fresh.synchronize()?;
    if fresh.is_complete()? { Ok(()) } else { Err("an event without a record is not complete".into()) }
}

/// A buffer that a lost device used is still valid on another one.
fn lost_users(fake: &Fake) -> Outcome {
    let (device, other) = (Device::new(0)?, Device::new(1)?);
    let (near, far) = (device.stream()?, other.stream()?);
    let mut a = near.zeros::<u8>(64)?;
    let mut b = far.zeros::<u8>(64)?;
    far.copy(&a, &mut b)?;
    far.synchronize()?;
    drop(far.download_async(&b, device.pinned(64)?)?);
    drop(near.uninitialized::<u8>(600 << 10)?);
    fake.lose_context(1, 700);
    if other.synchronize().is_ok() || device.is_lost() || !other.is_lost() {
        return Err("the wrong device is lost".into());
    }
    near.fill(&mut a, 1)?;
    if near.download(&a)? != [1; 64] {
        return Err("the buffer does not hold what was written".into());
    }
    device.trim()?;
    if fake.live_on(0).blocks > 1 {
        return Err(format!("the trim freed nothing: {}", fake.describe_live()).into());
    }
    Ok(())
}

/// Graphs are launched into a stream while another thread makes it wait: the driver sees one of the two at a time.
fn launches_beside_waits(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let mut buffer = stream.zeros::<u8>(64)?;
    let (graph, ()) = stream.capture(|stream| stream.fill(&mut buffer, 1))?;
    let graph = graph.instantiate()?;
    let mut event = device.event()?;
    event.record(&other)?;
    let together = Barrier::new(2);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            together.wait();
            (0..3000).try_for_each(|_| stream.wait(&event))
        });
        together.wait();
        let launched = (0..3000).try_for_each(|_| graph.launch(&stream));
        waits.join().map_err(|_| "the waiting thread panicked")??;
        Ok::<_, Box<dyn std::error::Error>>(launched?)
    })?;
    sound(fake, "launches beside waits")
}

/// Pitches of one row, and elements without bytes.
fn odd_shapes(_: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let a = stream.upload(&[1u32, 2, 3, 4])?;
    let mut b = stream.zeros::<u32>(4)?;
    let row = Copy2d { width: 4, height: 1, source_pitch: usize::MAX, destination_pitch: 4 };
    stream.copy_2d(&a, &mut b, row)?;
    if stream.download(&b)? != [1, 2, 3, 4] {
        return Err("one row was not copied".into());
    }
    let mut nothing = stream.upload(&[[0u8; 0]; 5])?;
    stream.copy_from_host(&[[0u8; 0]; 5], &mut nothing)?;
    if stream.download(&nothing)?.len() != 5 {
        return Err("elements without bytes were lost".into());
    }
    let mut odd = stream.zeros::<[u8; 3]>(1000)?;
    stream.fill(&mut odd, [1, 2, 3])?;
    if stream.download(&odd)?.iter().any(|value| *value != [1, 2, 3]) {
        return Err("a fill of odd elements".into());
    }
    Ok(())
}

/// Work that another library gives to the stream is ordered like a launch.
fn raw_work(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let device = Device::new(0)?;
    let (first, second) = (device.stream()?, device.stream()?);
    let make = device.load(PTX.as_bytes())?.function("make")?;
    let mut buffer = first.zeros::<u8>(64)?;
    let address = RawAddress(buffer.address());
    // SAFETY: the kernel given to the stream writes the buffer that is named.
    unsafe {
        second.with_raw((&mut buffer,), |stream| {
            assert_eq!(stream, second.as_raw());
            make.launch(&second, LaunchConfig::new(1, 32), (address, 64u64, 1u32))
        })?;
    }
    first.download(&buffer)?;
    sound(fake, "after raw work")?;
    match first.copy_from_host(&[0; 3], &mut buffer) {
        Err(Error::LengthMismatch { .. }) => reuse(fake, &first, buffer),
        other => Err(format!("{other:?}").into()),
    }
}

/// Child: one of the tests.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    match arguments.first().map(String::as_str) {
        Some("halves_written") => halves(fake, false),
        Some("halves_read_and_written") => halves(fake, true),
        Some("halves_by_chance") => halves_by_chance(fake),
        Some("transfers_on_one_stream") => transfers_on_one_stream(fake),
        Some("a_tensor_map_beside_its_buffer") => tensor_map(fake),
        Some("memory_for_two") => memory_for_two(fake),
        Some("two_functions_of_one_kernel") => shared_memory(fake),
        Some("events_without_a_record") => fresh_events(fake),
        Some("users_that_were_lost") => lost_users(fake),
        Some("launches_beside_waits") => launches_beside_waits(fake),
        Some("odd_shapes") => odd_shapes(fake),
        Some("work_of_another_library") => raw_work(fake),
        other => Err(format!("no test {other:?}").into()),
    }
}

pub fn tests() -> Vec<Test> {
    let names = [
        "halves_written",
        "halves_read_and_written",
        "halves_by_chance",
        "transfers_on_one_stream",
        "a_tensor_map_beside_its_buffer",
        "memory_for_two",
        "two_functions_of_one_kernel",
        "events_without_a_record",
        "users_that_were_lost",
        "launches_beside_waits",
        "odd_shapes",
        "work_of_another_library",
    ];
    let test = |name: &'static str| {
        Test::new(format!("concurrency::{name}"), move || {
            children::must_succeed(&Variant::new(12040), "concurrency", &[name.to_owned()], &[]).map(drop)
        })
    };
    names.into_iter().map(test).collect()
}
