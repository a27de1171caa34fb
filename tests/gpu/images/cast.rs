//! Every conversion of cast.cu beside the same on the CPU, where each result is rounded once.

use half::{bf16, f16};
use selvedge::driver::Device;
use selvedge::images::elementwise_launch;

use crate::support::{Numbers, Outcome, assert_all};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Bool,
    Integer { bits: u32, signed: bool },
    F16,
    Bf16,
    F32,
    F64,
    C64,
    C128,
}

const TYPES: [(&str, Kind); 15] = [
    ("bool", Kind::Bool),
    ("u8", Kind::Integer { bits: 8, signed: false }),
    ("i8", Kind::Integer { bits: 8, signed: true }),
    ("u16", Kind::Integer { bits: 16, signed: false }),
    ("i16", Kind::Integer { bits: 16, signed: true }),
    ("u32", Kind::Integer { bits: 32, signed: false }),
    ("i32", Kind::Integer { bits: 32, signed: true }),
    ("u64", Kind::Integer { bits: 64, signed: false }),
    ("i64", Kind::Integer { bits: 64, signed: true }),
    ("f16", Kind::F16),
    ("bf16", Kind::Bf16),
    ("f32", Kind::F32),
    ("f64", Kind::F64),
    ("c64", Kind::C64),
    ("c128", Kind::C128),
];

/// A number without loss.
#[derive(Clone, Copy, Debug)]
enum Exact {
    Integer(i128),
    Real(f64),
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Kind::Bool => 1,
            Kind::Integer { bits, .. } => bits as usize / 8,
            Kind::F16 | Kind::Bf16 => 2,
            Kind::F32 => 4,
            Kind::F64 | Kind::C64 => 8,
            Kind::C128 => 16,
        }
    }

    /// The type of one part of a complex number.
    fn part(self) -> Option<Kind> {
        match self {
            Kind::C64 => Some(Kind::F32),
            Kind::C128 => Some(Kind::F64),
            _ => None,
        }
    }

    fn read(self, bytes: &[u8]) -> Exact {
        let mut wide = [0u8; 8];
        wide[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
        let word = u64::from_le_bytes(wide);
        match self {
            Kind::Bool => Exact::Integer(i128::from(word != 0)),
            Kind::Integer { bits, signed: true } => {
                Exact::Integer(i128::from((word << (64 - bits)) as i64 >> (64 - bits)))
            }
            Kind::Integer { .. } => Exact::Integer(i128::from(word)),
            Kind::F16 => Exact::Real(f64::from(f16::from_bits(word as u16).to_f32())),
            Kind::Bf16 => Exact::Real(f64::from(bf16::from_bits(word as u16).to_f32())),
            Kind::F32 | Kind::C64 => Exact::Real(f64::from(f32::from_bits(word as u32))),
            Kind::F64 | Kind::C128 => Exact::Real(f64::from_bits(word)),
        }
    }

    fn write(self, value: Exact) -> Vec<u8> {
        match (self, value) {
            (Kind::Bool, Exact::Integer(value)) => vec![u8::from(value != 0)],
            (Kind::Bool, Exact::Real(value)) => vec![u8::from(value != 0.0)],
            (Kind::Integer { .. }, Exact::Integer(value)) => value.to_le_bytes()[..self.bytes()].to_vec(),
            (Kind::Integer { bits, signed }, Exact::Real(value)) => {
                // `as` saturates and turns NaN into 0, which is the kernel's promise too.
                let (low, high) = if signed {
                    (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
                } else {
                    (0, (1i128 << bits) - 1)
                };
                (value as i128).clamp(low, high).to_le_bytes()[..self.bytes()].to_vec()
            }
            (Kind::F16, value) => f16::from_f32(to_odd(value)).to_le_bytes().to_vec(),
            (Kind::Bf16, value) => bf16::from_f32(to_odd(value)).to_le_bytes().to_vec(),
            (Kind::F32 | Kind::C64, Exact::Integer(value)) => (value as f32).to_le_bytes().to_vec(),
            (Kind::F32 | Kind::C64, Exact::Real(value)) => (value as f32).to_le_bytes().to_vec(),
            (Kind::F64 | Kind::C128, Exact::Integer(value)) => (value as f64).to_le_bytes().to_vec(),
            (Kind::F64 | Kind::C128, Exact::Real(value)) => value.to_le_bytes().to_vec(),
        }
    }

    fn is_nan(self, bytes: &[u8]) -> bool {
        !matches!(self, Kind::Bool | Kind::Integer { .. })
            && matches!(self.read(bytes), Exact::Real(value) if value.is_nan())
    }

    /// Equal in bits, where a NaN is like another.
    fn same(self, left: &[u8], right: &[u8]) -> bool {
        match self.part() {
            Some(part) => {
                let half = self.bytes() / 2;
                part.same(&left[..half], &right[..half]) && part.same(&left[half..], &right[half..])
            }
            None => left == right || (self.is_nan(left) && self.is_nan(right)),
        }
    }
}

/// To `f32`, truncated, and odd where that was not exact: a half made of it is rounded as if it were made of the number.
fn to_odd(value: Exact) -> f32 {
    let (near, exact, above) = match value {
        Exact::Integer(value) => {
            let near = value as f32;
            (near, near as i128 == value, (near as i128).abs() > value.abs())
        }
        Exact::Real(value) => {
            let near = value as f32;
            (near, value.is_nan() || f64::from(near) == value, f64::from(near.abs()) > value.abs())
        }
    };
    if exact { near } else { f32::from_bits((near.to_bits() - u32::from(above)) | 1) }
}

fn converted(from: Kind, to: Kind, source: &[u8]) -> Vec<u8> {
    let half = source.len() / 2;
    let (real, imaginary) = match from.part() {
        Some(part) => (part.read(&source[..half]), Some(part.read(&source[half..]))),
        None => (from.read(source), None),
    };
    match (to, to.part(), imaginary) {
        (Kind::Bool, _, Some(imaginary)) => {
            vec![to.write(real)[0] | to.write(imaginary)[0]]
        }
        (_, Some(part), _) => {
            let imaginary = imaginary.unwrap_or(Exact::Integer(0));
            [part.write(real), part.write(imaginary)].concat()
        }
        _ => to.write(real),
    }
}

/// Any bits, and numbers around the limits and ties of the other types.
fn sources(kind: Kind, count: usize, numbers: &mut Numbers) -> Vec<u8> {
    let reals = [
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        0.999,
        127.5,
        128.0,
        -128.9,
        255.4,
        256.0,
        32_767.9,
        65_504.0,
        65_519.9,
        65_520.0,
        65_536.0,
        -1e9,
        2_147_483_647.5,
        4_294_967_296.0,
        9.3e18,
        -9.3e18,
        1.9e19,
        3e38,
        1e-40,
        5e-8,
        6e-5,
        1e300,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1.0 + 1.0 / 2048.0,
        1.0 + 3.0 / 2048.0,
        1.000_488_281_250_01,
        1.00390625,
        1.003_906_250_000_1,
        257.0,
        258.0,
    ];
    let part = kind.part().unwrap_or(kind);
    let parts = count * kind.bytes() / part.bytes();
    let mut bytes = Vec::new();
    for _ in 0..parts {
        let written = match (part, numbers.below(3)) {
            (Kind::Bool | Kind::Integer { .. }, choice) => {
                let word = u64::from(numbers.next()) << 32 | u64::from(numbers.next());
                // Few bits, many bits, and one around a power of two.
                let value = match choice {
                    0 => word,
                    1 => word >> (word % 64),
                    _ => (1u64 << (word % 64)).wrapping_add(word >> 62).wrapping_sub(1),
                };
                value.to_le_bytes()[..part.bytes()].to_vec()
            }
            (_, 0) => part.write(Exact::Real(reals[numbers.below(reals.len())])),
            (_, 1) => {
                let word = u64::from(numbers.next()) << 32 | u64::from(numbers.next());
                word.to_le_bytes()[..part.bytes()].to_vec()
            }
            _ => part.write(Exact::Real(f64::from(numbers.next() as i32) / 1024.0)),
        };
        bytes.extend(written);
    }
    bytes
}

pub fn every_pair() -> Outcome {
    const LENGTH: usize = 4099;
    let stream = Device::new(0)?.stream()?;
    let mut numbers = Numbers(5);
    for (from_name, from) in TYPES {
        let module = selvedge::images::load(&stream.device(), &format!("cast_{from_name}"))?;
        let source = sources(from, LENGTH, &mut numbers);
        let on_device = stream.upload(&source)?;
        for (to_name, to) in TYPES {
            let name = format!("cast_{from_name}_{to_name}");
            let function = module.function(&name)?;
            // From the first element and from the second, where whole vectors are not aligned.
            for first in [0, 1] {
                let count = LENGTH - first;
                let mut out = stream.upload(&vec![0xCCu8; (LENGTH + 2) * to.bytes()])?;
                let range = first * to.bytes()..LENGTH * to.bytes();
                let arguments =
                    (on_device.slice(first * from.bytes()..)?, out.slice_mut(range)?, count as u64);
                // SAFETY: the kernel reads and writes `count` elements of the slices.
                unsafe { function.launch(&stream, elementwise_launch(count, to.bytes()), arguments)? };
                let out = stream.download(&out)?;
                for index in first..LENGTH {
                    let given = &source[index * from.bytes()..(index + 1) * from.bytes()];
                    let found = &out[index * to.bytes()..(index + 1) * to.bytes()];
                    let wanted = converted(from, to, given);
                    assert!(
                        to.same(found, &wanted),
                        "{name} of {:?} ({given:02x?}) is {found:02x?}, wanted {wanted:02x?}",
                        from.read(given)
                    );
                }
                assert_all(&out[LENGTH * to.bytes()..], 0xCC, &name);
                assert_all(&out[..first * to.bytes()], 0xCC, &name);
            }
        }
    }
    Ok(())
}
