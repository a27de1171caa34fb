//! The embedded images load on this device and compute what their sources say, bit for bit where that is promised.
//!
//! Lengths are around the kernels' vector sizes, and buffers also begin where whole vectors cannot be read.

mod cast;

use bytemuck::Pod;
use num_complex::Complex;
use selvedge::driver::{ByValue, Device, Function, KernelArgument, LaunchConfig, RawAddress, Stream};
use selvedge::images::{self, StridedLayout, elementwise_launch};

use crate::support::{Need, Numbers, Outcome, assert_all, promises};

promises! {
    every_family_loads => needs(Need::Isa(8, 0)),
    a_family_is_loaded_once => needs(Need::Isa(8, 0)),
    arithmetic_is_the_cpus => needs(Need::Isa(8, 0)),
    arithmetic_in_place => needs(Need::Isa(8, 0)),
    complex_division_does_not_overflow => needs(Need::Isa(8, 0)),
    casts_are_the_cpus => needs(Need::Isa(8, 0)),
    fills_of_every_size => needs(Need::Isa(8, 0)),
    strided_copies_are_the_cpus => needs(Need::Isa(8, 0)),
    any_grid_is_right => needs(Need::Isa(8, 0)),
    older_images_compute_the_same => in_child(&[("SELVEDGE_ARCH", "sm_60")]) => needs(Need::Isa(8, 0)),
    ptx_computes_the_same => in_child(&[("SELVEDGE_IMAGE", "ptx")]) => needs(Need::Isa(8, 0)),
}

const LENGTHS: [usize; 9] = [1, 2, 3, 7, 15, 255, 256, 1025, 10_007];

fn every_family_loads() -> Outcome {
    let device = Device::new(0)?;
    for family in images::families() {
        // Those that not every card has instructions for: not an older one that this is to act like, nor, where they are
        // one card's alone, another.
        let is_old = std::env::var_os("SELVEDGE_ARCH").is_some();
        let targets =
            || images::all().iter().filter(|image| image.family() == family).map(|image| image.target());
        let everywhere = targets().any(|target| target.is_ok_and(|target| target.to_string() == "sm_60"));
        let alone = targets().all(|target| target.is_ok_and(|target| target.to_string().ends_with('a')));
        if !everywhere && (is_old || alone && device.compute_capability() != (9, 0)) {
            continue;
        }
        let module = images::load(&device, family)?;
        let names = module.function_names()?;
        assert!(!names.is_empty(), "{family}");
        for name in names {
            let function = module.function(&name)?;
            assert!(function.parameters().is_some_and(|parameters| parameters.len() >= 3), "{name}");
            assert!(function.attributes()?.max_threads_per_block >= 64, "{name}");
        }
    }
    Ok(())
}

fn a_family_is_loaded_once() -> Outcome {
    let device = Device::new(0)?;
    let addresses: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(|| images::load(&device, "fill"))).collect();
        let modules = workers.into_iter().map(|worker| worker.join().expect("no thread panics"));
        modules.map(|module| Ok(std::ptr::from_ref(module?.info()) as u64)).collect::<selvedge::Result<_>>()
    })?;
    assert_all(&addresses, addresses[0], "one module");
    assert!(images::load(&device, "no such family").is_err());
    Ok(())
}

/// What the kernels of arithmetic.cu compute, on the CPU.
trait Number: Pod + PartialEq + std::fmt::Debug {
    const NAME: &'static str;
    fn make(numbers: &mut Numbers) -> Self;
    fn compute(operation: &str, left: Self, right: Self) -> Self;
    /// Equal in bits, where a NaN is like another.
    fn same(self, other: Self) -> bool;
}

macro_rules! reals {
    ($($real:ident $name:literal;)*) => {$(
        impl Number for $real {
            const NAME: &'static str = $name;

            fn make(numbers: &mut Numbers) -> $real {
                const SPECIAL: [$real; 10] = [
                    0.0, -0.0, 1.0, -1.0, $real::INFINITY, $real::NEG_INFINITY, $real::NAN, $real::MAX,
                    $real::MIN_POSITIVE, $real::MIN_POSITIVE / 8.0,
                ];
                match numbers.below(8) {
                    0 => SPECIAL[numbers.below(SPECIAL.len())],
                    // Any bits at all, subnormals among them.
                    1 => $real::from_bits((u64::from(numbers.next()) << 32 | u64::from(numbers.next())) as _),
                    _ => (numbers.next() as i32) as $real / 65_536.0,
                }
            }

            fn compute(operation: &str, left: $real, right: $real) -> $real {
                match operation {
                    "add" => left + right,
                    "sub" => left - right,
                    "mul" => left * right,
                    _ => left / right,
                }
            }

            fn same(self, other: $real) -> bool {
                self.to_bits() == other.to_bits() || (self.is_nan() && other.is_nan())
            }
        }
    )*};
}

reals! { f32 "f32"; f64 "f64"; }

macro_rules! complexes {
    ($($part:ident $name:literal;)*) => {$(
        impl Number for Complex<$part> {
            const NAME: &'static str = $name;

            fn make(numbers: &mut Numbers) -> Complex<$part> {
                Complex::new($part::make(numbers), $part::make(numbers))
            }

            fn compute(operation: &str, x: Complex<$part>, y: Complex<$part>) -> Complex<$part> {
                match operation {
                    "add" => Complex::new(x.re + y.re, x.im + y.im),
                    "sub" => Complex::new(x.re - y.re, x.im - y.im),
                    "mul" => Complex::new(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re),
                    // Smith 1962, as the kernel's header states it.
                    _ if y.re.abs() >= y.im.abs() => {
                        let ratio = y.im / y.re;
                        let divisor = y.re + y.im * ratio;
                        Complex::new((x.re + x.im * ratio) / divisor, (x.im - x.re * ratio) / divisor)
                    }
                    _ => {
                        let ratio = y.re / y.im;
                        let divisor = y.im + y.re * ratio;
                        Complex::new((x.im + x.re * ratio) / divisor, (x.im * ratio - x.re) / divisor)
                    }
                }
            }

            fn same(self, other: Complex<$part>) -> bool {
                self.re.same(other.re) && self.im.same(other.im)
            }
        }
    )*};
}

complexes! { f32 "c64"; f64 "c128"; }

const OPERATIONS: [&str; 4] = ["add", "sub", "mul", "div"];

fn kernel(device: Device, family: &str, name: &str) -> selvedge::Result<Function> {
    images::load(&device, family)?.function(name)
}

fn arithmetic_of<T: Number>(stream: &Stream) -> Outcome {
    let mut numbers = Numbers(11);
    for operation in OPERATIONS {
        let name = format!("{operation}_{}", T::NAME);
        let function = kernel(stream.device(), "arithmetic", &name)?;
        for length in LENGTHS {
            // A first element of its own, so that the slices behind it are not aligned.
            let [left, right]: [Vec<T>; 2] =
                std::array::from_fn(|_| (0..=length).map(|_| T::make(&mut numbers)).collect());
            let (on_left, on_right) = (stream.upload(&left)?, stream.upload(&right)?);
            for first in [0, 1] {
                let poison = vec![T::zeroed(); length + 2];
                let mut out = stream.upload(&poison)?;
                let arguments = (
                    on_left.slice(first..first + length)?,
                    on_right.slice(first..first + length)?,
                    out.slice_mut(first..first + length)?,
                    length as u64,
                );
                // SAFETY: the kernel touches `length` elements of each slice.
                unsafe { function.launch(stream, elementwise_launch(length, size_of::<T>()), arguments)? };
                let out = stream.download(&out)?;
                for index in 0..length {
                    let (x, y) = (left[first + index], right[first + index]);
                    let wanted = T::compute(operation, x, y);
                    let found = out[first + index];
                    assert!(found.same(wanted), "{name}({x:?}, {y:?}) is {found:?}, wanted {wanted:?}");
                }
                assert_all(&out[first + length..], T::zeroed(), &name);
                assert_all(&out[..first], T::zeroed(), &name);
            }
        }
    }
    Ok(())
}

fn arithmetic_is_the_cpus() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    arithmetic_of::<f32>(&stream)?;
    arithmetic_of::<f64>(&stream)?;
    arithmetic_of::<Complex<f32>>(&stream)?;
    arithmetic_of::<Complex<f64>>(&stream)
}

fn arithmetic_in_place() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let function = kernel(stream.device(), "arithmetic", "add_f32")?;
    let values: Vec<f32> = (0..10_007).map(|index| index as f32).collect();
    let mut out = stream.upload(&values)?;
    let address = RawAddress(out.address());
    let config = elementwise_launch(values.len(), 4);
    // SAFETY: the operands are the result itself, which the kernel allows and the third argument orders.
    unsafe { function.launch(&stream, config, (address, address, &mut out, values.len() as u64))? };
    let wanted: Vec<f32> = values.iter().map(|value| value + value).collect();
    assert_eq!(stream.download(&out)?, wanted);
    Ok(())
}

fn complex_division_does_not_overflow() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let function = kernel(stream.device(), "arithmetic", "div_c128")?;
    let cases = [
        (Complex::new(1e300, 1e300), Complex::new(1e300, 1e300), Complex::new(1.0, 0.0)),
        (Complex::new(2e-300, 0.0), Complex::new(1e-300, 0.0), Complex::new(2.0, 0.0)),
        (Complex::new(0.0, 4e200), Complex::new(0.0, 2e200), Complex::new(2.0, 0.0)),
        (Complex::new(3.0, 4.0), Complex::new(0.0, 1.0), Complex::new(4.0, -3.0)),
    ];
    let left = stream.upload(&cases.map(|case| case.0))?;
    let right = stream.upload(&cases.map(|case| case.1))?;
    let mut out = stream.zeros::<Complex<f64>>(cases.len())?;
    // SAFETY: the kernel touches as many elements as there are cases.
    unsafe {
        function.launch(&stream, LaunchConfig::new(1, 32), (&left, &right, &mut out, cases.len() as u64))?
    };
    assert_eq!(stream.download(&out)?, cases.map(|case| case.2));
    Ok(())
}

fn casts_are_the_cpus() -> Outcome {
    cast::every_pair()
}

fn fill_of<T: Pod + PartialEq + std::fmt::Debug, V: KernelArgument + Copy>(
    stream: &Stream,
    value: V,
    element: T,
) -> Outcome {
    let bits = 8 * size_of::<T>();
    let function = kernel(stream.device(), "fill", &format!("fill_{bits}"))?;
    // Elements of 8 and 16 bytes also where only their parts are aligned.
    let part = if size_of::<T>() < 8 { size_of::<T>() } else { size_of::<T>() / 2 };
    for length in LENGTHS {
        for skip in 0..4 {
            let mut bytes = stream.upload(&vec![0xCCu8; (length + 6) * size_of::<T>()])?;
            let start = skip * part;
            let end = start + length * size_of::<T>();
            let config = elementwise_launch(length, 16);
            // SAFETY: the kernel writes `length` elements of the slice.
            unsafe { function.launch(stream, config, (value, bytes.slice_mut(start..end)?, length as u64))? };
            let bytes = stream.download(&bytes)?;
            assert_all(&bytes[..start], 0xCC, "before");
            assert_all(&bytes[end..], 0xCC, "behind");
            let pattern = bytemuck::bytes_of(&element);
            let right = bytes[start..end].chunks(pattern.len()).all(|chunk| chunk == pattern);
            assert!(right, "fill_{bits} of {length} elements from byte {start}");
        }
    }
    Ok(())
}

fn fills_of_every_size() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    fill_of(&stream, 0x12u8, 0x12u8)?;
    fill_of(&stream, 0x1234u16, 0x1234u16)?;
    fill_of(&stream, 1.5f32.to_bits(), 1.5f32)?;
    fill_of(&stream, 0x0102_0304_0506_0708u64, 0x0102_0304_0506_0708u64)?;
    fill_of(&stream, ByValue([1u64, 2]), [1u64, 2])
}

struct Strides<'a> {
    shape: &'a [usize],
    source: &'a [isize],
    destination: &'a [isize],
    source_offset: usize,
    destination_offset: usize,
}

const COPIES: [Strides<'static>; 7] = [
    Strides { shape: &[], source: &[], destination: &[], source_offset: 3, destination_offset: 5 },
    Strides { shape: &[1000], source: &[1], destination: &[1], source_offset: 0, destination_offset: 0 },
    Strides {
        shape: &[30, 40],
        source: &[1, 30],
        destination: &[40, 1],
        source_offset: 0,
        destination_offset: 0,
    },
    Strides {
        shape: &[25, 16],
        source: &[0, 2],
        destination: &[16, 1],
        source_offset: 8,
        destination_offset: 4,
    },
    Strides {
        shape: &[9, 11],
        source: &[-11, -1],
        destination: &[12, 1],
        source_offset: 98,
        destination_offset: 1,
    },
    Strides {
        shape: &[3, 4, 5, 6],
        source: &[1, 3, 12, 60],
        destination: &[240, 1, 4, 40],
        source_offset: 2,
        destination_offset: 7,
    },
    Strides {
        shape: &[2, 8, 32],
        source: &[512, 64, 1],
        destination: &[256, 32, 1],
        source_offset: 16,
        destination_offset: 0,
    },
];

impl Strides<'_> {
    /// Where each element comes from and goes to, by the definition.
    fn places(&self) -> Vec<(usize, usize)> {
        let count: usize = self.shape.iter().product();
        (0..count)
            .map(|index| {
                let (mut rest, mut from, mut to) =
                    (index, self.source_offset as isize, self.destination_offset as isize);
                for dimension in (0..self.shape.len()).rev() {
                    let at = (rest % self.shape[dimension]) as isize;
                    rest /= self.shape[dimension];
                    from += at * self.source[dimension];
                    to += at * self.destination[dimension];
                }
                (from as usize, to as usize)
            })
            .collect()
    }
}

fn strided_copies_of<T: Pod + PartialEq + std::fmt::Debug>(stream: &Stream, make: fn(u32) -> T) -> Outcome {
    const ROOM: usize = 2048;
    let values: Vec<T> = (0..ROOM as u32).map(make).collect();
    let source = stream.upload(&values)?;
    for copy in &COPIES {
        let layout = StridedLayout::new(
            copy.shape,
            copy.source,
            copy.destination,
            copy.source_offset,
            copy.destination_offset,
        )?;
        let mut wanted = vec![T::zeroed(); ROOM];
        for (from, to) in copy.places() {
            wanted[to] = values[from];
        }
        let mut out = stream.zeros::<T>(ROOM)?;
        let plain = (layout, size_of::<T>());
        for (layout, bytes) in [plain, layout.widened(size_of::<T>(), source.address(), out.address())] {
            stream.fill(&mut out, T::zeroed())?;
            let function = kernel(stream.device(), "copy", &format!("copy_strided_{}", 8 * bytes))?;
            let config = elementwise_launch(layout.len() as usize, bytes);
            // SAFETY: the layout stays inside both buffers, as the same copy on the CPU did.
            unsafe { function.launch(stream, config, (&source, &mut out, ByValue(layout), layout.len()))? };
            let found = stream.download(&out)?;
            assert!(found == wanted, "{:?} by elements of {bytes} bytes", copy.shape);
        }
    }
    Ok(())
}

fn strided_copies_are_the_cpus() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    strided_copies_of(&stream, |index| index as u8)?;
    strided_copies_of(&stream, |index| index as u16)?;
    strided_copies_of(&stream, |index| index)?;
    strided_copies_of(&stream, |index| u64::from(index) << 30 | 1)?;
    strided_copies_of(&stream, |index| Complex::new(f64::from(index), -f64::from(index)))
}

fn any_grid_is_right() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let function = kernel(stream.device(), "arithmetic", "mul_f64")?;
    let values: Vec<f64> = (0..5000).map(f64::from).collect();
    let left = stream.upload(&values)?;
    let wanted: Vec<f64> = values.iter().map(|value| value * value).collect();
    for config in [
        LaunchConfig::new(1, 32),
        LaunchConfig::new(3, 96),
        LaunchConfig::for_elements(values.len()),
        LaunchConfig::new(1000, 1024),
    ] {
        let mut out = stream.zeros::<f64>(values.len())?;
        // SAFETY: the kernel touches 5000 elements of each.
        unsafe { function.launch(&stream, config, (&left, &left, &mut out, values.len() as u64))? };
        assert_eq!(stream.download(&out)?, wanted, "{config:?}");
    }
    Ok(())
}

fn older_images_compute_the_same() -> Outcome {
    every_family_loads()?;
    arithmetic_is_the_cpus()
}

fn ptx_computes_the_same() -> Outcome {
    arithmetic_is_the_cpus()?;
    strided_copies_are_the_cpus()
}
