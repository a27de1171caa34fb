//! Normally distributed numbers from random bits: the quantile at (bits + 1/2) / 2^width. A draw gives one
//! number, numbers have the order of their bits, and the tails reach as far as the bits allow: 6.3 for 32
//! bits, 9.2 for 64.
//!
//! Let q be the probability beyond the number and x = 1 - 2 q, both of which the bits give to full precision.
//! The quantile is x times a smooth function of w = -ln(4 q (1 - q)) = -ln(1 - x²), as in M. Giles,
//! "Approximating the erfinv function" (GPU Computing Gems, 2012), here as a polynomial of sqrt(w + c). A
//! single logarithm serves the middle and the tails. `scripts/make_normal_quantile.py` generates the
//! polynomials. The error is below 3 units in the last place.

use super::{elementary, logarithmic};
use crate::fuse::ir::instruction::{Instruction, RegisterKind};
use crate::fuse::ir::program::{Program, Value};
use crate::types::DType;

/// An approximation from where the root r = sqrt(w + added) is `begins`: first + (r - begins) · slope(scale ·
/// r + shift). The slope is positive, so nothing cancels, and the start of the range is not critical.
struct Approximation {
    added: f64,
    begins: f64,
    first: f64,
    scale: f64,
    shift: f64,
    slope: &'static [f64],
}

// Relative error 4.79e-9.
const SINGLE: Approximation = Approximation {
    added: 1.0,
    begins: 1.0,
    first: 1.2533141374588013,
    scale: 0.5344218015670776,
    shift: -1.5344218015670776,
    slope: &[
        1.2386046171429184,
        0.25921968448796956,
        -0.26330206931886796,
        0.1939036662980767,
        -0.05412306422340625,
        -0.10073788622318759,
        0.16818098159646805,
        -0.08792408372645928,
        -0.07509578795431969,
        0.16844349505631084,
        -0.08708256545693317,
        -0.09927450906267349,
        0.16279225594947253,
        -0.009466233044074391,
        -0.12291434453550788,
        0.05126175929615727,
        0.048736696565342186,
        -0.030596517041762483,
        -0.008293577656322252,
        0.006440063591743078,
    ],
};

// Relative error 7.84e-17.
const NEAR: Approximation = Approximation {
    added: 1.0,
    begins: 1.0,
    first: 1.2533141373155003,
    scale: 0.9249505996704102,
    shift: -1.9249505996704102,
    slope: &[
        1.0682691192907245,
        0.3302252462700574,
        -0.13769937965653786,
        -0.02165908558173302,
        0.04716320056839423,
        -0.0024973852011114647,
        -0.01773775100716706,
        0.004125203708979526,
        0.006419926755737107,
        -0.002592147681131057,
        -0.002230620550207946,
        0.0013457694869396944,
        0.0007270649121323178,
        -0.000639957233828654,
        -0.0002130850444068972,
        0.00028778715992139304,
        4.983220234144455e-05,
        -0.0001234352547763406,
        -4.259298704230056e-06,
        4.988330369082789e-05,
        -4.844686703897652e-06,
        -1.8124739094124655e-05,
        4.161586876510732e-06,
        5.345384411084196e-06,
        -1.9726040735914867e-06,
        -1.0497314691052324e-06,
        5.660264830455382e-07,
        7.61544677590632e-08,
        -7.580562005534685e-08,
        8.90558579552465e-09,
    ],
};

// Relative error 8.89e-17.
const FAR: Approximation = Approximation {
    added: 0.0,
    begins: 3.0,
    first: 4.006434210649834,
    scale: 0.5542733073234558,
    shift: -2.6628198623657227,
    slope: &[
        1.4258999978295144,
        0.0029190262936316593,
        -0.0029019713994642387,
        0.0015999626854343546,
        -0.0007847499672386416,
        0.00039650473851034847,
        -0.00022923988199291184,
        0.00015701354407447423,
        -0.0001196760552321833,
        9.205208787625902e-05,
        -6.58398566155636e-05,
        4.0725517168224255e-05,
        -1.94849684529421e-05,
        4.591906379325409e-06,
        3.398280755125569e-06,
        -5.376290487433634e-06,
        3.514519722968061e-06,
        -1.4063340637573989e-06,
        9.083709880535224e-07,
        -2.760723864116325e-07,
        -1.0200499928336293e-06,
        8.493203824206801e-07,
        3.6549739496716277e-07,
        -4.4873774722538754e-07,
        -1.222914027914714e-07,
        1.493332977497721e-07,
        2.306376294044725e-08,
        -2.4857635305460435e-08,
    ],
};

/// The w from which `FAR` is the better approximation.
const FAR_FROM: f64 = 9.0;

/// Returns the normal number of 32 or 64 random bits, as f32 or f64.
pub(crate) fn normal(program: &mut Program, bits: Value) -> Value {
    let double = program.kind(bits) == RegisterKind::Bits64;
    let (dtype, width) = if double { (DType::F64, 64) } else { (DType::F32, 32) };
    let to_float = if double { Instruction::Unsigned64ToFloat64 } else { Instruction::UnsignedToFloat32 };
    let (unity, zero) = (program.integer(bits, 1), program.integer(bits, 0));
    // The tail's bits: bits above one half count from the other end.
    let upper = program.less_signed(bits, zero);
    let mirrored = program.not(bits);
    let tail = program.choose(upper, mirrored, bits);
    // As integers, 2^(width + 1) q is odd, and 2^width x is its difference to 2^width.
    let double_tail = program.add(tail, tail);
    let tail = program.add(double_tail, unity);
    let rest = program.subtract(zero, tail);
    let (tail, x) = (program.apply(to_float, &[tail]), program.apply(to_float, &[rest]));

    let whole = program.float(tail, 2f64.powi(width + 1));
    let other = program.subtract(whole, tail);
    let product = program.multiply(tail, other);
    let scale = program.float(tail, 2f64.powi(-2 * width));
    let product = program.multiply(product, scale);
    let [logarithm, _] = logarithmic::log(program, dtype, &[[product; 2]]);
    let w = program.negate(logarithm);

    let ratio = if double {
        let (near, far) = (NEAR.of(program, w), FAR.of(program, w));
        let limit = program.float(w, FAR_FROM);
        let is_near = program.less(w, limit);
        program.choose(is_near, near, far)
    } else {
        SINGLE.of(program, w)
    };
    let unit = program.float(x, 2f64.powi(-width));
    let x = program.multiply(x, unit);
    let magnitude = program.multiply(x, ratio);
    let negated = program.negate(magnitude);
    program.choose(upper, magnitude, negated)
}

impl Approximation {
    fn of(&self, program: &mut Program, w: Value) -> Value {
        let mut number = |number: f64| program.float(w, number);
        let [added, begins, first, scale, shift] =
            [self.added, self.begins, self.first, self.scale, self.shift].map(&mut number);
        let sum = program.add(w, added);
        let root = program.square_root(sum);
        let y = program.multiply_add(root, scale, shift);
        let slope = elementary::polynomial(program, y, self.slope);
        let distance = program.subtract(root, begins);
        program.multiply_add(distance, slope, first)
    }
}
