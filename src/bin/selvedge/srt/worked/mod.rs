//! The worked numbers of the golden-ratio operations: each case computes one example of their definitions.
//!
//! `selvedge srt verify` checks them on every device of a machine; `tests/srt/worked.rs` and `tests/gpu/srt.rs` include this
//! module. A case is one line of a table: the operation, its section, its tolerance class, the computation and the numbers.

use std::ops::Deref;

use selvedge::srt::ProductMode;
use selvedge::{DType, Device, Result, Tensor};

mod evolver;
mod exact;
mod lattice;
mod norms;
mod phases;
mod products;
mod values;

/// How far the result on a CUDA device may be from the one on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The same bits.
    T0,
    /// Two units in the last place.
    T1,
    /// Chains of transcendental functions: 1e-14, in f32 2e-6, relative.
    T2,
    /// A sum of so many terms: 2 · terms · ε of the largest number, plus T2. ε is 2⁻⁵³, in f32 2⁻²⁴.
    T3(u32),
    /// Decisions, whose examples keep away from ties: the same result.
    T4,
    /// This power of ten, relative to the largest number; in f32 as T2.
    Relative(i32),
}

impl Class {
    pub fn name(self) -> String {
        match self {
            Class::T0 => "T0".to_owned(),
            Class::T1 => "T1".to_owned(),
            Class::T2 => "T2".to_owned(),
            Class::T3(_) => "T3".to_owned(),
            Class::T4 => "T4".to_owned(),
            Class::Relative(power) => format!("1e{power}"),
        }
    }

    /// Returns whether a number that a CUDA device computed in f64 or f32 agrees with the CPU's. `largest` is the largest
    /// magnitude of the result.
    pub fn agrees(self, dtype: DType, found: f64, wanted: f64, largest: f64) -> bool {
        let (epsilon, chain, least) = match dtype {
            DType::F32 => (f64::from(f32::EPSILON) / 2.0, 2e-6, 1e-37),
            _ => (f64::EPSILON / 2.0, 1e-14, 1e-300),
        };
        let difference = (found - wanted).abs();
        let is_same = found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan();
        is_same
            || match self {
                Class::T0 | Class::T4 => false,
                Class::T1 => difference <= 4.0 * epsilon * wanted.abs(),
                Class::T2 => difference <= (chain * wanted.abs()).max(least),
                Class::T3(terms) => {
                    difference <= 2.0 * f64::from(terms) * epsilon * largest + chain * wanted.abs()
                }
                Class::Relative(power) => difference <= chain.max(10f64.powi(power)) * largest,
            }
    }
}

/// Numbers that a case finds or wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    Floats(Vec<f64>),
    Integers(Vec<i128>),
}

impl From<f64> for Numbers {
    fn from(number: f64) -> Numbers {
        Numbers::Floats(vec![number])
    }
}

impl From<Vec<f64>> for Numbers {
    fn from(numbers: Vec<f64>) -> Numbers {
        Numbers::Floats(numbers)
    }
}

impl From<Vec<i128>> for Numbers {
    fn from(numbers: Vec<i128>) -> Numbers {
        Numbers::Integers(numbers)
    }
}

/// The elements of tensors, one after another: integers if all are, the parts of complex numbers in turn.
pub fn numbers<const COUNT: usize>(tensors: [&Tensor; COUNT]) -> Result<Numbers> {
    if tensors.iter().any(|tensor| !tensor.dtype().is_integer()) {
        let mut all = Vec::new();
        for tensor in tensors {
            let is_complex = tensor.dtype().is_complex();
            let parts = if is_complex { tensor.view_as_real()? } else { tensor.clone() };
            all.extend(parts.cast(DType::F64)?.to_vec::<f64>()?);
        }
        return Ok(all.into());
    }
    let mut all: Vec<i128> = Vec::new();
    for tensor in tensors {
        match tensor.dtype() {
            DType::U64 => all.extend(tensor.to_vec::<u64>()?.into_iter().map(i128::from)),
            _ => all.extend(tensor.cast(DType::I64)?.to_vec::<i64>()?.into_iter().map(i128::from)),
        }
    }
    Ok(all.into())
}

/// A device, and the precision of the tensors that a case makes there: f64 or f32.
pub struct CaseDevice {
    device: Device,
    dtype: DType,
}

impl Deref for CaseDevice {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.device
    }
}

/// A tensor of the case's precision.
pub fn tensor(device: &CaseDevice, shape: &[usize], elements: &[f64]) -> Result<Tensor> {
    Tensor::from_slice(elements, shape, device)?.cast(device.dtype)
}

/// A vector of the case's precision.
pub fn vector(device: &CaseDevice, elements: &[f64]) -> Result<Tensor> {
    tensor(device, &[elements.len()], elements)
}

#[derive(Clone, Copy)]
pub enum Computation {
    /// Runs on the host alone.
    Host(fn() -> Result<Numbers>),
    Device(fn(&CaseDevice) -> Result<Numbers>),
    Product(fn(&CaseDevice, ProductMode) -> Result<Numbers>, ProductMode),
}

/// One worked example.
pub struct Case {
    pub operation: String,
    pub section: &'static str,
    pub class: Class,
    pub computation: Computation,
    pub wanted: Numbers,
    /// The largest relative error of a float: 1e-12 unless the definition has another.
    pub relative: f64,
    /// The largest absolute error that is allowed beside the relative one.
    pub absolute: f64,
    /// Both for the computation in f32, of operations that have one.
    single: Option<[f64; 2]>,
}

impl Case {
    fn new(
        operation: &str,
        section: &'static str,
        class: Class,
        computation: Computation,
        wanted: Numbers,
    ) -> Case {
        let operation = operation.to_owned();
        Case { operation, section, class, computation, wanted, relative: 1e-12, absolute: 0.0, single: None }
    }

    fn within(mut self, relative: f64, absolute: f64) -> Case {
        (self.relative, self.absolute) = (relative, absolute);
        self
    }

    /// Adds the computation in f32, within 2e-6.
    fn in_f32(self) -> Case {
        self.in_f32_within(2e-6, 0.0)
    }

    fn in_f32_within(mut self, relative: f64, absolute: f64) -> Case {
        self.single = Some([relative, absolute]);
        self
    }

    /// The precisions of the computation, f64 first.
    pub fn dtypes(&self) -> &'static [DType] {
        if self.single.is_some() { &[DType::F64, DType::F32] } else { &[DType::F64] }
    }

    pub fn is_on_host(&self) -> bool {
        matches!(self.computation, Computation::Host(_))
    }

    pub fn compute(&self, device: &Device, dtype: DType) -> Result<Numbers> {
        let device = CaseDevice { device: *device, dtype };
        match self.computation {
            Computation::Host(run) => run(),
            Computation::Device(run) => run(&device),
            Computation::Product(run, mode) => run(&device, mode),
        }
    }

    /// Returns the largest relative error, the absolute one next to 0, and whether all numbers pass.
    pub fn error(&self, found: &Numbers, dtype: DType) -> (f64, bool) {
        let of_f64 = [self.relative, self.absolute];
        let [relative, absolute] = if dtype == DType::F32 { self.single.unwrap_or(of_f64) } else { of_f64 };
        match (found, &self.wanted) {
            (Numbers::Floats(found), Numbers::Floats(wanted)) if found.len() == wanted.len() => {
                let (mut largest, mut good) = (0.0f64, true);
                for (found, wanted) in found.iter().zip(wanted) {
                    let difference = (found - wanted).abs();
                    let error = if *wanted == 0.0 { difference } else { difference / wanted.abs() };
                    // A NaN must not be lost in the maximum.
                    largest = if error.is_nan() { f64::INFINITY } else { largest.max(error) };
                    good &= difference <= relative * wanted.abs() + absolute;
                }
                (largest, good)
            }
            (Numbers::Integers(found), Numbers::Integers(wanted)) if found.len() == wanted.len() => {
                let differences = found.iter().zip(wanted).map(|(found, wanted)| found.abs_diff(*wanted));
                let largest = differences.max().unwrap_or(0);
                (largest as f64, largest == 0)
            }
            _ => (f64::INFINITY, false),
        }
    }

    /// Returns whether the numbers of a CUDA device agree with the CPU's by the class.
    pub fn agrees(&self, found: &Numbers, cpu: &Numbers, dtype: DType) -> bool {
        match (found, cpu) {
            (Numbers::Floats(found), Numbers::Floats(cpu)) if found.len() == cpu.len() => {
                let largest = cpu.iter().fold(0.0f64, |largest, number| largest.max(number.abs()));
                let mut pairs = found.iter().zip(cpu);
                pairs.all(|(found, cpu)| self.class.agrees(dtype, *found, *cpu, largest))
            }
            (found, cpu) => found == cpu,
        }
    }
}

fn on_host(
    operation: &str,
    section: &'static str,
    class: Class,
    run: fn() -> Result<Numbers>,
    wanted: impl Into<Numbers>,
) -> Case {
    Case::new(operation, section, class, Computation::Host(run), wanted.into())
}

fn on_device(
    operation: &str,
    section: &'static str,
    class: Class,
    run: fn(&CaseDevice) -> Result<Numbers>,
    wanted: impl Into<Numbers>,
) -> Case {
    Case::new(operation, section, class, Computation::Device(run), wanted.into())
}

/// Returns every case, in the order of the sections.
pub fn cases() -> Vec<Case> {
    let mut cases = values::constants();
    cases.extend(products::cases());
    cases.extend(values::cases());
    cases.extend(exact::cases());
    cases.extend(phases::cases());
    cases.extend(lattice::cases());
    cases.extend(norms::cases());
    cases.extend(evolver::cases());
    let order = |case: &Case| {
        let mut parts = case.section.split('.').map(|part| part.parse().unwrap_or(0u32));
        (parts.next(), parts.next())
    };
    cases.sort_by_key(order);
    cases
}
