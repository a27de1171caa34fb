//! Copies move exactly what they name, in one dimension and two; those from and to plain slices are done when they return.

use selvedge::Error;
use selvedge::driver::{Copy2d, Device, Stream};

use crate::support::{Lab, Numbers, Outcome, SLOW, assert_all, assert_error, assert_open, device_tests};

device_tests! {
    parts_are_copied_to_parts, a_download_waits_for_the_kernel, an_upload_is_done_with_its_slice, rows_are_copied_with_their_pitch,
    rows_go_to_and_from_the_host, lengths_that_differ_are_errors, shapes_that_leave_a_side_are_errors,
    copies_are_asynchronous_on_the_device, large_copies_bring_every_byte, large_copies_of_odd_elements,
    a_large_download_waits_for_the_kernel, large_copies_on_several_threads_at_once, large_page_locked_slices_go_as_they_are,
}

fn parts_are_copied_to_parts() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let source: Vec<u16> = (0..1000).collect();
    let from = stream.upload(&source)?;
    for (start, end, at) in
        [(0usize, 1000usize, 0usize), (1, 8, 991), (999, 1000, 0), (3, 3, 5), (17, 503, 101)]
    {
        let mut to = stream.upload(&[60_000u16; 1000])?;
        stream.copy(&from.slice(start..end)?, &mut to.slice_mut(at..at + end - start)?)?;
        let result = stream.download(&to)?;
        let mut wanted = vec![60_000u16; 1000];
        wanted[at..at + end - start].copy_from_slice(&source[start..end]);
        assert_eq!(result, wanted, "{start}..{end} to {at}");
        let mut host = vec![0u16; end - start];
        stream.copy_to_host(&from.slice(start..end)?, &mut host)?;
        assert_eq!(host, source[start..end]);
        stream.copy_from_host(&host, &mut to.slice_mut(at..at + end - start)?)?;
        assert_eq!(stream.download(&to)?, wanted);
    }
    Ok(())
}

fn a_download_waits_for_the_kernel() -> Outcome {
    let lab = Lab::new()?;
    let other = lab.device.stream()?;
    let mut values = lab.stream.zeros::<u32>(5000)?;
    for (stream, value) in [(&lab.stream, 1), (&other, 2)] {
        lab.set(&lab.stream, values.slice_mut(..)?, value, SLOW)?;
        assert_open(!lab.stream.is_idle()?, "before the download");
        assert_all(&stream.download(&values)?, value, "the download");
    }
    Ok(())
}

fn an_upload_is_done_with_its_slice() -> Outcome {
    let lab = Lab::new()?;
    for length in [1usize, 1000, 16_000, 64 << 10, 4 << 20, 12 << 20] {
        let mut host = vec![1u32; length];
        let mut buffer = lab.stream.zeros::<u32>(length)?;
        lab.delay(&lab.stream, SLOW / 4)?;
        lab.stream.copy_from_host(&host, &mut buffer)?;
        host.fill(2);
        assert_all(&lab.stream.download(&buffer)?, 1, "written after the copy returned");
    }
    Ok(())
}

/// The source's rows at their places in the destination, by the definition.
fn by_rows(source: &[u32], destination: &mut [u32], shape: Copy2d) {
    for row in 0..shape.height {
        let (from, to) = (row * shape.source_pitch, row * shape.destination_pitch);
        destination[to..to + shape.width].copy_from_slice(&source[from..from + shape.width]);
    }
}

const SHAPES: [Copy2d; 6] = [
    Copy2d { width: 10, height: 5, source_pitch: 10, destination_pitch: 10 },
    Copy2d { width: 7, height: 30, source_pitch: 13, destination_pitch: 9 },
    Copy2d { width: 1, height: 40, source_pitch: 25, destination_pitch: 1 },
    Copy2d { width: 500, height: 1, source_pitch: 500, destination_pitch: 900 },
    Copy2d { width: 0, height: 4, source_pitch: 1, destination_pitch: 1 },
    Copy2d { width: 5, height: 0, source_pitch: 5, destination_pitch: 5 },
];

fn rows_are_copied_with_their_pitch() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let source: Vec<u32> = (0..1000).collect();
    let from = stream.upload(&source)?;
    for shape in SHAPES {
        let mut to = stream.upload(&[77_777u32; 1000])?;
        stream.copy_2d(&from, &mut to, shape)?;
        let mut wanted = vec![77_777u32; 1000];
        by_rows(&source, &mut wanted, shape);
        assert_eq!(stream.download(&to)?, wanted, "{shape:?}");
    }
    Ok(())
}

fn rows_go_to_and_from_the_host() -> Outcome {
    let lab = Lab::new()?;
    let stream = &lab.stream;
    let source: Vec<u32> = (0..1000).collect();
    for shape in SHAPES {
        let mut wanted = vec![77_777u32; 1000];
        by_rows(&source, &mut wanted, shape);
        let mut to = stream.upload(&[77_777u32; 1000])?;
        stream.copy_2d_from_host(&source, &mut to, shape)?;
        assert_eq!(stream.download(&to)?, wanted, "up: {shape:?}");
        let mut from = stream.zeros::<u32>(1000)?;
        stream.copy_from_host(&source, &mut from)?;
        lab.delay(stream, SLOW / 10)?;
        let mut host = vec![77_777u32; 1000];
        stream.copy_2d_to_host(&from, &mut host, shape)?;
        assert_eq!(host, wanted, "down: {shape:?}");
    }
    Ok(())
}

fn lengths_that_differ_are_errors() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let (from, mut to) = (stream.upload(&[1u32; 10])?, stream.upload(&[2u32; 11])?);
    assert_error!(stream.copy(&from, &mut to), Error::LengthMismatch { wanted: 11, found: 10, .. });
    assert_error!(
        stream.copy_from_host(&[3; 12], &mut to),
        Error::LengthMismatch { wanted: 11, found: 12, .. }
    );
    let mut host = [4u32; 9];
    assert_error!(stream.copy_to_host(&from, &mut host), Error::LengthMismatch { wanted: 10, found: 9, .. });
    assert_all(&host, 4, "the host side");
    assert_all(&stream.download(&to)?, 2, "the device side");
    Ok(())
}

fn shapes_that_leave_a_side_are_errors() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let (from, mut to) = (stream.upload(&[1u32; 100])?, stream.upload(&[2u32; 100])?);
    let fits = Copy2d { width: 10, height: 10, source_pitch: 10, destination_pitch: 10 };
    for shape in [
        Copy2d { height: 11, ..fits },
        Copy2d { source_pitch: 9, ..fits },
        Copy2d { destination_pitch: 11, ..fits },
        Copy2d { source_pitch: usize::MAX, ..fits },
    ] {
        assert!(stream.copy_2d(&from, &mut to, shape).is_err(), "{shape:?}");
        assert!(stream.copy_2d_from_host(&[3; 100], &mut to, shape).is_err(), "{shape:?}");
        assert!(stream.copy_2d_to_host(&from, &mut [0; 100], shape).is_err(), "{shape:?}");
    }
    assert_all(&stream.download(&to)?, 2, "the destination");
    stream.copy_2d(&from, &mut to, fits)?;
    assert_all(&stream.download(&to)?, 1, "the destination");
    Ok(())
}

fn copies_are_asynchronous_on_the_device() -> Outcome {
    let lab = Lab::new()?;
    let from = lab.stream.upload(&[5u32; 1000])?;
    let mut to = lab.stream.zeros::<u32>(1000)?;
    let shape = Copy2d { width: 100, height: 10, source_pitch: 100, destination_pitch: 100 };
    lab.stream.copy_2d(&from, &mut to, shape)?;
    lab.stream.fill(&mut to, 6)?;
    lab.stream.synchronize()?;
    lab.delay(&lab.stream, SLOW)?;
    lab.stream.fill(&mut to, 6)?;
    lab.stream.copy(&from, &mut to)?;
    lab.stream.copy_2d(&from, &mut to, shape)?;
    assert_open(!lab.stream.is_idle()?, "after three operations");
    assert_all(&lab.stream.download(&to)?, 5, "the copy");
    Ok(())
}

/// From so many bytes on, copies of plain memory are cut into chunks that several threads move.
const LARGE: usize = 16 << 20;

/// Bytes that repeat after a length to which no chunk is a multiple, so that a chunk at another's place is seen.
fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let period: Vec<u8> = (0..1_000_003).map(|_| numbers.next() as u8).collect();
    let mut bytes = period.repeat(length.div_ceil(period.len()));
    bytes.truncate(length);
    bytes
}

/// Copies to the device and back by every function. Small copies, which are not split, must agree with the large ones.
fn there_and_back(stream: &Stream, length: usize, seed: u64) -> Outcome {
    let wanted = bytes(length, seed);
    let mut buffer = stream.upload(&wanted)?;
    let same = |what: &str, found: &[u8], wanted: &[u8]| {
        if found == wanted {
            return Ok(());
        }
        let at = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
        Err(format!("{what}: {} of {} bytes, other ones at {at:?}", found.len(), wanted.len()))
    };
    for at in (0..length - 100).step_by(1 << 20).chain([length - 100]) {
        let part = stream.download(&buffer.slice(at..at + 100)?)?;
        same("a part of an upload", &part, &wanted[at..at + 100])?;
    }
    same("download", &stream.download(&buffer)?, &wanted)?;

    let wanted = bytes(length, seed + 1);
    stream.copy_from_host(&wanted, &mut buffer)?;
    let mut found = vec![0xA5; length];
    stream.copy_to_host(&buffer, &mut found)?;
    same("copy_to_host", &found, &wanted)?;
    // Odd addresses on both sides, and nothing beside them.
    let part = 4099..length - 1;
    found.fill(0xA5);
    stream.copy_to_host(&buffer.slice(part.clone())?, &mut found[1..1 + part.len()])?;
    same("copy_to_host of a part", &found[1..1 + part.len()], &wanted[part.clone()])?;
    assert!(found[0] == 0xA5 && found[1 + part.len()..].iter().all(|&byte| byte == 0xA5), "bytes beside it");
    stream.copy_from_host(&wanted[..part.len()], &mut buffer.slice_mut(part.clone())?)?;
    let found = stream.download(&buffer)?;
    same("before the part", &found[..part.start], &wanted[..part.start])?;
    same("the part", &found[part.clone()], &wanted[..part.len()])?;
    same("behind the part", &found[part.end..], &wanted[part.end..])?;
    Ok(())
}

fn large_copies_bring_every_byte() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    for (seed, length) in
        [LARGE - 1, LARGE, LARGE + 1, LARGE + (2 << 20) - 1, 2 * LARGE + 4099, 5 * LARGE + 12_345]
            .into_iter()
            .enumerate()
    {
        there_and_back(&stream, length, 10 * seed as u64)?;
    }
    Ok(())
}

fn large_copies_of_odd_elements() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let mut numbers = Numbers(5);
    let wanted: Vec<[u16; 3]> = (0..7_000_001).map(|_| [(); 3].map(|()| numbers.next() as u16)).collect();
    let mut buffer = stream.upload(&wanted)?;
    assert!(stream.download(&buffer)? == wanted, "elements of six bytes came back changed");
    assert!(stream.download(&buffer.slice(1..)?)? == wanted[1..], "all but the first");
    stream.copy_from_host(&wanted[1..], &mut buffer.slice_mut(..wanted.len() - 1)?)?;
    assert!(stream.download(&buffer.slice(..wanted.len() - 1)?)? == wanted[1..], "moved by one");
    Ok(())
}

fn a_large_download_waits_for_the_kernel() -> Outcome {
    let lab = Lab::new()?;
    let other = lab.device.stream()?;
    let mut values = lab.stream.zeros::<u32>(LARGE / 2)?;
    for (stream, value) in [(&lab.stream, 1), (&other, 2), (&lab.stream, 3)] {
        lab.set(&lab.stream, values.slice_mut(..)?, value, SLOW)?;
        assert_open(!lab.stream.is_idle()?, "before the download");
        assert_all(&stream.download(&values)?, value, "the download");
    }
    lab.set(&lab.stream, values.slice_mut(..)?, 4, SLOW)?;
    other.copy_from_host(&vec![5; LARGE / 2], &mut values)?;
    assert_all(&lab.stream.download(&values)?, 5, "the upload behind the kernel");
    Ok(())
}

fn large_copies_on_several_threads_at_once() -> Outcome {
    let device = Device::new(0)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|index| {
                scope.spawn(move || -> Result<(), String> {
                    let stream = device.stream().map_err(|error| error.to_string())?;
                    for round in 0..3 {
                        let length = LARGE + 1_000_001 * (index + round) as usize;
                        there_and_back(&stream, length, 100 * index + round)
                            .map_err(|failed| failed.message().unwrap_or("failed").to_owned())?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
    })?;
    Ok(())
}

fn large_page_locked_slices_go_as_they_are() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let wanted = bytes(LARGE + 5, 3);
    let mut pinned = device.pinned::<u8>(wanted.len())?;
    pinned.copy_from_slice(&wanted);
    let buffer = stream.upload(&pinned)?;
    pinned.fill(0);
    stream.copy_to_host(&buffer, &mut pinned)?;
    assert!(pinned[..] == wanted[..], "page-locked memory");
    let registered = device.register(wanted.clone())?;
    let buffer = stream.upload(&registered)?;
    drop(pinned);
    let vector = registered.into_vec()?;
    assert!(stream.download(&buffer)? == vector && vector == wanted, "a registered vector");
    Ok(())
}
