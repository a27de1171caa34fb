//! Runs of few elements, which machine code computes without the preparation of larger ones.

use selvedge::tensor::{Device, Tensor};
use selvedge::types::Element;

fn list<T: Element>(values: &[T]) -> Tensor {
    Tensor::from_slice(values, &[values.len()], &Device::cpu()).unwrap()
}

#[test]
fn few_elements_have_the_results_of_many_in_every_run() {
    // Runs of few elements become machine code after the first ones, which take another path. Rare arguments of sin are
    // computed again.
    let angles: Vec<f32> =
        (0..5000).map(|at| if at % 7 == 3 { 1e9 } else { at as f32 * 0.37 - 3.0 }).collect();
    let numbers: Vec<i64> = (0..5000i64).map(|at| (at - 40) * 0x1234_5678_9abc).collect();
    let (angles, numbers) = (list(&angles), list(&numbers));
    let divisor = list(&(0..5000i64).map(|at| (at - 2500) * 0x3_4567_89ab).collect::<Vec<_>>());
    let sines = angles.sin().unwrap();
    let quotients = numbers.floor_divide(&divisor).unwrap();
    let chosen = angles.lt(0.0).unwrap().choose(&angles, &sines).unwrap();
    for count in [0, 1, 4, 33, 2047, 2048, 2049] {
        // A view from 5 on is no fresh tensor.
        for start in [0, 5] {
            let part = |x: &Tensor| x.narrow(0, start, count).unwrap();
            let copied = |x: &Tensor| part(x).copy().unwrap();
            for run in 0..5 {
                let what = format!("{count} from {start}, run {run}");
                for of in [&part as &dyn Fn(&Tensor) -> Tensor, &copied] {
                    let found = of(&angles).sin().unwrap();
                    assert_eq!(bits(&found), bits(&part(&sines)), "sin of {what}");
                    let found = of(&numbers).floor_divide(&of(&divisor)).unwrap();
                    assert_eq!(
                        found.to_vec::<i64>().unwrap(),
                        part(&quotients).to_vec::<i64>().unwrap(),
                        "{what}"
                    );
                    let negative = of(&angles).lt(0.0).unwrap();
                    let found = negative.choose(&of(&angles), &of(&sines)).unwrap();
                    assert_eq!(bits(&found), bits(&part(&chosen)), "a choice of {what}");
                }
            }
        }
    }
}

fn bits(x: &Tensor) -> Vec<u32> {
    x.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}
