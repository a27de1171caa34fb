//! Every kind of argument arrives bit for bit, from a typed tuple and from a list made at run time.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use num_complex::Complex;
use selvedge::driver::{Argument, ByValue, LaunchConfig, RawAddress};

use crate::support::{Lab, Outcome, assert_all, device_tests};

device_tests! {
    every_scalar_kind, every_scalar_kind_from_a_list, a_half_as_its_bits, two_dozen_parameters, a_large_struct, slices_are_their_first_element,
    an_address_of_our_own, a_list_orders_like_a_tuple,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Mixed {
    tag: u8,
    padding: [u8; 3],
    number: u32,
    weight: f64,
    tail: [u16; 3],
    end: [u8; 2],
}

/// The struct that `every_kind` is given.
pub const MIXED: Mixed = Mixed {
    tag: 200,
    padding: [0; 3],
    number: 4_000_000_000,
    weight: -1e300,
    tail: [1, 65_535, 3],
    end: [0; 2],
};

/// The numbers that `every_kind` writes of its arguments.
pub fn wanted() -> [u64; 20] {
    [
        -7i64 as u64,
        250,
        -30_000i64 as u64,
        60_000,
        -2_000_000_000i64 as u64,
        4_000_000_000,
        i64::MIN as u64,
        u64::MAX - 1,
        u64::from(f16::from_f32(-0.1).to_bits()),
        u64::from(bf16::from_f32(3.5).to_bits()),
        u64::from(1.1f32.to_bits()),
        (-2.2f64).to_bits(),
        1,
        u64::from(4.5f32.to_bits()) << 32 | u64::from(3.5f32.to_bits()),
        5.5f64.to_bits(),
        (-6.5f64).to_bits(),
        200,
        4_000_000_000,
        (-1e300f64).to_bits(),
        1 | 65_535 << 16 | 3 << 32,
    ]
}

fn every_scalar_kind() -> Outcome {
    let lab = Lab::new()?;
    let kernel = lab.kernel("every_kind")?;
    let mut out = lab.stream.zeros::<u64>(20)?;
    for _ in 0..2 {
        lab.stream.fill(&mut out, 0)?;
        let arguments = (
            &mut out,
            -7i8,
            250u8,
            -30_000i16,
            60_000u16,
            -2_000_000_000i32,
            4_000_000_000u32,
            i64::MIN,
            u64::MAX - 1,
            f16::from_f32(-0.1),
            bf16::from_f32(3.5),
            1.1f32,
            -2.2f64,
            true,
            Complex::new(3.5f32, 4.5),
            Complex::new(5.5f64, -6.5),
            ByValue(MIXED),
        );
        // SAFETY: every_kind writes 20 elements.
        unsafe { kernel.launch(&lab.stream, LaunchConfig::new(1, 1), arguments)? };
        assert_eq!(lab.stream.download(&out)?, wanted());
    }
    Ok(())
}

fn every_scalar_kind_from_a_list() -> Outcome {
    let lab = Lab::new()?;
    let kernel = lab.kernel("every_kind")?;
    let mut out = lab.stream.zeros::<u64>(20)?;
    let arguments = [
        Argument::write(&mut out),
        Argument::integer(-7i8),
        Argument::integer(250u8),
        Argument::integer(-30_000i16),
        Argument::integer(60_000u16),
        Argument::integer(-2_000_000_000i32),
        Argument::integer(4_000_000_000u32),
        Argument::integer(i64::MIN),
        Argument::integer(u64::MAX - 1),
        Argument::float(f16::from_f32(-0.1)),
        Argument::float(bf16::from_f32(3.5)),
        Argument::float(1.1f32),
        Argument::float(-2.2f64),
        Argument::integer(1u8),
        Argument::by_value(Complex::new(3.5f32, 4.5)),
        Argument::by_value([5.5f64, -6.5]),
        Argument::by_value(MIXED),
    ];
    // SAFETY: every_kind writes 20 elements.
    unsafe { kernel.launch(&lab.stream, LaunchConfig::new(1, 1), &arguments)? };
    assert_eq!(lab.stream.download(&out)?, wanted());
    Ok(())
}

fn a_half_as_its_bits() -> Outcome {
    // Compilers that have no type for halves pass 16 bits.
    let lab = Lab::new()?;
    let parameters = lab.kernel("every_kind")?;
    let parameters = parameters.parameters().ok_or("PTX tells its parameters")?;
    assert_eq!((parameters[9].size, parameters[10].size), (2, 2));
    let offsets: Vec<usize> = parameters.iter().map(|parameter| parameter.offset).collect();
    assert!(offsets.is_sorted(), "{offsets:?}");
    Ok(())
}

fn two_dozen_parameters() -> Outcome {
    let lab = Lab::new()?;
    let kernel = lab.kernel("many")?;
    let mut out = lab.stream.zeros::<u32>(23)?;
    let arguments = (
        &mut out, 1u32, 2u32, 3u32, 4u32, 5u32, 6u32, 7u32, 8u32, 9u32, 10u32, 11u32, 12u32, 13u32, 14u32,
        15u32, 16u32, 17u32, 18u32, 19u32, 20u32, 21u32, 22u32, 23u32,
    );
    // SAFETY: many(unsigned*, 23 times unsigned) writes 23 elements.
    unsafe { kernel.launch(&lab.stream, LaunchConfig::new(1, 1), arguments)? };
    assert!(lab.stream.download(&out)?.iter().copied().eq(1..=23));
    Ok(())
}

fn a_large_struct() -> Outcome {
    let lab = Lab::new()?;
    let kernel = lab.kernel("large_struct")?;
    let mut large = Large([[0; 32]; 31]);
    for (index, word) in large.0.as_flattened_mut().iter_mut().enumerate() {
        *word = index as u32 * 3;
    }
    // The value is gone when the launch returns, while the kernel has not begun.
    let mut out = lab.stream.zeros::<u32>(992)?;
    lab.delay(&lab.stream, crate::support::SLOW / 2)?;
    // SAFETY: large_struct(unsigned*, Large) writes 992 elements.
    unsafe { kernel.launch(&lab.stream, LaunchConfig::new(1, 128), (&mut out, ByValue(large)))? };
    let out = lab.stream.download(&out)?;
    assert!((0u32..).zip(out).all(|(index, word)| word == index * 3 + 1));
    Ok(())
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Large([[u32; 32]; 31]);

fn slices_are_their_first_element() -> Outcome {
    let lab = Lab::new()?;
    let kernel = lab.kernel("saxpy")?;
    let x = lab.stream.upload(&(0..1000).map(|index| index as f32).collect::<Vec<_>>())?;
    let mut y = lab.stream.zeros::<f32>(1000)?;
    let config = LaunchConfig::for_elements(100);
    let mut part = y.slice_mut(300..400)?;
    // SAFETY: saxpy touches 100 elements of each slice.
    unsafe { kernel.launch(&lab.stream, config, (2.0f32, x.slice(50..150)?, &mut part, 100u32))? };
    // SAFETY: as above.
    unsafe { kernel.launch(&lab.stream, config, (1.0f32, &x.slice(50..150)?, part, 100u32))? };
    let result = lab.stream.download(&y)?;
    for (index, value) in result.into_iter().enumerate() {
        let wanted = if (300..400).contains(&index) { 3.0 * (index as f32 - 250.0) } else { 0.0 };
        assert_eq!(value, wanted, "element {index}");
    }
    Ok(())
}

fn an_address_of_our_own() -> Outcome {
    let lab = Lab::new()?;
    let kernel = lab.kernel("slow_set")?;
    let buffer = lab.stream.zeros::<u32>(10)?;
    let address = RawAddress(buffer.address() + 16);
    // SAFETY: the address is of the fifth element, five are written, and the stream is the buffer's own.
    unsafe { kernel.launch(&lab.stream, LaunchConfig::new(1, 32), (address, 5u32, 3u32, 0u64))? };
    assert_eq!(lab.stream.download(&buffer)?, [0, 0, 0, 0, 3, 3, 3, 3, 3, 0]);
    let list = [
        Argument::raw_address(buffer.address()),
        Argument::integer(2u32),
        Argument::integer(4u32),
        Argument::integer(0u64),
    ];
    // SAFETY: as above, with two elements from the first.
    unsafe { kernel.launch(&lab.stream, LaunchConfig::new(1, 32), &list)? };
    assert_eq!(lab.stream.download(&buffer)?, [4, 4, 0, 0, 3, 3, 3, 3, 3, 0]);
    Ok(())
}

fn a_list_orders_like_a_tuple() -> Outcome {
    let lab = Lab::new()?;
    let other = lab.device.stream()?;
    let kernel = lab.kernel("slow_copy")?;
    let mut source = lab.stream.zeros::<u32>(5000)?;
    let mut out = other.zeros::<u32>(5000)?;
    other.synchronize()?;
    lab.set(&lab.stream, source.slice_mut(..)?, 2, crate::support::SLOW)?;
    let list = [
        Argument::read(&source),
        Argument::write(&mut out),
        Argument::integer(5000u32),
        Argument::integer(0u64),
    ];
    // SAFETY: slow_copy(const unsigned*, unsigned*, unsigned, u64) touches 5000 elements of each.
    unsafe { kernel.launch(&other, LaunchConfig::new(1, 256), &list)? };
    assert_all(&other.download(&out)?, 2, "the copy");
    Ok(())
}
