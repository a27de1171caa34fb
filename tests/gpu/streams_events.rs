//! Streams run in order and apart from each other; events mark places in them, tell times, and can be re-used.

use std::time::Instant;

use selvedge::Error;
use selvedge::driver::Device;

use crate::support::{Lab, Need, Outcome, SLOW, assert_all, assert_error, assert_open, device_tests};

device_tests! {
    ids_are_never_reused, clones_are_one_queue, a_stream_knows_when_it_is_idle, priorities_are_brought_into_range,
    work_of_one_stream_is_in_order, an_event_marks_a_place, an_unrecorded_event_is_complete,
    events_time_the_device, events_without_times_say_so, a_waiting_stream_keeps_its_mark_when_the_event_is_reused,
    recording_again_moves_the_mark, events_stay_on_their_device => needs(Need::TwoDevices), streams_run_side_by_side => needs(Need::FreeRunning),
}

fn ids_are_never_reused() -> Outcome {
    let device = Device::new(0)?;
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        assert!(seen.insert(device.stream()?.id()));
    }
    Ok(())
}

fn clones_are_one_queue() -> Outcome {
    let lab = Lab::new()?;
    let clone = lab.stream.clone();
    assert_eq!(clone, lab.stream);
    assert_eq!((clone.id(), clone.as_raw()), (lab.stream.id(), lab.stream.as_raw()));
    assert_ne!(lab.device.stream()?, lab.stream);
    let mut values = lab.stream.zeros::<u32>(1000)?;
    lab.set(&lab.stream, values.slice_mut(..)?, 1, SLOW / 2)?;
    lab.increment(&clone, values.slice_mut(..)?, 0)?;
    drop(lab.stream);
    assert_all(&clone.download(&values)?, 2, "after the first handle is gone");
    Ok(())
}

fn a_stream_knows_when_it_is_idle() -> Outcome {
    let lab = Lab::new()?;
    let stream = lab.device.stream()?;
    assert!(stream.is_idle()?, "a new one");
    lab.delay(&stream, SLOW)?;
    assert_open(!stream.is_idle()?, "is_idle");
    stream.synchronize()?;
    assert!(stream.is_idle()?);
    Ok(())
}

fn priorities_are_brought_into_range() -> Outcome {
    let device = Device::new(0)?;
    let (least, greatest) = device.priority_range()?;
    assert!(greatest <= least, "lower numbers are more urgent: {least} {greatest}");
    assert_eq!(device.stream_with_priority(i32::MIN)?.priority(), greatest);
    assert_eq!(device.stream_with_priority(i32::MAX)?.priority(), least);
    assert_eq!(device.stream()?.priority(), 0);
    Ok(())
}

fn work_of_one_stream_is_in_order() -> Outcome {
    let lab = Lab::new()?;
    let append = lab.kernel("append")?;
    let mut log = lab.stream.zeros::<u32>(10_000)?;
    let mut length = lab.stream.zeros::<u32>(1)?;
    for value in 0..10_000u32 {
        let config = selvedge::driver::LaunchConfig::new(1, 1);
        // SAFETY: append(unsigned*, unsigned*, unsigned) writes one element behind the others.
        unsafe { append.launch(&lab.stream, config, (&mut log, &mut length, value))? };
    }
    assert_eq!(lab.stream.download(&length)?, [10_000]);
    let log = lab.stream.download(&log)?;
    assert!(log.iter().copied().eq(0..10_000), "out of order");
    Ok(())
}

fn an_event_marks_a_place() -> Outcome {
    let lab = Lab::new()?;
    let (first, second) = (lab.device.stream()?, lab.device.stream()?);
    let mut event = lab.device.event()?;
    lab.delay(&first, SLOW)?;
    event.record(&first)?;
    assert_open(!event.is_complete()?, "is_complete");
    second.wait(&event)?;
    assert_open(!second.is_idle()?, "a stream that waits");
    event.synchronize()?;
    assert!(event.is_complete()?);
    second.synchronize()?;
    // Behind the mark nothing is waited for.
    lab.delay(&first, SLOW)?;
    assert!(event.is_complete()?);
    assert_open(!first.is_idle()?, "work behind the mark");
    first.synchronize()?;
    Ok(())
}

fn an_unrecorded_event_is_complete() -> Outcome {
    let device = Device::new(0)?;
    let event = device.event()?;
    assert!(event.is_complete()?);
    event.synchronize()?;
    let stream = device.stream()?;
    stream.wait(&event)?;
    stream.synchronize()?;
    Ok(())
}

fn events_time_the_device() -> Outcome {
    let lab = Lab::new()?;
    let (mut start, mut end) = (lab.device.timing_event()?, lab.device.timing_event()?);
    start.record(&lab.stream)?;
    lab.delay(&lab.stream, SLOW)?;
    end.record(&lab.stream)?;
    end.synchronize()?;
    let milliseconds = start.elapsed_ms(&end)?;
    let least = SLOW as f32 / 1e6 * 0.9;
    assert!(milliseconds >= least && milliseconds < 10_000.0, "{milliseconds} ms");
    Ok(())
}

fn events_without_times_say_so() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let (mut plain, mut timing, unrecorded) =
        (device.event()?, device.timing_event()?, device.timing_event()?);
    plain.record(&stream)?;
    timing.record(&stream)?;
    stream.synchronize()?;
    assert_error!(plain.elapsed_ms(&timing), Error::InvalidArgument { found, .. } if found.contains("without timing"));
    assert_error!(timing.elapsed_ms(&plain), Error::InvalidArgument { .. });
    assert_error!(timing.elapsed_ms(&unrecorded), Error::InvalidArgument { found, .. } if found.contains("never recorded"));
    Ok(())
}

fn a_waiting_stream_keeps_its_mark_when_the_event_is_reused() -> Outcome {
    let lab = Lab::new()?;
    let (slow, waiting, idle) = (lab.device.stream()?, lab.device.stream()?, lab.device.stream()?);
    let mut values = slow.zeros::<u32>(1 << 14)?;
    slow.synchronize()?;
    let address = values.address();
    lab.set(&slow, values.slice_mut(..)?, 9, SLOW)?;
    let mut event = lab.device.event()?;
    event.record(&slow)?;
    waiting.wait(&event)?;
    // Back to the pool and out again, for a mark that is passed at once.
    drop(event);
    let mut again = lab.device.event()?;
    again.record(&idle)?;
    again.synchronize()?;
    assert_open(!slow.is_idle()?, "re-use");
    // Raw addresses, so that nothing but the event orders this.
    let mut out = waiting.zeros::<u32>(1 << 14)?;
    let copy = lab.kernel("slow_copy")?;
    let config = selvedge::driver::LaunchConfig::new(1, 256);
    let source = selvedge::driver::RawAddress(address);
    // SAFETY: slow_copy(const unsigned*, unsigned*, unsigned, u64); the source is alive, and the event orders it.
    unsafe { copy.launch(&waiting, config, (source, &mut out, 1u32 << 14, 0u64))? };
    assert_all(&waiting.download(&out)?, 9, "the first mark");
    drop(values);
    Ok(())
}

fn recording_again_moves_the_mark() -> Outcome {
    let lab = Lab::new()?;
    let (slow, idle) = (lab.device.stream()?, lab.device.stream()?);
    let mut event = lab.device.event()?;
    event.record(&idle)?;
    event.synchronize()?;
    lab.delay(&slow, SLOW)?;
    event.record(&slow)?;
    assert_open(!event.is_complete()?, "the second mark");
    event.synchronize()?;
    assert!(slow.is_idle()?);
    Ok(())
}

fn events_stay_on_their_device() -> Outcome {
    let (first, second) = (Device::new(0)?, Device::new(1)?);
    let mut event = first.event()?;
    assert_error!(event.record(&second.stream()?), Error::DeviceMismatch { .. });
    // Waiting across devices is what events are for.
    let lab = Lab::on(first)?;
    let waiting = second.stream()?;
    lab.delay(&lab.stream, SLOW)?;
    event.record(&lab.stream)?;
    waiting.wait(&event)?;
    assert_open(!waiting.is_idle()?, "a stream of the other device");
    waiting.synchronize()?;
    assert!(event.is_complete()?);
    Ok(())
}

fn streams_run_side_by_side() -> Outcome {
    let lab = Lab::new()?;
    let streams = [lab.device.stream()?, lab.device.stream()?, lab.device.stream()?, lab.device.stream()?];
    // Hardware queues are few, and two streams may share one: the best of some tries counts.
    let mut best = f64::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        for stream in &streams {
            lab.delay(stream, SLOW)?;
        }
        lab.device.synchronize()?;
        best = best.min(started.elapsed().as_nanos() as f64 / SLOW as f64);
    }
    assert!(best < 3.0, "four streams took {best:.1} times as long as one");
    Ok(())
}
