//! Chains of operations on the CPU, fused, beside `ndarray` doing them one after the other.

use std::hint::black_box;
use std::time::Instant;

use ndarray::{Array1, Zip};
use selvedge::tensor::{Device, Fused, Tensor};

use crate::Options;
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

/// 256 MiB an operand, which no cache holds.
const COUNT: usize = 1 << 26;
const ROUNDS: usize = 40;

/// Two chains of f32.
pub fn measure(options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::on_host(
        "fuse_cpu",
        "Chains of operations on the CPU",
        "The time of one run of a reused `Fused` on tensors of 2^26 random f32 on the CPU, with its output allocated and \
         dropped, beside the same operations of ndarray, one after the other: as one writes them, with `mapv`, and with \
         each but the first in place (`mapv_into`). ndarray computes on one core, as it does by itself. The results are \
         compared, element by element.",
    );
    let mut random = Random::new(33);
    let data: [Vec<f32>; 3] = std::array::from_fn(|_| random.floats(COUNT));
    let device = Device::cpu();
    let tensors = data.iter().map(|data| Tensor::from_slice(data, &[COUNT], &device));
    let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
    let [ta, tb, tc] = tensors.as_slice() else { return Err("three tensors are wanted".into()) };
    let [a, b, c] = &data.map(Array1::from_vec);

    let relu = Fused::new(|[a, b, c]| (a * b + c).relu());
    let ten =
        Fused::new(|[a, b, c]| ((((a * b + c).relu() * 2.0 - a).abs() + b).minimum(c) * 0.5).maximum(a));
    let relu_as_written = || (a * b + c).mapv(|x| x.max(0.0));
    let ten_as_written = || {
        let x = (relu_as_written() * 2.0 - a).mapv(f32::abs) + b;
        let x = Zip::from(&x).and(c).map_collect(|x, &c| x.min(c)) * 0.5;
        Zip::from(&x).and(a).map_collect(|x, &a| x.max(a))
    };
    let relu_in_place = || (a * b + c).mapv_into(|x| x.max(0.0));
    let ten_in_place = || {
        let mut x = (relu_in_place() * 2.0 - a).mapv_into(f32::abs) + b;
        Zip::from(&mut x).and(c).for_each(|x, &c| *x = x.min(c));
        let mut x = x * 0.5;
        Zip::from(&mut x).and(a).for_each(|x, &a| *x = x.max(a));
        x
    };

    let chains: [(_, _, &Reference<'_>, _); 4] = [
        ("relu(a * b + c)", &relu, &relu_as_written, Some(2.0)),
        ("relu(a * b + c), in place", &relu, &relu_in_place, None),
        ("10 operations, 3 inputs", &ten, &ten_as_written, Some(2.0)),
        ("10 operations, 3 inputs, in place", &ten, &ten_in_place, None),
    ];
    for (name, function, reference, goal) in chains {
        let own = || function.run([ta, tb, tc]);
        let figure = turns(
            options.turns(3, ROUNDS),
            &Subject {
                name,
                against: "ndarray",
                unit: Unit::Milliseconds,
                bytes: None,
                rule: Rule::Speed,
                goal,
            },
            || {
                let start = Instant::now();
                drop(black_box(own()?));
                Ok(start.elapsed().as_secs_f64() * 1e3)
            },
            || {
                let start = Instant::now();
                drop(black_box(reference()));
                Ok(start.elapsed().as_secs_f64() * 1e3)
            },
        )?;
        recorder.add(figure);
        let (found, wanted) = (own()?.to_vec::<f32>()?, reference());
        if let Some(place) = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted) {
            let (found, wanted) = (found[place], wanted[place]);
            return Err(format!("{name}: element {place} is {found}, ndarray's is {wanted}").into());
        }
    }
    recorder.finish(&options.out)
}

/// A chain of ndarray's operations.
type Reference<'a> = dyn Fn() -> Array1<f32> + 'a;
