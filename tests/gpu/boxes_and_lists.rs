//! Copies of boxes and of lists move exactly what they name, behind the work that they come after.

use selvedge::Error;
use selvedge::driver::{Copy3d, Device, DeviceBuffer};

use crate::support::{
    Lab, Need, Numbers, Outcome, SLOW, assert_all, assert_error, assert_open, device_tests,
};

device_tests! {
    boxes_are_copied_with_their_steps, boxes_go_to_and_from_the_host, boxes_that_leave_a_side_are_errors,
    boxes_are_asynchronous_on_the_device, lists_of_any_lengths, lists_wait_for_their_sources, lists_are_one_operation,
    long_lists, lists_that_are_wrong_copy_nothing, lists_with_another_device => needs(Need::TwoDevices),
}

const LENGTH: usize = 6000;

/// Copies a box by the definition.
fn by_elements(source: &[u32], destination: &mut [u32], shape: Copy3d) {
    for z in 0..shape.depth {
        for y in 0..shape.height {
            let from = (z * shape.source_rows + y) * shape.source_pitch;
            let to = (z * shape.destination_rows + y) * shape.destination_pitch;
            destination[to..to + shape.width].copy_from_slice(&source[from..from + shape.width]);
        }
    }
}

fn shapes() -> Vec<Copy3d> {
    let packed = Copy3d::packed;
    let wide = |shape: Copy3d, pitch, rows| Copy3d { source_pitch: pitch, source_rows: rows, ..shape };
    vec![
        packed(10, 20, 30),
        wide(packed(7, 5, 3), 40, 11),
        Copy3d { destination_pitch: 16, destination_rows: 9, ..wide(packed(7, 5, 3), 7, 5) },
        Copy3d { destination_pitch: 33, destination_rows: 5, ..wide(packed(32, 1, 30), 32, 6) },
        wide(packed(1, 40, 12), 11, 43),
        Copy3d { destination_pitch: usize::MAX, destination_rows: usize::MAX, ..packed(5999, 1, 1) },
        Copy3d { source_rows: usize::MAX, ..wide(packed(17, 50, 1), 100, 50) },
        packed(0, 4, 5),
        packed(4, 0, 5),
        packed(4, 5, 0),
    ]
}

fn numbered() -> Vec<u32> {
    (0..LENGTH as u32).collect()
}

fn boxes_are_copied_with_their_steps() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let source = numbered();
    let from = stream.upload(&source)?;
    for shape in shapes() {
        let mut to = stream.upload(&[77_777u32; LENGTH])?;
        stream.copy_3d(&from, &mut to, shape)?;
        let mut wanted = vec![77_777u32; LENGTH];
        by_elements(&source, &mut wanted, shape);
        assert_eq!(stream.download(&to)?, wanted, "{shape:?}");
    }
    Ok(())
}

fn boxes_go_to_and_from_the_host() -> Outcome {
    let lab = Lab::new()?;
    let stream = &lab.stream;
    let source = numbered();
    for shape in shapes() {
        let mut wanted = vec![77_777u32; LENGTH];
        by_elements(&source, &mut wanted, shape);
        let mut to = stream.upload(&[77_777u32; LENGTH])?;
        let mut changing = source.clone();
        stream.copy_3d_from_host(&changing, &mut to, shape)?;
        changing.fill(0);
        assert_eq!(stream.download(&to)?, wanted, "up: {shape:?}");
        let mut from = stream.zeros::<u32>(LENGTH)?;
        stream.copy_from_host(&source, &mut from)?;
        lab.delay(stream, SLOW / 10)?;
        let mut host = vec![77_777u32; LENGTH];
        stream.copy_3d_to_host(&from, &mut host, shape)?;
        assert_eq!(host, wanted, "down: {shape:?}");
    }
    Ok(())
}

fn boxes_that_leave_a_side_are_errors() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let (from, mut to) = (stream.upload(&[1u32; 60])?, stream.upload(&[2u32; 60])?);
    let fits = Copy3d::packed(3, 4, 5);
    for shape in [
        Copy3d { depth: 6, ..fits },
        Copy3d { source_pitch: 2, ..fits },
        Copy3d { destination_rows: 3, ..fits },
        Copy3d { destination_rows: 5, ..fits },
        Copy3d { source_pitch: usize::MAX, ..fits },
        Copy3d { source_rows: usize::MAX, ..fits },
    ] {
        assert!(stream.copy_3d(&from, &mut to, shape).is_err(), "{shape:?}");
        assert!(stream.copy_3d_from_host(&[3; 60], &mut to, shape).is_err(), "{shape:?}");
        assert!(stream.copy_3d_to_host(&from, &mut [0; 60], shape).is_err(), "{shape:?}");
    }
    assert_all(&stream.download(&to)?, 2, "the destination");
    stream.copy_3d(&from, &mut to, fits)?;
    assert_all(&stream.download(&to)?, 1, "the destination");
    Ok(())
}

fn boxes_are_asynchronous_on_the_device() -> Outcome {
    let lab = Lab::new()?;
    let mut from = lab.stream.zeros::<u32>(60)?;
    let mut to = lab.stream.zeros::<u32>(60)?;
    lab.stream.copy_3d(&from, &mut to, Copy3d::packed(3, 4, 5))?;
    lab.stream.synchronize()?;
    lab.set(&lab.stream, from.slice_mut(..)?, 5, SLOW)?;
    lab.stream.copy_3d(&from, &mut to, Copy3d::packed(3, 4, 5))?;
    assert_open(!lab.stream.is_idle()?, "after the copy");
    assert_all(&lab.device.stream()?.download(&to)?, 5, "the copy");
    Ok(())
}

fn lists_of_any_lengths() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let source = numbered();
    let from = stream.upload(&source)?;
    let mut to = stream.upload(&[77_777u32; LENGTH])?;
    let mut wanted = vec![77_777u32; LENGTH];
    let (mut pairs, mut rest, mut at) = (Vec::new(), to.slice_mut(..)?, 0);
    for length in 0..100 {
        let (part, more) = rest.split_at_mut(length)?;
        let (_gap, more) = more.split_at_mut(1)?;
        let start = 5000 - 50 * length;
        pairs.push((from.slice(start..start + length)?, part));
        wanted[at..at + length].copy_from_slice(&source[start..start + length]);
        (rest, at) = (more, at + length + 1);
    }
    stream.copy_batch(&mut pairs)?;
    drop(pairs);
    assert_eq!(stream.download(&to)?, wanted);
    Ok(())
}

fn lists_wait_for_their_sources() -> Outcome {
    let lab = Lab::new()?;
    let (second, third) = (lab.device.stream()?, lab.device.stream()?);
    let mut sources = [lab.stream.zeros::<u32>(100)?, second.zeros::<u32>(100)?];
    let mut copies = [third.zeros::<u32>(100)?, third.zeros::<u32>(100)?];
    let copy = |sources: &[DeviceBuffer<u32>; 2], copies: &mut [DeviceBuffer<u32>; 2]| {
        let [one, two] = copies;
        let mut pairs =
            [(sources[0].slice(..)?, one.slice_mut(..)?), (sources[1].slice(..)?, two.slice_mut(..)?)];
        third.copy_batch(&mut pairs)
    };
    copy(&sources, &mut copies)?;
    third.synchronize()?;
    lab.set(&lab.stream, sources[0].slice_mut(..)?, 1, SLOW)?;
    lab.set(&second, sources[1].slice_mut(..)?, 2, SLOW / 2)?;
    copy(&sources, &mut copies)?;
    assert_open(!third.is_idle()?, "after the list");
    // Whoever writes the sources next waits for the list, and whoever reads the copies too.
    lab.stream.fill(&mut sources[0], 9)?;
    assert_all(&second.download(&copies[0])?, 1, "the first");
    assert_all(&lab.stream.download(&copies[1])?, 2, "the second");
    Ok(())
}

fn lists_are_one_operation() -> Outcome {
    let lab = Lab::new()?;
    let mut from = lab.stream.upload(&[1u32; 64])?;
    let mut to = lab.stream.zeros::<u32>(64)?;
    for value in 2..50 {
        lab.set(&lab.stream, from.slice_mut(..)?, value, 0)?;
        let (left, right) = to.split_at_mut(40)?;
        lab.stream.copy_batch(&mut [(from.slice(..40)?, left), (from.slice(40..)?, right)])?;
        lab.set(&lab.stream, from.slice_mut(..)?, 0, 0)?;
        assert_all(&lab.stream.download(&to)?, value, "the list");
    }
    Ok(())
}

fn long_lists() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let mut numbers = Numbers(7);
    let source: Vec<u8> = (0..1 << 20).map(|_| numbers.next() as u8).collect();
    let from = stream.upload(&source)?;
    let mut to = stream.zeros::<u8>(source.len())?;
    let (mut pairs, mut rest, mut at) = (Vec::new(), to.slice_mut(..)?, 0);
    while at < source.len() {
        let length = (1 + numbers.below(600)).min(source.len() - at);
        let (part, more) = rest.split_at_mut(length)?;
        pairs.push((from.slice(at..at + length)?, part));
        (rest, at) = (more, at + length);
    }
    assert!(pairs.len() > 3000);
    stream.copy_batch(&mut pairs)?;
    drop(pairs);
    assert!(stream.download(&to)? == source, "a list of thousands of copies");
    Ok(())
}

fn lists_that_are_wrong_copy_nothing() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let (from, mut to) = (stream.upload(&[1u32; 100])?, stream.upload(&[2u32; 100])?);
    let (left, right) = to.split_at_mut(50)?;
    let mut pairs = [(from.slice(..50)?, left), (from.slice(..49)?, right)];
    assert_error!(stream.copy_batch(&mut pairs), Error::LengthMismatch { wanted: 50, found: 49, .. });
    stream.copy_batch(&mut pairs[..0])?;
    assert_all(&stream.download(&to)?, 2, "the destination");
    Ok(())
}

fn lists_with_another_device() -> Outcome {
    let (here, there) = (Device::new(0)?.stream()?, Device::new(1)?.stream()?);
    let from = here.upload(&[1u32; 100])?;
    let (mut near, mut other) = (here.zeros::<u32>(60)?, here.zeros::<u32>(20)?);
    let mut far = there.zeros::<u32>(40)?;
    here.copy_batch(&mut [
        (from.slice(..60)?, near.slice_mut(..)?),
        (from.slice(60..)?, far.slice_mut(..)?),
        (from.slice(..20)?, other.slice_mut(..)?),
    ])?;
    assert_all(&there.download(&far)?, 1, "the other device's");
    assert_all(&here.download(&near)?, 1, "the first");
    assert_all(&here.download(&other)?, 1, "the last");
    Ok(())
}
