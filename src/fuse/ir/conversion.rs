//! Branch-free selection, conversion and integer division on the CPU, in operations that vector instruction
//! sets have.
//!
//! Each function gives the bits of the plain expression (`if`, `as`, `/`), which the optimizer leaves as
//! scalar code: a selection becomes a branch that random data mispredicts, a saturating conversion needs
//! tests, and no processor divides vectors of integers.

macro_rules! choices {
    ($($name:ident $word:ty;)*) => {$(
        /// Returns a if the predicate is 1, b if it is 0.
        #[inline(always)]
        pub(in crate::fuse) fn $name(predicate: u32, a: $word, b: $word) -> $word {
            let mask = <$word>::from(predicate).wrapping_neg();
            a & mask | b & !mask
        }
    )*};
}

choices! {
    choose32 u32;
    choose64 u64;
}

macro_rules! truncations {
    ($($name:ident $float:ty => $integer:ty: |$inside:ident| $convert:expr;)*) => {$(
        /// Converts with truncation and saturation; NaN gives 0.
        #[inline(always)]
        pub(in crate::fuse) fn $name(x: $float) -> $integer {
            // The largest integer, or the float after it.
            const END: $float = <$integer>::MAX as $float;
            const MIN_FLOAT: $float = <$integer>::MIN as $float;
            const MAX_FLOAT: $float = <$float>::from_bits(END.to_bits() - 1);
            // NaN gives the smallest integer here too.
            let $inside = if x > MIN_FLOAT { x } else { MIN_FLOAT };
            let $inside = if $inside < MAX_FLOAT { $inside } else { MAX_FLOAT };
            let converted: $integer = $convert;
            let converted = if x >= END { <$integer>::MAX } else { converted };
            if x.is_nan() { 0 } else { converted }
        }
    )*};
}

truncations! {
    // SAFETY: the number is within the range of the integer type.
    float32_to_signed f32 => i32: |x| unsafe { x.to_int_unchecked() };
    // SAFETY: as above.
    float32_to_unsigned f32 => u32: |x| unsafe { x.to_int_unchecked() };
    // SAFETY: as above.
    float64_to_signed f64 => i32: |x| unsafe { x.to_int_unchecked() };
    float64_to_unsigned f64 => u32: |x| last_word(x.trunc());
    float64_to_signed64 f64 => i64: |x| two_words(x.trunc()) as i64;
    float64_to_unsigned64 f64 => u64: |x| two_words(x.trunc());
}

/// Returns the last 32 bits of an integer below 2^51 in two's complement. In a sum with 1.5 * 2^52 the last
/// bit has the value 1.
#[inline(always)]
fn last_word(x: f64) -> u32 {
    (x + 6_755_399_441_055_744.0).to_bits() as u32
}

/// Returns the 64 bits of an integer.
#[inline(always)]
fn two_words(x: f64) -> u64 {
    const WORD: f64 = 4_294_967_296.0;
    let high = (x * (1.0 / WORD)).floor();
    u64::from(last_word(high)) << 32 | u64::from(last_word(x - high * WORD))
}

/// Divides with truncation. f64 has more than twice the bits, so rounding never reaches the next integer. The
/// smallest integer divided by -1 gives itself, and division by 0 gives 0, the last bits of an infinity or a
/// NaN.
#[inline(always)]
pub(in crate::fuse) fn divide_signed(a: i32, b: i32) -> i32 {
    last_word((f64::from(a) / f64::from(b)).trunc()) as i32
}

/// Divides like [`divide_signed`].
#[inline(always)]
pub(in crate::fuse) fn divide_unsigned(a: u32, b: u32) -> u32 {
    last_word((f64::from(a) / f64::from(b)).trunc())
}

/// Rounds to f32 through an exact f64: for a number with too many bits, a sticky bit replaces the last 11.
#[inline(always)]
pub(in crate::fuse) fn unsigned64_to_float32(x: u64) -> f32 {
    let lost = u64::from(x & 0x7ff != 0) << 11;
    (if x >> 53 != 0 { x & !0x7ff | lost } else { x }) as f64 as f32
}

/// Converts to f32 with truncation.
#[inline(always)]
pub(in crate::fuse) fn unsigned64_towards_zero(x: u64) -> f32 {
    let exact = (if x >> 53 != 0 { x & !0x7ff } else { x }) as f64;
    // Clears the 29 bits that f32 lacks.
    f64::from_bits(exact.to_bits() & !0x1fff_ffff) as f32
}

/// Converts to f32 with truncation.
#[inline(always)]
pub(in crate::fuse) fn signed64_towards_zero(x: i64) -> f32 {
    let sign = (x as u64 >> 32) as u32 & 0x8000_0000;
    f32::from_bits(unsigned64_towards_zero(x.unsigned_abs()).to_bits() | sign)
}

/// Converts to f32 with truncation.
#[inline(always)]
pub(in crate::fuse) fn float64_towards_zero(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near).abs() > x.abs() { f32::from_bits(near.to_bits() - 1) } else { near }
}

/// Rounds to bf16; NaN becomes the canonical NaN.
#[inline(always)]
pub(in crate::fuse) fn round_to_brain(x: f32) -> f32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & 0xffff_0000;
    f32::from_bits(if x.is_nan() { 0x7fff_0000 } else { rounded })
}

/// Rounds to f16 within f32, so that it vectorizes. In the normal range it rounds off the low 13 bits; below
/// it, adding and subtracting a number whose last bit is f16's smallest performs the rounding.
#[inline(always)]
pub(in crate::fuse) fn round_to_half(x: f32) -> f32 {
    let bits = x.to_bits();
    let (sign, magnitude) = (bits & 0x8000_0000, bits & 0x7fff_ffff);
    let normal = (magnitude + 0x0fff + ((magnitude >> 13) & 1)) & 0xffff_e000;
    let normal = if normal >= 0x4780_0000 { 0x7f80_0000 } else { normal };
    // The last bit of 0.5 has the value 2^-24.
    let small = ((f32::from_bits(magnitude) + 0.5) - 0.5).to_bits();
    let rounded = if magnitude < 0x3880_0000 { small } else { normal };
    f32::from_bits(if x.is_nan() { 0x7fff_e000 } else { sign | rounded })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words with bits at every position, and those at which a conversion changes.
    fn words() -> impl Iterator<Item = u64> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let random = std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Every magnitude, with either sign.
            ((state as i64) >> (state >> 58)) as u64
        });
        let edges =
            (0..64).flat_map(|bit| (-3..=3i64).map(move |near| (1u64 << bit).wrapping_add(near as u64)));
        let ones =
            (0..64).flat_map(|bit| (-3..=3i64).map(move |near| (u64::MAX << bit).wrapping_add(near as u64)));
        edges.chain(ones).chain(random.take(20_000))
    }

    #[test]
    fn choices_take_every_bit() {
        for word in words() {
            for predicate in [0, 1] {
                let wanted = if predicate != 0 { word } else { !word };
                assert_eq!(choose64(predicate, word, !word), wanted);
                assert_eq!(choose32(predicate, word as u32, !word as u32), wanted as u32);
            }
        }
    }

    #[test]
    fn floats_become_the_integers_that_the_language_gives() {
        let integers = words().flat_map(|word| [word as i64 as f64, word as f64, word as i64 as f64 / 8.0]);
        let specials =
            [0.0, -0.0, 0.5, -0.5, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 5e-324];
        let bits = words().map(f64::from_bits);
        for x in integers.chain(bits).chain(specials) {
            for x in
                [x, f64::from_bits(x.to_bits().wrapping_sub(1)), f64::from_bits(x.to_bits().wrapping_add(1))]
            {
                assert_eq!(float64_to_signed(x), x as i32, "{x:e}");
                assert_eq!(float64_to_unsigned(x), x as u32, "{x:e}");
                assert_eq!(float64_to_signed64(x), x as i64, "{x:e}");
                assert_eq!(float64_to_unsigned64(x), x as u64, "{x:e}");
                let x = x as f32;
                assert_eq!(float32_to_signed(x), x as i32, "{x:e}");
                assert_eq!(float32_to_unsigned(x), x as u32, "{x:e}");
                assert_eq!(float64_to_signed64(x.into()), x as i64, "{x:e}");
                assert_eq!(float64_to_unsigned64(x.into()), x as u64, "{x:e}");
            }
        }
    }

    #[test]
    fn quotients_are_those_of_integers() {
        for word in words() {
            let divisors =
                [word as u32, (word >> 32) as u32, (word >> 32) as u32 >> (word % 32), 1, 2, 3, u32::MAX];
            for (a, b) in
                divisors.into_iter().flat_map(|b| [(!word as u32, b), (word as u32, b), (u32::MAX, b)])
            {
                assert_eq!(divide_unsigned(a, b), a.checked_div(b).unwrap_or(0), "{a} by {b}");
                let (a, b) = (a as i32, b as i32);
                let wanted = if b == 0 { 0 } else { a.wrapping_div(b) };
                assert_eq!(divide_signed(a, b), wanted, "{a} by {b}");
            }
        }
    }

    #[test]
    fn integers_become_the_floats_that_the_language_gives() {
        // From the nearest f32, whose bits less one are the next number towards zero.
        let cut = |x: i128, near: f32| match (near as i128).unsigned_abs() > x.unsigned_abs() {
            true => f32::from_bits(near.to_bits() - 1),
            false => near,
        };
        for x in words() {
            assert_eq!(unsigned64_to_float32(x).to_bits(), (x as f32).to_bits(), "{x}");
            let wanted = cut(x.into(), x as f32);
            assert_eq!(unsigned64_towards_zero(x).to_bits(), wanted.to_bits(), "{x}");
            let x = x as i64;
            assert_eq!(signed64_towards_zero(x).to_bits(), cut(x.into(), x as f32).to_bits(), "{x}");
        }
    }

    #[test]
    fn rounding_to_narrow_floats_is_that_of_half() {
        let mut bits = 0u32;
        loop {
            let x = f32::from_bits(bits);
            let (half, brain) = (half::f16::from_f32(x).to_f32(), half::bf16::from_f32(x).to_f32());
            if x.is_nan() {
                assert!(round_to_half(x).is_nan() && round_to_brain(x).is_nan());
            } else {
                assert_eq!(round_to_half(x).to_bits(), half.to_bits(), "{x:e}");
                assert_eq!(round_to_brain(x).to_bits(), brain.to_bits(), "{x:e}");
            }
            // Odd, so that all bit positions change.
            match bits.checked_add(997) {
                Some(next) => bits = next,
                None => break,
            }
        }
    }

    #[test]
    fn truncation_never_grows() {
        for x in [0.1, 1.0 / 3.0, -0.1, 1e300, -1e300, f64::INFINITY, 1e-46, 16777217.0] {
            let cut = float64_towards_zero(x);
            assert!(f64::from(cut).abs() <= x.abs(), "{x}");
        }
        assert_eq!(float64_towards_zero(1e300), f32::MAX);
    }
}
