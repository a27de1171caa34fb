//! The crate's CUDA headers on a device: every bit that they compute, held against the crates `half` and `num_complex` and
//! this crate's own complex arithmetic. Each runs as machine code of the device and as PTX for sm_75, which has no
//! instructions for bfloat16, and with and without the options that make arithmetic faster.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex;
use selvedge::driver::{Device, KernelArgument, LaunchConfig, driver_isa};
use selvedge::launcher::{Definition, Launcher};
use selvedge::nvrtc::{self, Cache, Program, Target};
use selvedge::types::complex::{self, Part};

use crate::support::{Need, Numbers, Outcome, device_tests};

device_tests! {
    f16_is_that_of_the_crate_half => needs(Need::Nvrtc),
    bf16_is_that_of_the_crate_half => needs(Need::Nvrtc),
    c64_is_that_of_the_cpu => needs(Need::Nvrtc),
    c128_is_that_of_the_cpu => needs(Need::Nvrtc),
}

/// Options that change no result of the headers. (`--ftz=true`, which the second would imply, flushes subnormals to 0.)
const OPTIONS: &[&[&str]] = &[&[], &["--use_fast_math", "--ftz=false"]];

/// A launcher with these kernels of a program, for every target and all options.
fn each(program: &Program, names: &[&str], check: impl Fn(&Launcher) -> Outcome) -> Outcome {
    let device = Device::new(0)?;
    let mut targets =
        vec![Target::for_device_in(device.compute_capability(), driver_isa()?, &Cache::none())?];
    if nvrtc::isa()? <= driver_isa()? {
        targets.push("compute_75".parse()?);
    }
    for target in targets {
        for options in OPTIONS {
            let program = options.iter().fold(program.clone(), |program, option| program.option(*option));
            let program = names.iter().fold(program, |program, name| program.expression(*name));
            let compiled = program.compile(target, &Cache::none())?;
            let launcher = Launcher::with_cache(&device, Cache::none())?;
            for name in names {
                let entry = compiled.lowered_name(name).ok_or("no lowered name")?;
                launcher.define(Definition::new(*name).image(compiled.image()).entry(entry))?;
            }
            check(&launcher).map_err(|error| {
                format!("{target} {options:?}: {}", error.message().unwrap_or("failed without a word"))
            })?;
        }
    }
    Ok(())
}

/// f16 and bf16: sixteen bits, of which the last are the fraction's.
trait Small:
    Pod
    + Debug
    + PartialOrd
    + KernelArgument
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    const HEADER: &'static str;
    const NAME: &'static str;
    const INFINITY: u16;
    /// The value of infinity's bits, were it the next finite number.
    const PAST_LARGEST: f64;
    /// The one NaN that the header makes, where it says so.
    const NAN: Option<u16>;
    fn of(bits: u16) -> Self;
    fn bits(self) -> u16;
    fn wide(self) -> f32;
    fn rounded(wide: f32) -> Self;
}

macro_rules! small {
    ($type:ident, $header:literal, $past:expr, $nan:expr) => {
        impl Small for $type {
            const HEADER: &'static str = $header;
            const NAME: &'static str = stringify!($type);
            const INFINITY: u16 = $type::INFINITY.to_bits();
            const PAST_LARGEST: f64 = $past;
            const NAN: Option<u16> = $nan;
            fn of(bits: u16) -> $type {
                $type::from_bits(bits)
            }
            fn bits(self) -> u16 {
                self.to_bits()
            }
            fn wide(self) -> f32 {
                self.to_f32()
            }
            fn rounded(wide: f32) -> $type {
                $type::from_f32(wide)
            }
        }
    };
}

small!(f16, "half.cuh", 65_536.0, None);
// 2 to the 128th.
small!(bf16, "bfloat16.cuh", f32::MAX as f64 + 2.028_240_960_365_167e31, Some(0x7fff));

const SMALL: &str = r#"
#include <selvedge/HEADER>
typedef selvedge::NAME Small;
__global__ void unary(float *wide, float *mixed, Small *negated, Small *magnitude, Small *root, float add) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    Small x = Small::from_bits(i);
    wide[i] = x;
    mixed[i] = x + add;
    negated[i] = -x;
    magnitude[i] = abs(x);
    root[i] = sqrt(x);
}
__global__ void binary(Small *sum, Small *difference, Small *product, Small *quotient, unsigned char *order, Small y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    Small x = Small::from_bits(i), a = x, b = x, c = x, d = x;
    sum[i] = x + y;
    difference[i] = x - y;
    product[i] = x * y;
    quotient[i] = x / y;
    a += y, b -= y, c *= y, d /= y;
    bool same = a.bits == sum[i].bits && b.bits == difference[i].bits && c.bits == product[i].bits && d.bits == quotient[i].bits;
    order[i] = (x == y) | (x != y) << 1 | (x < y) << 2 | (x <= y) << 3 | (x > y) << 4 | (x >= y) << 5 | same << 6;
}
template <typename Number> __global__ void round(const Number *x, Small *rounded, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) rounded[i] = Small(x[i]);
}
"#;

const SMALL_KERNELS: &[&str] = &[
    "unary",
    "binary",
    "round<float>",
    "round<double>",
    "round<int>",
    "round<unsigned>",
    "round<long long>",
    "round<unsigned long long>",
    "round<long>",
    "round<unsigned long>",
];

/// A number whose order among the midpoints between two small ones is known exactly.
trait Exact: Pod + Debug {
    fn is_nan(self) -> bool {
        false
    }
    fn is_negative(self) -> bool;
    /// How its magnitude compares with a number that is not negative.
    fn compare(self, with: f64) -> Ordering;
}

/// Floats whose neighbours can be named.
trait Neighbours: Sized {
    /// The next larger one and the next smaller one in magnitude.
    fn beside(self) -> [Self; 2];
}

macro_rules! exact_floats {
    ($($type:ident)*) => {$(
        impl Neighbours for $type {
            fn beside(self) -> [$type; 2] {
                [self.to_bits().wrapping_add(1), self.to_bits().wrapping_sub(1)].map($type::from_bits)
            }
        }

        impl Exact for $type {
            fn is_nan(self) -> bool {
                self != self
            }
            fn is_negative(self) -> bool {
                self.is_sign_negative()
            }
            fn compare(self, with: f64) -> Ordering {
                f64::from(self.abs()).total_cmp(&with)
            }
        }
    )*};
}

macro_rules! exact_integers {
    ($($type:ty)*) => {$(
        impl Exact for $type {
            fn is_negative(self) -> bool {
                i128::from(self) < 0
            }
            fn compare(self, with: f64) -> Ordering {
                // A number past any integer stays past them.
                let whole = i128::from(self).abs().cmp(&(with.floor() as i128));
                if whole == Ordering::Equal && with.fract() > 0.0 { Ordering::Less } else { whole }
            }
        }
    )*};
}

exact_floats! { f32 f64 }
exact_integers! { i32 u32 i64 u64 }

/// The numbers halfway between each small number and the next. All are exact.
fn halfways<S: Small>() -> Vec<f64> {
    let number = |bits| if bits == S::INFINITY { S::PAST_LARGEST } else { f64::from(S::of(bits).wide()) };
    (0..S::INFINITY).map(|bits| (number(bits) + number(bits + 1)) / 2.0).collect()
}

/// The nearest small number, the even one of two that are as near.
fn nearest<S: Small>(x: impl Exact, halfways: &[f64]) -> S {
    if x.is_nan() {
        return S::of(S::INFINITY + 1);
    }
    let below = halfways.partition_point(|halfway| x.compare(*halfway) == Ordering::Greater);
    let tie = halfways.get(below).is_some_and(|halfway| x.compare(*halfway) == Ordering::Equal);
    let bits = below as u16 + u16::from(tie && below % 2 == 1);
    S::of(bits | u16::from(x.is_negative()) << 15)
}

/// Returns whether both numbers have the same bits; any NaN will do for NaN, or the one that the header makes.
fn is_made<S: Small>(found: S, wanted: S) -> bool {
    let is_nan = |x: S| x.bits() & 0x7fff > S::INFINITY;
    if is_nan(wanted) {
        S::NAN.map_or(is_nan(found), |nan| found.bits() == nan)
    } else {
        found.bits() == wanted.bits()
    }
}

fn is_wide(found: f32, wanted: f32) -> bool {
    found.to_bits() == wanted.to_bits() || (found.is_nan() && wanted.is_nan())
}

const ALL: usize = 1 << 16;

fn small<S: Small>() -> Outcome {
    let source = SMALL.replace("HEADER", S::HEADER).replace("NAME", S::NAME);
    each(&Program::new("small.cu", source), SMALL_KERNELS, |launcher| {
        unary::<S>(launcher)?;
        binary::<S>(launcher)?;
        conversions::<S>(launcher)
    })
}

fn unary<S: Small>(launcher: &Launcher) -> Outcome {
    let stream = launcher.stream();
    let (mut wide, mut mixed) = (stream.zeros::<f32>(ALL)?, stream.zeros::<f32>(ALL)?);
    let mut small = [stream.zeros::<S>(ALL)?, stream.zeros::<S>(ALL)?, stream.zeros::<S>(ALL)?];
    let [negated, magnitude, root] = &mut small;
    // SAFETY: each thread touches one element, and there are as many threads as elements.
    unsafe { launcher.run("unary", 256, 256, (&mut wide, &mut mixed, negated, magnitude, root, 0.1f32))? };
    let (wide, mixed) = (stream.download(&wide)?, stream.download(&mixed)?);
    let [negated, magnitude, root] = &small;
    let (negated, magnitude) = (stream.download(negated)?, stream.download(magnitude)?);
    let root = stream.download(root)?;
    for bits in 0..=u16::MAX {
        let (i, x) = (usize::from(bits), S::of(bits));
        assert!(is_wide(wide[i], x.wide()), "{bits:#x} to float: {}", wide[i]);
        assert!(is_wide(mixed[i], x.wide() + 0.1), "{x:?} + 0.1f: {}", mixed[i]);
        assert_eq!(negated[i].bits(), (-x).bits(), "-{x:?}");
        assert_eq!(magnitude[i].bits(), bits & 0x7fff, "abs({x:?})");
        assert!(is_made(root[i], S::rounded(x.wide().sqrt())), "sqrt({x:?}): {:?}", root[i]);
    }
    Ok(())
}

/// The ends of every kind of number, and some between.
fn partners<S: Small>() -> Vec<u16> {
    let one = nearest::<S>(1, &halfways::<S>()).bits();
    // The smallest number that is not subnormal.
    let normal = (0..S::INFINITY)
        .find(|bits| S::of(*bits + 1).wide() / S::of(*bits).wide() < 1.0 + 1.0 / 128.0 / 16.0);
    let normal = normal.unwrap_or(S::INFINITY & !(S::INFINITY << 1));
    let mut bits =
        vec![0, 1, 2, 3, normal - 1, normal, normal + 1, one - 1, one, one + 1, one / 2 + 77, one + one / 3];
    bits.extend([S::INFINITY - 2, S::INFINITY - 1, S::INFINITY, S::INFINITY + 1, 0x7fff]);
    let mut numbers = Numbers(11);
    bits.extend((0..8).map(|_| numbers.next() as u16 & 0x7fff));
    bits.iter().flat_map(|bits| [*bits, bits | 0x8000]).collect()
}

fn binary<S: Small>(launcher: &Launcher) -> Outcome {
    let stream = launcher.stream();
    let mut small = [stream.zeros::<S>(ALL)?, stream.zeros(ALL)?, stream.zeros(ALL)?, stream.zeros(ALL)?];
    let mut order = stream.zeros::<u8>(ALL)?;
    for y in partners::<S>().into_iter().map(S::of) {
        let [sum, difference, product, quotient] = &mut small;
        // SAFETY: each thread touches one element, and there are as many threads as elements.
        unsafe { launcher.run("binary", 256, 256, (sum, difference, product, quotient, &mut order, y))? };
        let found =
            small.iter().map(|buffer| stream.download(buffer)).collect::<selvedge::Result<Vec<Vec<S>>>>()?;
        let order = stream.download(&order)?;
        for bits in 0..=u16::MAX {
            let (i, x) = (usize::from(bits), S::of(bits));
            for (found, (sign, wanted)) in
                found.iter().zip([('+', x + y), ('-', x - y), ('*', x * y), ('/', x / y)])
            {
                assert!(is_made(found[i], wanted), "{x:?} {sign} {y:?}: {:?}, not {wanted:?}", found[i]);
            }
            let wanted = [x == y, x != y, x < y, x <= y, x > y, x >= y, true];
            let wanted = wanted.iter().rev().fold(0, |bits, bit| bits << 1 | u8::from(*bit));
            assert_eq!(order[i], wanted, "{x:?} and {y:?} compared, and the operators that assign");
        }
    }
    Ok(())
}

fn conversions<S: Small>(launcher: &Launcher) -> Outcome {
    let halfways = halfways::<S>();
    let mut numbers = Numbers(12);
    let mut word = || u64::from(numbers.next()) << 32 | u64::from(numbers.next());
    let mut random = || (0..100_000).map(|_| word()).collect::<Vec<u64>>();
    // Every small number, what is halfway to the next, and what is just beside that, of both signs.
    let mut doubles: Vec<f64> = halfways.clone();
    doubles.extend(halfways.iter().flat_map(|x| x.beside()));
    doubles.extend((0..=S::INFINITY + 1).map(|bits| f64::from(S::of(bits).wide())));
    doubles.extend([
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        f64::MAX,
        f64::NAN,
        f64::from(f32::MAX).beside()[0],
    ]);
    doubles.extend(random().into_iter().map(f64::from_bits));
    doubles.extend(doubles.clone().iter().map(|x| -x));
    let mut floats: Vec<f32> = doubles.iter().map(|x| *x as f32).collect();
    floats.extend(floats.clone().iter().flat_map(|x| x.beside()));
    floats.extend(random().into_iter().map(|word| f32::from_bits(word as u32)));
    // Integers about the same places, and of every length.
    let near = halfways.iter().filter(|x| (1.0..1.8e19).contains(*x)).map(|x| *x as u64);
    let mut longs: Vec<u64> = near.flat_map(|x| [x.saturating_sub(1), x, x.saturating_add(1)]).collect();
    longs.extend(random().into_iter().enumerate().map(|(index, word)| word >> (index % 64)));
    longs.extend([
        0,
        1,
        u64::MAX,
        i64::MAX as u64,
        i64::MIN as u64,
        u64::from(u32::MAX),
        i32::MIN as u32 as u64,
    ]);
    longs.extend(longs.clone().iter().map(|x| x.wrapping_neg()));
    let signed: Vec<i64> = longs.iter().map(|x| *x as i64).collect();
    let words: Vec<u32> = longs.iter().map(|x| *x as u32).collect();
    let signed_words: Vec<i32> = longs.iter().map(|x| *x as i32).collect();

    for x in &floats {
        // The reference is itself held against the crate.
        assert!(is_made::<S>(nearest(*x, &halfways), S::rounded(*x)) || x.is_nan(), "{x:e}");
    }
    converts::<S, f32>(launcher, "round<float>", &floats, &halfways)?;
    converts::<S, f64>(launcher, "round<double>", &doubles, &halfways)?;
    converts::<S, i32>(launcher, "round<int>", &signed_words, &halfways)?;
    converts::<S, u32>(launcher, "round<unsigned>", &words, &halfways)?;
    for name in ["round<long long>", "round<long>"] {
        converts::<S, i64>(launcher, name, &signed, &halfways)?;
    }
    for name in ["round<unsigned long long>", "round<unsigned long>"] {
        converts::<S, u64>(launcher, name, &longs, &halfways)?;
    }
    Ok(())
}

fn converts<S: Small, N: Exact>(launcher: &Launcher, name: &str, numbers: &[N], halfways: &[f64]) -> Outcome {
    let stream = launcher.stream();
    let (x, mut rounded) = (stream.upload(numbers)?, stream.zeros::<S>(numbers.len())?);
    let config = LaunchConfig::for_elements(numbers.len());
    // SAFETY: the kernel touches that many elements of each.
    unsafe { launcher.run_on(stream, name, config, (&x, &mut rounded, numbers.len() as u32))? };
    for (x, found) in numbers.iter().zip(stream.download(&rounded)?) {
        let wanted: S = nearest(*x, halfways);
        assert!(is_made(found, wanted), "{name} of {x:?}: {found:?}, not {wanted:?}");
    }
    Ok(())
}

fn f16_is_that_of_the_crate_half() -> Outcome {
    small::<f16>()
}

fn bf16_is_that_of_the_crate_half() -> Outcome {
    small::<bf16>()
}

const COMPLEX: &str = r#"
#include <selvedge/complex.cuh>
typedef PART Part;
typedef selvedge::complex<Part> Complex;
__global__ void both(const Complex *x, const Complex *y, Complex *result, unsigned char *equal, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Complex all[] = {x[i] + y[i], x[i] - y[i], x[i] * y[i], x[i] / y[i], x[i] * y[i].real, y[i].real * x[i], x[i] / y[i].real,
                     -x[i], conjugate(x[i]), {norm_squared(x[i]), abs(x[i])}};
    for (unsigned k = 0; k < RESULTS; ++k) result[RESULTS * i + k] = all[k];
    Complex a = x[i], b = x[i], c = x[i], d = x[i];
    a += y[i], b -= y[i], c *= y[i], d /= y[i];
    // A NaN is not equal to itself.
    #define SAME(u, v) ((u == v || u != u) && (v == u || v != v))
    bool same = true;
    Complex assigned[] = {a, b, c, d};
    for (unsigned k = 0; k < 4; ++k)
        same = same && SAME(assigned[k].real, all[k].real) && SAME(assigned[k].imaginary, all[k].imaginary);
    equal[i] = (x[i] == y[i]) | (x[i] != y[i]) << 1 | same << 2;
}
"#;

/// The results of one pair; the last has two numbers that are no complex one's parts.
const RESULTS: usize = 10;

trait ComplexPart: Part + Debug + Pod + Neg<Output = Self> {
    const NAME: &'static str;
    const ENDS: &'static [Self];
    fn random(word: u64) -> Self;
    /// The magnitude, without what overflows on the way.
    fn hypotenuse(self, other: Self) -> Self;
    fn same(self, other: Self) -> bool;
    /// Returns whether the two are within a few units in the last place.
    fn near(self, other: Self) -> bool;
}

macro_rules! complex_parts {
    ($($type:ident $name:literal $bits:ty;)*) => {$(
        impl ComplexPart for $type {
            const NAME: &'static str = $name;
            const ENDS: &'static [$type] = &[
                0.0, 1.0, -1.5, $type::EPSILON, $type::MIN_POSITIVE, $type::from_bits(1), $type::from_bits(12_345),
                $type::MAX, $type::INFINITY, $type::NAN, 3.0, 0.1,
            ];
            fn random(word: u64) -> $type {
                $type::from_bits(word as $bits)
            }
            fn hypotenuse(self, other: $type) -> $type {
                self.hypot(other)
            }
            fn same(self, other: $type) -> bool {
                self.to_bits() == other.to_bits() || (self.is_nan() && other.is_nan())
            }
            fn near(self, other: $type) -> bool {
                self.same(other) || self.to_bits().abs_diff(other.to_bits()) <= 6
            }
        }
    )*};
}

complex_parts! {
    f32 "float" u32;
    f64 "double" u64;
}

fn complex_numbers<P: ComplexPart>() -> Outcome
where
    Complex<P>: Pod,
    for<'a> &'a selvedge::driver::DeviceBuffer<Complex<P>>: KernelArgument,
{
    let ends: Vec<P> = P::ENDS.iter().flat_map(|end| [*end, -*end]).collect();
    let pairs: Vec<Complex<P>> =
        ends.iter().flat_map(|re| ends.iter().map(|im| Complex { re: *re, im: *im })).collect();
    // Every pair of the ends, then numbers of any magnitude.
    let mut x: Vec<Complex<P>> = pairs.iter().flat_map(|x| vec![*x; pairs.len()]).collect();
    let mut y: Vec<Complex<P>> = pairs.iter().flat_map(|_| pairs.iter().copied()).collect();
    let mut numbers = Numbers(13);
    let mut random = || P::random(u64::from(numbers.next()) << 32 | u64::from(numbers.next()));
    for list in [&mut x, &mut y] {
        list.extend((0..100_000).map(|_| Complex { re: random(), im: random() }));
    }
    let source = COMPLEX.replace("PART", P::NAME).replace("RESULTS", &RESULTS.to_string());
    each(&Program::new("complex.cu", source), &["both"], |launcher| {
        let (stream, n) = (launcher.stream(), x.len());
        let (left, right) = (stream.upload(&x)?, stream.upload(&y)?);
        let mut result = stream.zeros::<Complex<P>>(RESULTS * n)?;
        let mut equal = stream.zeros::<u8>(n)?;
        let arguments = (&left, &right, &mut result, &mut equal, n as u32);
        // SAFETY: the kernel touches n elements of each, and RESULTS times n of the result.
        unsafe { launcher.run_on(stream, "both", LaunchConfig::for_elements(n), arguments)? };
        let (result, equal) = (stream.download(&result)?, stream.download(&equal)?);
        for (i, (x, y)) in x.iter().copied().zip(y.iter().copied()).enumerate() {
            let parts = |re, im| Complex { re, im };
            let scaled = parts(x.re * y.re, x.im * y.re);
            let wanted = [
                parts(x.re + y.re, x.im + y.im),
                parts(x.re - y.re, x.im - y.im),
                complex::multiply(x, y),
                complex::divide(x, y),
                scaled,
                scaled,
                parts(x.re / y.re, x.im / y.re),
                parts(-x.re, -x.im),
                parts(x.re, -x.im),
            ];
            let found = &result[RESULTS * i..][..RESULTS];
            for (k, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                let same = found.re.same(wanted.re) && found.im.same(wanted.im);
                assert!(same, "result {k} of {x:?} and {y:?}: {found:?}, not {wanted:?}");
            }
            let [norm, magnitude] = [found[9].re, found[9].im];
            assert!(norm.same(x.re * x.re + x.im * x.im), "norm_squared({x:?}): {norm:?}");
            assert!(magnitude.near(x.re.hypotenuse(x.im)), "abs({x:?}): {magnitude:?}");
            let is_equal = x.re == y.re && x.im == y.im;
            assert_eq!(equal[i], if is_equal { 5 } else { 6 }, "{x:?} and {y:?} compared");
        }
        Ok(())
    })
}

fn c64_is_that_of_the_cpu() -> Outcome {
    complex_numbers::<f32>()
}

fn c128_is_that_of_the_cpu() -> Outcome {
    complex_numbers::<f64>()
}
