//! Copies move exactly what they name, in one dimension and two; those from and to plain slices are done when they return.

use selvedge::Error;
use selvedge::driver::{Copy2d, Device};

use crate::support::{Lab, Outcome, SLOW, assert_all, assert_error, assert_open, promises};

promises! {
    parts_are_copied_to_parts, a_download_waits_for_the_kernel, an_upload_is_done_with_its_slice, rows_are_copied_with_their_pitch,
    rows_go_to_and_from_the_host, lengths_that_differ_are_errors, shapes_that_leave_a_side_are_errors,
    copies_are_asynchronous_on_the_device,
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
    for length in [1usize, 1000, 16_000, 64 << 10, 4 << 20] {
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
