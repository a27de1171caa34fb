//! [`BatchNorm1d`] and [`BatchNorm2d`], normalisation by channel.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::nn::checks::{check_non_negative, check_probability};
use crate::nn::{Initializer, Module, Variable, is_grad_enabled};

/// The state that both layers have.
#[derive(Debug)]
struct BatchNorm {
    weight: Variable,
    bias: Variable,
    running_mean: Variable,
    running_var: Variable,
    num_batches_tracked: Variable,
    momentum: f64,
    eps: f64,
    is_training: bool,
}

impl BatchNorm {
    fn new(channels: usize, initializer: &Initializer) -> Result<BatchNorm> {
        Ok(BatchNorm {
            weight: initializer.ones(&[channels])?,
            bias: initializer.zeros(&[channels])?,
            running_mean: initializer.buffer(0.0, &[channels])?,
            running_var: initializer.buffer(1.0, &[channels])?,
            num_batches_tracked: initializer.counter()?,
            momentum: 0.1,
            eps: 1e-5,
            is_training: true,
        })
    }

    fn forward(
        &self,
        layer: &'static str,
        ranks: RangeInclusive<usize>,
        axes: &str,
        input: &Variable,
    ) -> Result<Variable> {
        let (shape, weight) = (input.shape(), self.weight.shape());
        if !ranks.contains(&shape.rank()) || shape.get(1) != weight.first() {
            let found = format!("an input of shape {shape} for a weight of shape {weight}");
            let wanted = format!("{axes} with the weight's size as C");
            return Err(Error::invalid(layer, found, wanted));
        }
        let (weight, bias) = (Some(&self.weight), Some(&self.bias));
        if !self.is_training {
            // The tape keeps the statistics, and a later training step writes those in a storage of Parameters.
            let [mean, variance] =
                [&self.running_mean, &self.running_var].map(|running| match is_grad_enabled() {
                    true => running.snapshot(),
                    false => running.tensor(),
                });
            return input.batch_norm(&mean, &variance, weight, bias, self.eps);
        }
        let running = Some((&self.running_mean, &self.running_var));
        let result = input.batch_norm_training(running, weight, bias, self.momentum, self.eps)?;
        self.num_batches_tracked.update(|count| count.add(1).map(|_| ()))?;
        Ok(result)
    }

    fn parameters(&self) -> Vec<(String, Variable)> {
        vec![("weight".to_owned(), self.weight.clone()), ("bias".to_owned(), self.bias.clone())]
    }

    fn buffers(&self) -> Vec<(String, Variable)> {
        vec![
            ("running_mean".to_owned(), self.running_mean.clone()),
            ("running_var".to_owned(), self.running_var.clone()),
            ("num_batches_tracked".to_owned(), self.num_batches_tracked.clone()),
        ]
    }
}

macro_rules! layers {
    ($($(#[doc = $doc:literal])* $name:ident $ranks:expr, $axes:literal;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug)]
        pub struct $name(BatchNorm);

        impl $name {
            /// Creates a layer of this many channels, with a weight of ones, a bias of zeros, running statistics of mean 0 and
            /// variance 1, a momentum of 0.1 and an eps of 1e-5.
            ///
            /// # Errors
            ///
            /// As [`Initializer::zeros`].
            pub fn new(channels: usize, initializer: &Initializer) -> Result<$name> {
                Ok($name(BatchNorm::new(channels, initializer)?))
            }

            /// Sets the number that is added to the variance.
            ///
            /// # Errors
            ///
            /// [`Error::InvalidArgument`] for a number that is negative or not finite.
            pub fn with_eps(self, eps: f64) -> Result<$name> {
                check_non_negative(stringify!($name), "an eps", eps)?;
                Ok($name(BatchNorm { eps, ..self.0 }))
            }

            /// Sets the weight of a new statistic in the running ones.
            ///
            /// # Errors
            ///
            /// [`Error::InvalidArgument`] for a number outside 0 to 1.
            pub fn with_momentum(self, momentum: f64) -> Result<$name> {
                check_probability(stringify!($name), "a momentum", momentum)?;
                Ok($name(BatchNorm { momentum, ..self.0 }))
            }
        }

        impl Module for $name {
            fn forward(&self, input: &Variable) -> Result<Variable> {
                self.0.forward(stringify!($name), $ranks, $axes, input)
            }

            fn named_parameters(&self) -> Vec<(String, Variable)> {
                self.0.parameters()
            }

            fn named_buffers(&self) -> Vec<(String, Variable)> {
                self.0.buffers()
            }

            fn set_training(&mut self, is_training: bool) {
                self.0.is_training = is_training;
            }
        }
    )*};
}

layers! {
    /// Computes (x - mean) / sqrt(variance + eps) · weight + bias for each channel of an input of shape (N, C) or (N, C, L).
    ///
    /// In training the statistics are those of the input, and the running ones become momentum · new +
    /// (1 - momentum) · running with the unbiased variance. In evaluation the running ones are the statistics. Names and values
    /// are PyTorch's.
    ///
    /// ```
    /// use selvedge::nn::{BatchNorm1d, Initializer, Module, Variable};
    /// use selvedge::{Device, Tensor};
    /// let layer = BatchNorm1d::new(1, &Initializer::new(&Device::cpu()))?.with_momentum(0.5)?;
    /// let x = Variable::new(Tensor::new([[1.0f32], [3.0]], &Device::cpu())?);
    /// layer.forward(&x)?;
    /// let state = layer.state_dict();
    /// assert_eq!(state["running_mean"].to_vec::<f32>()?, [1.0]);
    /// assert_eq!(state["running_var"].to_vec::<f32>()?, [1.5]);
    /// assert_eq!(state["num_batches_tracked"].item::<i64>()?, 1);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    BatchNorm1d 2..=3, "(N, C) or (N, C, L)";
    /// Normalises each channel of an input of shape (N, C, H, W), as [`BatchNorm1d`].
    BatchNorm2d 4..=4, "(N, C, H, W)";
}
