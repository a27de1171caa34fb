//! Gradients of every loss in every form against central differences in f64.

use selvedge::nn::{
    CrossEntropyOptions, Reduction, Variable, binary_cross_entropy, binary_cross_entropy_with_logits,
    cross_entropy, kl_div, mse_loss, nll_loss,
};
use selvedge::{Device, Result, Tensor};

use crate::cases::samples;
use crate::differences::{check, check_second};
use crate::loss_errors::REDUCTIONS;

type Loss = fn(&Variable, &Variable, Reduction) -> Result<Variable>;

#[test]
fn gradients_of_losses_of_elements_are_their_differences() {
    let losses: [(&str, Loss); 5] = [
        ("mse_loss", mse_loss),
        ("binary_cross_entropy", binary_cross_entropy),
        ("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits),
        ("kl_div", |x, t, reduction| kl_div(x, t, false, reduction)),
        ("kl_div of logarithms", |x, t, reduction| kl_div(x, t, true, reduction)),
    ];
    for (name, loss) in losses {
        for reduction in REDUCTIONS {
            for shape in [&[2, 3][..], &[5], &[2, 1, 3]] {
                // Of the input and of the target.
                let operands = [samples(1, shape), samples(2, shape)];
                let name = format!("{name} with {reduction:?} of {shape:?}");
                check(&name, &operands, |x| loss(&x[0], &x[1], reduction));
            }
        }
    }
}

#[test]
fn gradients_of_losses_of_labels_are_their_differences() {
    let cases = [
        (&[4, 3][..], vec![2i64, -100, 0, 1], &[4isize][..]),
        (&[2, 3, 2], vec![0, 1, -100, 2], &[2, 2]),
        (&[3], vec![1], &[]),
    ];
    for (shape, labels, sizes) in cases {
        for (reduction, ignore_index) in REDUCTIONS.into_iter().flat_map(|of| [(of, -100), (of, 1)]) {
            // Of the ignored labels, only those of -100 are no classes.
            let labels =
                labels.iter().map(|&label| if label == -100 { ignore_index } else { label }).collect();
            let labels =
                Tensor::from_vec(labels, &[sizes.iter().product::<isize>() as usize], &Device::cpu());
            let labels = labels.unwrap().reshape(sizes).unwrap();
            // The mean of no labels is 0 / 0.
            let counted =
                labels.ne(ignore_index).unwrap().count_nonzero_all().unwrap().item::<i64>().unwrap();
            if counted == 0 {
                continue;
            }
            let of = |label_smoothing| CrossEntropyOptions { reduction, ignore_index, label_smoothing };
            let name = |loss: &str| format!("{loss} with {reduction:?} of {shape:?} without {ignore_index}");
            let x = [samples(3, shape)];
            check(&name("nll_loss"), &x, |x| nll_loss(&x[0], &labels, of(0.0)));
            // Of logarithms, so that the second gradients are not 0.
            check_second(&name("nll_loss"), &x, |x| nll_loss(&x[0].log()?, &labels, of(0.0)));
            for label_smoothing in [0.0, 0.1, 0.9] {
                let name = name(&format!("cross_entropy with {label_smoothing}"));
                // The backward writes over logits that nothing else has, and not over those of a leaf.
                check(&name, &x, |x| cross_entropy(&x[0], &labels, of(label_smoothing)));
                check(&format!("{name} in place"), &x, |x| {
                    cross_entropy(&(&x[0] * 2.0)?, &labels, of(label_smoothing))
                });
            }
        }
    }
}
