//! Many threads with many streams, their own buffers and shared ones, and other contexts made current in between: every
//! result is right.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use selvedge::driver::{DeviceBuffer, Stream};

use crate::support::foreign_driver::ForeignDriver;
use crate::support::{Lab, Numbers, Outcome, assert_all, device_tests};

device_tests! { everything_at_once, one_stream_of_many_threads, handed_around }

const THREADS: usize = 8;
const STREAMS: usize = 4;
const LENGTH: usize = 4096;
const PERIOD: Duration = Duration::from_secs(3);

/// Values that all threads use.
struct Shared {
    lab: Lab,
    /// Read by all, written by none.
    table: DeviceBuffer<u32>,
    /// Counted up by all, one at a time.
    counters: Vec<Mutex<DeviceBuffer<u32>>>,
    counted: Vec<AtomicU64>,
    stop: AtomicBool,
}

fn everything_at_once() -> Outcome {
    let lab = Lab::new()?;
    let table: Vec<u32> = (0..LENGTH as u32).collect();
    let mut counters = Vec::new();
    for _ in 0..3 {
        counters.push(Mutex::new(lab.stream.zeros::<u32>(LENGTH)?));
    }
    let table = lab.stream.upload(&table)?;
    let counted = (0..3).map(|_| AtomicU64::new(0)).collect();
    let shared = Shared { lab, table, counters, counted, stop: AtomicBool::new(false) };
    let (bin, rubbish) = mpsc::channel::<DeviceBuffer<u32>>();
    let rounds = std::thread::scope(|scope| -> Result<u64, String> {
        // A thread that does nothing but drop what others used.
        scope.spawn(move || rubbish.into_iter().for_each(drop));
        let workers: Vec<_> = (0..THREADS)
            .map(|index| {
                let (shared, bin) = (&shared, bin.clone());
                scope.spawn(move || work(shared, index as u64, &bin))
            })
            .collect();
        drop(bin);
        let started = Instant::now();
        while started.elapsed() < PERIOD && workers.iter().all(|worker| !worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        shared.stop.store(true, Ordering::Relaxed);
        let mut rounds = 0;
        for worker in workers {
            rounds += worker.join().map_err(|_| "a thread panicked")??;
        }
        Ok(rounds)
    })?;
    assert!(rounds >= THREADS as u64, "{rounds} rounds");
    for (counter, counted) in shared.counters.iter().zip(&shared.counted) {
        let counter = counter.lock().map_err(|_| "a thread panicked")?;
        let counted = counted.load(Ordering::Relaxed) as u32;
        assert_all(&shared.lab.stream.download(&*counter)?, counted, "a shared counter");
    }
    shared.lab.device.synchronize()?;
    Ok(())
}

fn work(shared: &Shared, seed: u64, bin: &mpsc::Sender<DeviceBuffer<u32>>) -> Result<u64, String> {
    let driver = ForeignDriver::load()?;
    let foreign = seed.is_multiple_of(2).then(|| driver.create(0));
    let result = rounds(shared, seed, bin, |numbers| {
        // Another library's habits: its context, or none.
        if numbers.below(4) == 0 {
            let theirs = foreign.as_ref().filter(|_| numbers.below(2) == 0);
            driver.set_current(theirs.map_or(std::ptr::null_mut(), |foreign| foreign.context));
        }
    });
    result.map_err(|error| error.to_string())
}

fn rounds(
    shared: &Shared,
    seed: u64,
    bin: &mpsc::Sender<DeviceBuffer<u32>>,
    mut disturb: impl FnMut(&mut Numbers),
) -> selvedge::Result<u64> {
    let lab = &shared.lab;
    let mut numbers = Numbers(seed + 1);
    let mut streams: Vec<Stream> =
        (0..STREAMS).map(|_| lab.device.stream()).collect::<selvedge::Result<_>>()?;
    let mut round = 0u64;
    while !shared.stop.load(Ordering::Relaxed) {
        let value = numbers.next() >> 8;
        let mut own = streams[numbers.below(STREAMS)].uninitialized::<u32>(LENGTH)?;
        lab.set(
            &streams[numbers.below(STREAMS)],
            own.slice_mut(..)?,
            value,
            u64::from(numbers.next() % 100_000),
        )?;
        disturb(&mut numbers);
        let mut copy = streams[numbers.below(STREAMS)].zeros::<u32>(LENGTH)?;
        lab.copy(&streams[numbers.below(STREAMS)], own.slice(..)?, copy.slice_mut(..)?, 0)?;
        lab.increment(
            &streams[numbers.below(STREAMS)],
            own.slice_mut(..)?,
            u64::from(numbers.next() % 20_000),
        )?;
        disturb(&mut numbers);
        // The shared table, and a shared counter.
        let mut seen = streams[numbers.below(STREAMS)].uninitialized::<u32>(LENGTH)?;
        lab.copy(&streams[numbers.below(STREAMS)], shared.table.slice(..)?, seen.slice_mut(..)?, 0)?;
        let which = numbers.below(shared.counters.len());
        if let Ok(mut counter) = shared.counters[which].lock() {
            lab.increment(&streams[numbers.below(STREAMS)], counter.slice_mut(..)?, 0)?;
            shared.counted[which].fetch_add(1, Ordering::Relaxed);
        }
        disturb(&mut numbers);
        let reader = &streams[numbers.below(STREAMS)];
        assert_all(&reader.download(&copy)?, value, "a copy");
        assert_all(&reader.download(&own)?, value + 1, "an own buffer");
        let seen = reader.download(&seen)?;
        assert!(seen.iter().copied().eq(0..LENGTH as u32), "the shared table");
        if numbers.below(2) == 0 {
            let _ = bin.send(own);
        }
        if numbers.below(16) == 0 {
            // A stream with work and cached blocks goes, another comes.
            let which = numbers.below(STREAMS);
            lab.increment(&streams[which], copy.slice_mut(..)?, 50_000)?;
            streams[which] = lab.device.stream()?;
        }
        round += 1;
    }
    Ok(round)
}

fn one_stream_of_many_threads() -> Outcome {
    let lab = Lab::new()?;
    let counter = Mutex::new(lab.stream.zeros::<u32>(LENGTH)?);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| -> selvedge::Result<()> {
                    for _ in 0..200 {
                        let mut own = lab.stream.zeros::<u32>(LENGTH)?;
                        lab.increment(&lab.stream, own.slice_mut(..)?, 0)?;
                        let mut counter = counter.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        lab.increment(&lab.stream, counter.slice_mut(..)?, 0)?;
                        drop(counter);
                        assert_all(&lab.stream.download(&own)?, 1, "an own buffer");
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no thread panics"))
    })?;
    let counter = counter.into_inner().map_err(|_| "a thread panicked")?;
    assert_all(&lab.stream.download(&counter)?, 200 * THREADS as u32, "the counter");
    Ok(())
}

fn handed_around() -> Outcome {
    let lab = Lab::new()?;
    // A ring of threads; each adds one on a stream of its own and passes the buffer on without waiting.
    let hops = 50;
    let mut senders = Vec::new();
    let mut receivers = Vec::new();
    for _ in 0..THREADS {
        let (sender, receiver) = mpsc::channel::<(u32, DeviceBuffer<u32>)>();
        senders.push(sender);
        receivers.push(receiver);
    }
    let (finished, results) = mpsc::channel();
    for sender in &senders {
        let _ = sender.send((0, lab.stream.zeros::<u32>(LENGTH)?));
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(index, receiver)| {
                let (lab, next, finished) = (&lab, senders[(index + 1) % THREADS].clone(), finished.clone());
                scope.spawn(move || -> selvedge::Result<()> {
                    let stream = lab.device.stream()?;
                    for _ in 0..hops {
                        let Ok((hop, mut buffer)) = receiver.recv_timeout(Duration::from_secs(20)) else {
                            break;
                        };
                        lab.increment(&stream, buffer.slice_mut(..)?, 20_000)?;
                        let sent = if hop + 1 == hops {
                            finished.send(buffer).is_ok()
                        } else {
                            next.send((hop + 1, buffer)).is_ok()
                        };
                        debug_assert!(sent);
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no thread panics"))
    })?;
    drop((senders, finished));
    let results: Vec<DeviceBuffer<u32>> = results.into_iter().collect();
    assert_eq!(results.len(), THREADS);
    for result in results {
        assert_all(&lab.stream.download(&result)?, hops, "a buffer that went around");
    }
    Ok(())
}
