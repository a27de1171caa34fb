//! [`Embedding`], a table of rows.

use crate::error::Result;
use crate::nn::{Initializer, Module, Variable};

/// Returns the row of a table at each element of an input of integers.
///
/// ```
/// use selvedge::nn::{Embedding, Initializer, Module, Variable};
/// use selvedge::{Device, Tensor};
/// let layer = Embedding::new(10, 4, &Initializer::new(&Device::cpu()))?;
/// let tokens = Variable::new(Tensor::new([[1i64, 9, 3]], &Device::cpu())?);
/// assert_eq!(layer.forward(&tokens)?.shape()[..], [1, 3, 4]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug)]
pub struct Embedding {
    weight: Variable,
}

impl Embedding {
    /// Creates a table of `count` rows, normally distributed with deviation 0.02.
    ///
    /// # Errors
    ///
    /// As [`Initializer::normal`].
    pub fn new(count: usize, width: usize, initializer: &Initializer) -> Result<Embedding> {
        Ok(Embedding { weight: initializer.normal(0.02, &[count, width])? })
    }

    /// Returns the table.
    pub fn weight(&self) -> &Variable {
        &self.weight
    }
}

impl Module for Embedding {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        self.weight.embedding(&input.tensor())
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        vec![("weight".to_owned(), self.weight.clone())]
    }
}
