//! Buffers of every element type hold what was put there; parts of them are exactly those parts; sizes that cannot be are
//! errors.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::Error;
use selvedge::driver::Device;

use crate::support::{Lab, Numbers, Outcome, assert_all, assert_error, device_tests};

device_tests! {
    every_type_comes_back, zeros_are_zero, empty_buffers_work, every_fill_size, fills_stay_inside_their_slice,
    slices_are_exactly_their_range, halves_are_apart, the_same_bytes_as_another_type, ranges_outside_are_errors,
    sizes_past_the_address_space_are_errors, more_than_the_device_has_is_out_of_memory, large_buffers,
    buffers_say_where_they_are,
}

fn every_type_comes_back() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    macro_rules! round_trip {
        ($($type:ty: $make:expr;)*) => {$({
            let make: fn(u32) -> $type = $make;
            let mut numbers = Numbers(7);
            for length in [1usize, 3, 255, 256, 1001, 100_000] {
                let sent: Vec<$type> = (0..length).map(|_| make(numbers.next())).collect();
                let buffer = stream.upload(&sent)?;
                assert_eq!(buffer.len(), length);
                let received = stream.download(&buffer)?;
                assert_eq!(bytemuck::cast_slice::<_, u8>(&received), bytemuck::cast_slice::<_, u8>(&sent), "{}", stringify!($type));
            }
        })*};
    }
    round_trip! {
        u8: |n| n as u8; i8: |n| n as i8; u16: |n| n as u16; i16: |n| n as i16; u32: |n| n; i32: |n| n as i32;
        u64: |n| u64::from(n) << 21; i64: |n| -(i64::from(n) << 20);
        f16: |n| f16::from_bits(n as u16); bf16: |n| bf16::from_bits(n as u16);
        f32: |n| f32::from_bits(n); f64: |n| f64::from_bits(u64::from(n) << 32 | u64::from(!n));
        Complex<f32>: |n| Complex::new(f32::from_bits(n), f32::from_bits(!n));
        Complex<f64>: |n| Complex::new(f64::from(n), -f64::from(n));
        [u8; 3]: |n| [n as u8, (n >> 8) as u8, (n >> 16) as u8]; [u64; 5]: |n| [u64::from(n); 5];
    }
    Ok(())
}

fn zeros_are_zero() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    for length in [1usize, 127, 4096, 1_000_003] {
        // Dirty the block first, so that zeros have something to do.
        let dirty = stream.upload(&vec![0xFFu8; length])?;
        drop(dirty);
        let zeros = stream.zeros::<u8>(length)?;
        assert_all(&stream.download(&zeros)?, 0, "zeros");
    }
    Ok(())
}

fn empty_buffers_work() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let mut empty = stream.upload::<f64>(&[])?;
    assert!(empty.is_empty() && empty.slice(..)?.is_empty() && empty.address() == 0);
    stream.fill(&mut empty, 1.0)?;
    let mut other = stream.zeros::<f64>(0)?;
    stream.copy(&empty, &mut other)?;
    assert_eq!(stream.download(&other)?, [0.0f64; 0]);
    assert_eq!(empty.reinterpret::<u8>()?.len(), 0);
    let mut full = stream.zeros::<f64>(4)?;
    assert!(full.slice_mut(4..)?.is_empty());
    Ok(())
}

fn every_fill_size() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    macro_rules! fill {
        ($($value:expr),* $(,)?) => {$({
            let mut buffer = stream.uninitialized(1003)?;
            stream.fill(&mut buffer, $value)?;
            assert_all(&stream.download(&buffer)?, $value, stringify!($value));
        })*};
    }
    fill!(
        7u8,
        0x0102u16,
        1.5f32,
        -2.25f64,
        u64::MAX,
        0x0102_0304_0506_0708u64,
        [1u8, 2, 3],
        [1u16, 2, 3],
        [9u32, 8, 7],
        f16::from_f32(0.1),
        Complex::new(1.0f32, -2.0),
        Complex::new(1.0f64, -2.0),
        [5u64, 6, 7],
    );
    Ok(())
}

fn fills_stay_inside_their_slice() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    for (start, end) in [(0, 1), (1, 2), (3, 500), (999, 1000), (0, 1000), (500, 500)] {
        let mut bytes = stream.upload(&[9u8; 1000])?;
        stream.fill(&mut bytes.slice_mut(start..end)?, 4)?;
        let mut doubles = stream.upload(&[9.0f64; 1000])?;
        stream.fill(&mut doubles.slice_mut(start..end)?, 0.1)?;
        let (bytes, doubles) = (stream.download(&bytes)?, stream.download(&doubles)?);
        for index in 0..1000 {
            let inside = (start..end).contains(&index);
            assert_eq!(bytes[index], if inside { 4 } else { 9 }, "byte {index} of {start}..{end}");
            assert_eq!(doubles[index], if inside { 0.1 } else { 9.0 }, "double {index} of {start}..{end}");
        }
    }
    // A pair of words at an odd address: no memset fits.
    let mut bytes = stream.upload(&[9u8; 64])?;
    stream.fill(&mut bytes.slice_mut(1..61)?.reinterpret::<[u8; 6]>()?, [1, 2, 3, 4, 5, 6])?;
    let bytes = stream.download(&bytes)?;
    assert!(bytes[1..61].iter().enumerate().all(|(index, &byte)| usize::from(byte) == index % 6 + 1));
    assert_eq!((bytes[0], &bytes[61..]), (9, &[9u8, 9, 9][..]));
    Ok(())
}

fn slices_are_exactly_their_range() -> Outcome {
    let lab = Lab::new()?;
    let values: Vec<u32> = (0..1000).collect();
    let mut buffer = lab.stream.upload(&values)?;
    let part = buffer.slice(100..200)?;
    assert_eq!((part.len(), part.address()), (100, buffer.address() + 400));
    assert_eq!(lab.stream.download(&part)?, values[100..200]);
    assert_eq!(lab.stream.download(&part.slice(10..=19)?)?, values[110..120]);
    lab.increment(&lab.stream, buffer.slice_mut(250..750)?, 0)?;
    lab.increment(&lab.stream, buffer.slice_mut(250..750)?.slice_mut(50..)?, 0)?;
    let result = lab.stream.download(&buffer)?;
    for (index, (&now, &then)) in result.iter().zip(&values).enumerate() {
        let added = u32::from((250..750).contains(&index)) + u32::from((300..750).contains(&index));
        assert_eq!(now, then + added, "element {index}");
    }
    Ok(())
}

fn halves_are_apart() -> Outcome {
    let lab = Lab::new()?;
    let mut buffer = lab.stream.zeros::<u32>(1000)?;
    let (mut left, mut right) = buffer.split_at_mut(300)?;
    assert_eq!((left.len(), right.len()), (300, 700));
    lab.set(&lab.stream, left.reborrow(), 1, 0)?;
    lab.set(&lab.stream, right.reborrow(), 2, 0)?;
    lab.stream.copy(&right.slice(..300)?, &mut left)?;
    lab.set(&lab.stream, right.slice_mut(..1)?, 5, 0)?;
    let result = lab.stream.download(&buffer)?;
    assert_all(&result[..300], 2, "left");
    assert_eq!(result[300], 5);
    assert_all(&result[301..], 2, "right");
    let (left, right) = buffer.split_at(999)?;
    assert_eq!((left.len(), lab.stream.download(&right)?), (999, vec![2]));
    Ok(())
}

fn the_same_bytes_as_another_type() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let mut buffer = stream.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
    let bits: Vec<u32> = stream.download(&buffer.reinterpret()?)?;
    assert_eq!(bits, [1.0f32, 2.0, 3.0, 4.0].map(f32::to_bits));
    assert_eq!(stream.download(&buffer.reinterpret::<u8>()?)?.len(), 16);
    stream.fill(&mut buffer.reinterpret_mut::<u64>()?, 0)?;
    assert_eq!(stream.download(&buffer)?, [0.0; 4]);
    let odd = buffer.slice(1..)?;
    assert_error!(odd.reinterpret::<f64>(), Error::InvalidArgument { operation: "reinterpret", .. });
    assert_error!(buffer.slice(..3)?.reinterpret::<f64>(), Error::InvalidArgument { .. });
    Ok(())
}

fn ranges_outside_are_errors() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let mut buffer = stream.zeros::<u32>(10)?;
    assert_error!(buffer.slice(5..11), Error::OutOfRange { start: 5, end: 11, length: 10 });
    assert_error!(buffer.slice_mut(11..), Error::OutOfRange { .. });
    assert_error!(buffer.split_at(11), Error::OutOfRange { .. });
    assert_error!(buffer.split_at_mut(11), Error::OutOfRange { .. });
    assert_error!(buffer.slice(..=usize::MAX), Error::OutOfRange { .. });
    Ok(())
}

fn sizes_past_the_address_space_are_errors() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    assert_error!(stream.zeros::<u64>(usize::MAX), Error::InvalidArgument { operation: "allocating", .. });
    assert_error!(device.pinned::<u64>(usize::MAX), Error::InvalidArgument { .. });
    assert!(stream.uninitialized::<u8>(usize::MAX).is_err());
    Ok(())
}

fn more_than_the_device_has_is_out_of_memory() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let wanted = device.total_memory() as usize * 2;
    match stream.uninitialized::<u8>(wanted) {
        Err(Error::OutOfMemory { device: Some(0), requested, free, total, .. }) => {
            assert!(requested as usize >= wanted && free <= total && total <= device.total_memory());
        }
        other => return Err(format!("{other:?}").into()),
    }
    // The device is as good as before.
    assert_eq!(stream.download(&stream.upload(&[1u8, 2, 3])?)?, [1, 2, 3]);
    Ok(())
}

fn large_buffers() -> Outcome {
    let lab = Lab::new()?;
    let length = 48usize << 20;
    let values: Vec<u32> = (0..length as u32).map(|index| index.wrapping_mul(2_654_435_761)).collect();
    let buffer = lab.stream.upload(&values)?;
    let mut copy = lab.stream.uninitialized(length)?;
    lab.stream.copy(&buffer, &mut copy)?;
    assert!(lab.stream.download(&copy)? == values, "192 MiB came back changed");
    assert_eq!(lab.stream.download(&copy.slice(length - 3..)?)?, values[length - 3..]);
    Ok(())
}

fn buffers_say_where_they_are() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let mut buffer = stream.zeros::<f32>(12)?;
    assert_eq!(buffer.device(), device);
    assert_eq!(buffer.address() % 256, 0, "aligned for every type");
    assert_eq!(buffer.slice(..)?.device(), device);
    assert!(format!("{buffer:?}").contains("f32") && format!("{:?}", buffer.slice_mut(..)?).contains("12"));
    Ok(())
}
