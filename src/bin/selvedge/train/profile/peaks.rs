//! The limits of a card: bytes a second of its memory, and operations a second by dtype.
//!
//! The bytes are those that a copy on the card reads and writes, as measured here. The operations are the product of a clock and a
//! width that the driver reports, so they are the card's peak at its highest clock, which tensor cores under load stay below.

use selvedge::Result;
use selvedge::driver::{Attribute, Device};

/// Bytes of a measured copy, which no cache holds.
const COPY: usize = 256 << 20;
/// Copies of a measurement, of which the fastest counts.
const COPIES: usize = 5;

/// Operations of a multiprocessor in a clock, by dtype.
struct Rates {
    capability: (i32, i32),
    per_clock: [(&'static str, f64); 4],
}

/// Dense operations, of which a multiplication and an addition are two. They are those of tensor cores where the library's
/// products use them, which is f16, bf16 and f64; f32 is ordinary arithmetic.
///
/// Sources: "NVIDIA A100 Tensor Core GPU Architecture", table 1 (108 multiprocessors at 1.41 GHz: 312, 19.5 and 19.5 Tflop/s);
/// "NVIDIA H100 Tensor Core GPU Architecture", table 1 (132 multiprocessors: 989.4 Tflop/s at 1.83 GHz, 66.9 and 66.9 at 1.98 GHz);
/// CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions" (f32: 64 a clock for 8.0, 128 for 9.0).
const RATES: [Rates; 2] = [
    Rates {
        capability: (8, 0),
        per_clock: [("f16", 2048.0), ("bf16", 2048.0), ("f32", 128.0), ("f64", 128.0)],
    },
    Rates {
        capability: (9, 0),
        per_clock: [("f16", 4096.0), ("bf16", 4096.0), ("f32", 256.0), ("f64", 256.0)],
    },
];

/// The limits of a card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    capability: (i32, i32),
    /// Clocks a second of all multiprocessors together.
    clocks: f64,
    /// Bytes a second that a copy on the card reads and writes.
    pub bytes: f64,
}

/// Measures a copy on the card, in bytes a second.
fn copy_rate(device: &Device) -> Result<f64> {
    let stream = device.stream()?;
    let from = stream.zeros::<u8>(COPY)?;
    let mut to = stream.zeros::<u8>(COPY)?;
    let (mut start, mut end) = (device.timing_event()?, device.timing_event()?);
    let mut fastest = f64::INFINITY;
    for _ in 0..COPIES {
        start.record(&stream)?;
        stream.copy(&from, &mut to)?;
        end.record(&stream)?;
        end.synchronize()?;
        fastest = fastest.min(f64::from(start.elapsed_ms(&end)?) / 1e3);
    }
    Ok(2.0 * COPY as f64 / fastest)
}

impl Peaks {
    /// # Errors
    ///
    /// The driver does not know an attribute, and errors of memory.
    pub fn of(device: &Device) -> Result<Peaks> {
        let attribute = |attribute| device.attribute(attribute).map(f64::from);
        // In kHz.
        let clocks = attribute(Attribute::CLOCK_RATE)? * 1e3;
        Ok(Peaks {
            capability: device.compute_capability(),
            clocks: clocks * attribute(Attribute::MULTIPROCESSOR_COUNT)?,
            bytes: copy_rate(device)?,
        })
    }

    /// Operations a second with operands of this dtype; `None` for a dtype or a compute capability without an entry. Complex
    /// products have the operations of their parts.
    pub fn operations(&self, dtype: &str) -> Option<f64> {
        let dtype = match dtype {
            "c64" => "f32",
            "c128" => "f64",
            other => other,
        };
        let rates = RATES.iter().find(|rates| rates.capability == self.capability)?;
        let (_, per_clock) = rates.per_clock.iter().find(|(name, _)| *name == dtype)?;
        Some(per_clock * self.clocks)
    }
}

#[cfg(test)]
impl Peaks {
    /// A card with 2 * 10^9 bytes and 10^9 clocks a second.
    pub fn of_test(capability: (i32, i32)) -> Peaks {
        Peaks { capability, clocks: 1e9, bytes: 2e9 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_those_of_the_data_sheets() {
        let a100 = Peaks { capability: (8, 0), clocks: 108.0 * 1.41e9, bytes: 0.0 };
        let h100 = |clock: f64| Peaks { capability: (9, 0), clocks: 132.0 * clock, bytes: 0.0 };
        for (peaks, dtype, wanted) in [
            (a100, "f16", 312e12),
            (a100, "bf16", 312e12),
            (a100, "f32", 19.5e12),
            (a100, "f64", 19.5e12),
            (h100(1.83e9), "f16", 989.4e12),
            (h100(1.83e9), "bf16", 989.4e12),
            (h100(1.98e9), "f32", 66.9e12),
            (h100(1.98e9), "f64", 66.9e12),
            (h100(1.98e9), "c64", 66.9e12),
        ] {
            let found = peaks.operations(dtype).unwrap();
            assert!((found / wanted - 1.0).abs() < 2e-3, "{dtype}: {found:e}, not {wanted:e}");
        }
        assert_eq!(a100.operations("i8"), None);
        assert_eq!(Peaks { capability: (7, 0), ..a100 }.operations("f32"), None);
    }
}
