//! [`TextLoss`], the loss of a model on a text longer than its context.
//!
//! Windows of the context begin each stride, and each id counts in the first window that has it, as the page "Perplexity of
//! fixed-length models" of transformers describes. An id at the start of a window has no ids before it and does not count there.

use super::model::Decoder;
use crate::error::{Error, Result};
use crate::nn::{CrossEntropyOptions, Module, Reduction, Variable, no_grad};
use crate::tensor::Tensor;
use crate::types::DType;

/// The operation in errors.
const OPERATION: &str = "Decoder::text_losses";

/// The sum of the losses of ids, and their number; those of several windows or texts add up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TextLoss {
    /// The sum of the losses, in nats.
    pub sum: f64,
    /// The number of ids.
    pub ids: usize,
}

impl TextLoss {
    /// Returns the mean loss, in nats an id; NaN without ids.
    pub fn mean(&self) -> f64 {
        self.sum / self.ids as f64
    }

    /// Returns the perplexity, the exponential of the mean.
    ///
    /// ```
    /// let loss = selvedge::nn::TextLoss { sum: 8f64.ln(), ids: 3 };
    /// assert!((loss.perplexity() - 2.0).abs() < 1e-15);
    /// ```
    pub fn perplexity(&self) -> f64 {
        self.mean().exp()
    }
}

impl std::ops::AddAssign for TextLoss {
    fn add_assign(&mut self, other: TextLoss) {
        self.sum += other.sum;
        self.ids += other.ids;
    }
}

/// A part of a sequence that the model reads at once.
struct Window {
    start: usize,
    end: usize,
    /// The first position whose id counts.
    first: usize,
}

/// Returns the windows of a sequence.
fn windows(length: usize, context: usize, stride: usize) -> Vec<Window> {
    let (mut windows, mut counted) = (Vec::new(), 0);
    for start in (0..length).step_by(stride) {
        let end = length.min(start + context);
        let first = counted.max(start + 1);
        if first < end {
            windows.push(Window { start, end, first });
        }
        counted = end;
        if end == length {
            break;
        }
    }
    windows
}

impl Decoder {
    /// Returns the losses of the windows of a text, whose sum is that of the text. The model computes each when the iterator comes to it.
    ///
    /// Windows have `context` ids, by default those of the model, and begin `stride` ids apart, by default a context. A smaller stride
    /// gives each id more ids before it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for less than two ids, an id that the vocabulary lacks, a context outside 2 to that of the model, and
    /// a stride outside 1 to the context. The iterator's are those of [`forward`](Module::forward).
    pub fn text_losses<'a>(
        &'a self,
        ids: &'a [u32],
        context: Option<usize>,
        stride: Option<usize>,
    ) -> Result<impl ExactSizeIterator<Item = Result<TextLoss>> + use<'a>> {
        let (limit, vocab_size) = (self.config().context(), self.config().vocab_size());
        let context = context.unwrap_or(limit);
        if context < 2 || context > limit {
            let wanted = format!("2 to {limit}, the context of the model");
            return Err(Error::invalid(OPERATION, format!("a context of {context}"), wanted));
        }
        let stride = stride.unwrap_or(context);
        if stride < 1 || stride > context {
            let wanted = format!("1 to the context, {context}");
            return Err(Error::invalid(OPERATION, format!("a stride of {stride}"), wanted));
        }
        if ids.len() < 2 {
            return Err(Error::invalid(OPERATION, format!("{} ids", ids.len()), "at least two ids"));
        }
        if let Some(id) = ids.iter().find(|&&id| id as usize >= vocab_size) {
            let wanted = format!("ids below {vocab_size}, the model's");
            return Err(Error::invalid(OPERATION, format!("the id {id}"), wanted));
        }
        let windows = windows(ids.len(), context, stride).into_iter();
        Ok(windows.map(move |window| self.window_loss(ids, &window)))
    }

    /// Returns the losses of a window's ids that count.
    fn window_loss(&self, ids: &[u32], window: &Window) -> Result<TextLoss> {
        let &Window { start, end, first } = window;
        let device = self.device();
        let read: Vec<i64> = ids[start..end].iter().map(|&id| i64::from(id)).collect();
        let labels = Tensor::from_slice(&read[first - start..], &[end - first], &device)?;
        let inputs = Variable::new(Tensor::from_slice(&read, &[1, read.len()], &device)?);
        let logits = no_grad(|| self.forward(&inputs))?.tensor();
        let logits = logits.select(0, 0)?.narrow(0, first - start - 1, end - first)?;
        let dtype = if logits.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let options = CrossEntropyOptions { reduction: Reduction::Sum, ..CrossEntropyOptions::default() };
        let sum = logits.cast(dtype)?.cross_entropy(&labels, options)?.cast(DType::F64)?.item::<f64>()?;
        Ok(TextLoss { sum, ids: end - first })
    }
}
