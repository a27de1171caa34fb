//! Sequential models.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use super::super::arguments::{out, text, write_text};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, object, sv_model, sv_optimizer, sv_tensor, sv_variable};
use super::super::tensor::{device, flag, give, parameter_dtype, sizes, tensor};
use super::optimizer::optimizer;
use super::variable::losses::loss;
use super::variable::{give_variable, variable};
use crate::nn::{self, Module};
use crate::tensor::{Device, Generator, Tensor};

/// Layers, and the settings of the next ones.
pub(super) struct Layers {
    list: nn::Sequential,
    generator: Generator,
    initializer: nn::Initializer,
}

/// The module of a model.
pub(super) enum ModelContent {
    Layers(Layers),
    Gpt(Box<nn::Gpt>),
    /// The model of a trainer, which has the trainer's handle and others of its own.
    Trainer(Box<nn::Trainer>),
}

/// A module, its mode and its device.
pub(super) struct Model {
    pub(super) content: ModelContent,
    pub(super) is_training: bool,
    device: Device,
    /// The optimizers of the parameters, some of which may have ended.
    optimizers: Vec<Weak<Mutex<Box<dyn nn::Optimizer + Send>>>>,
}

impl Model {
    pub(super) fn module(&self) -> &dyn Module {
        match &self.content {
            ModelContent::Layers(layers) => &layers.list,
            ModelContent::Gpt(gpt) => &**gpt,
            ModelContent::Trainer(trainer) => trainer.model(),
        }
    }

    /// Remembers an optimizer of the parameters, which are complete while it lives.
    pub(super) fn add_optimizer(&mut self, optimizer: &Arc<Mutex<Box<dyn nn::Optimizer + Send>>>) {
        self.optimizers.retain(|known| known.strong_count() > 0);
        self.optimizers.push(Arc::downgrade(optimizer));
    }

    /// Returns an error if an optimizer would not train a new layer.
    fn check_no_optimizer(&self) -> Result<()> {
        if self.optimizers.iter().all(|optimizer| optimizer.strong_count() == 0) {
            return Ok(());
        }
        let wanted =
            "all layers before sv_optimizer_create: release the optimizer, and create one after the layer";
        Err(Failure::argument("model", "a model with an optimizer, which would not train the layer", wanted))
    }

    pub(super) fn module_mut(&mut self) -> &mut dyn Module {
        match &mut self.content {
            ModelContent::Layers(layers) => &mut layers.list,
            ModelContent::Gpt(gpt) => &mut **gpt,
            ModelContent::Trainer(trainer) => trainer.model_mut(),
        }
    }
}

/// Holds a model in the evaluation mode. Its end returns the model to its own mode, also after an error or a panic.
pub(super) struct EvaluationMode<'a>(pub(super) &'a mut Model);

impl<'a> EvaluationMode<'a> {
    pub(super) fn new(model: &'a mut Model) -> EvaluationMode<'a> {
        model.module_mut().set_training(false);
        EvaluationMode(model)
    }
}

impl Drop for EvaluationMode<'_> {
    fn drop(&mut self) {
        let is_training = self.0.is_training;
        self.0.module_mut().set_training(is_training);
    }
}

/// A model behind a handle.
#[derive(Clone)]
pub(crate) struct ModelObject(Arc<RwLock<Model>>);
object!(ModelObject, Model);

impl ModelObject {
    /// Creates a model in the training mode.
    pub(super) fn new(content: ModelContent, device: Device) -> ModelObject {
        ModelObject(Arc::new(RwLock::new(Model {
            content,
            is_training: true,
            device,
            optimizers: Vec::new(),
        })))
    }

    pub(super) fn find(handle: u64) -> Result<ModelObject> {
        ModelObject::table().get(handle, "model")
    }

    pub(super) fn downgrade(&self) -> Weak<RwLock<Model>> {
        Arc::downgrade(&self.0)
    }

    /// Returns whether a weak reference is to this model.
    pub(super) fn is(&self, model: &Weak<RwLock<Model>>) -> bool {
        std::ptr::eq(Weak::as_ptr(model), Arc::as_ptr(&self.0))
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Model> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Model> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a `state_dict` to a safetensors file with the format entry that Hugging Face's libraries ask for.
pub(super) fn write_entries(path: &str, entries: &BTreeMap<String, Tensor>) -> Result<()> {
    let entries: Vec<(&str, &Tensor)> =
        entries.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    Ok(Tensor::write_safetensors(path, &entries, &[("format", "pt")])?)
}

/// Max(x, 0).
pub const SV_NN_RELU: i32 = 1;
/// x times the normal distribution function of x.
pub const SV_NN_GELU: i32 = 2;
/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.
pub const SV_NN_GELU_TANH: i32 = 3;
/// x / (1 + e^-x).
pub const SV_NN_SILU: i32 = 4;
/// The hyperbolic tangent.
pub const SV_NN_TANH: i32 = 5;
/// 1 / (1 + e^-x).
pub const SV_NN_SIGMOID: i32 = 6;

/// Creates a model without layers. Layers that are added have parameters of `dtype` on a device, drawn from a generator with
/// the seed, which dropout draws from too. `dtype` is `SV_DTYPE_F16`, `SV_DTYPE_BF16`, `SV_DTYPE_F32` or `SV_DTYPE_F64`. The model
/// begins in the training mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_model_create(dtype: i32, device: i32, seed: u64, model: *mut sv_model) -> i32 {
    guard::call("sv_model_create", || {
        let model = out(model, "model")?;
        let (dtype, device, generator) =
            (parameter_dtype(dtype)?, self::device(device)?, Generator::new(seed));
        let initializer = nn::Initializer::new(&device).with_dtype(dtype).with_generator(&generator);
        let layers = Layers { list: nn::Sequential::new(), generator, initializer };
        let created = ModelObject::new(ModelContent::Layers(layers), device);
        model.write(ModelObject::table().insert(created)?);
        Ok(())
    })
}

/// A layer with or without parameters, which an optimizer trains.
#[derive(Clone, Copy, PartialEq)]
enum HasParameters {
    No,
    Yes,
}

/// Returns an error for a size of 0, which makes a layer of nothing.
fn check_size(name: &str, size: usize) -> Result<()> {
    if size == 0 { Err(Failure::argument(name, size, "1 or more")) } else { Ok(()) }
}

/// Adds a layer at the end of a model, in its mode.
fn add(
    function: &'static str,
    handle: u64,
    has_parameters: HasParameters,
    layer: &dyn Fn(&Layers) -> Result<Box<dyn Module>>,
) -> i32 {
    guard::call(function, || {
        let object = ModelObject::find(handle)?;
        let mut model = object.write();
        if has_parameters == HasParameters::Yes {
            model.check_no_optimizer()?;
        }
        let is_training = model.is_training;
        let ModelContent::Layers(layers) = &mut model.content else {
            return Err(Failure::argument("model", "a transformer", "a model of sv_model_create"));
        };
        let mut layer = layer(layers)?;
        layer.set_training(is_training);
        layers.list = std::mem::take(&mut layers.list).with(Boxed(layer));
        Ok(())
    })
}

/// A layer of any kind, for the model's list.
struct Boxed(Box<dyn Module>);

impl Module for Boxed {
    fn forward(&self, input: &nn::Variable) -> crate::Result<nn::Variable> {
        self.0.forward(input)
    }

    fn named_parameters(&self) -> Vec<(String, nn::Variable)> {
        self.0.named_parameters()
    }

    fn named_buffers(&self) -> Vec<(String, nn::Variable)> {
        self.0.named_buffers()
    }

    fn set_training(&mut self, is_training: bool) {
        self.0.set_training(is_training);
    }
}

/// Adds a layer x W + b with a weight of shape (inputs, outputs), both 1 or more. `bias` is 1 for one with a bias, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn sv_model_add_linear(model: sv_model, inputs: usize, outputs: usize, bias: i32) -> i32 {
    add("sv_model_add_linear", model, HasParameters::Yes, &|layers| {
        check_size("inputs", inputs)?;
        check_size("outputs", outputs)?;
        Ok(Box::new(match flag(bias, "bias")? {
            true => nn::Linear::new(inputs, outputs, &layers.initializer)?,
            false => nn::Linear::without_bias(inputs, outputs, &layers.initializer)?,
        }))
    })
}

/// Adds a table of `rows` rows of `width` numbers, of which an input of integers chooses.
#[unsafe(no_mangle)]
pub extern "C" fn sv_model_add_embedding(model: sv_model, rows: usize, width: usize) -> i32 {
    add("sv_model_add_embedding", model, HasParameters::Yes, &|layers| {
        check_size("rows", rows)?;
        check_size("width", width)?;
        Ok(Box::new(nn::Embedding::new(rows, width, &layers.initializer)?))
    })
}

/// Adds a normalisation over last axes of these sizes, with a weight and a bias. `eps` is added to the variance.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_model_add_layer_norm(
    model: sv_model,
    shape: *const i64,
    rank: usize,
    eps: f64,
) -> i32 {
    add("sv_model_add_layer_norm", model, HasParameters::Yes, &|layers| {
        check_size("rank", rank)?;
        let shape = sizes(shape, rank)?;
        shape.iter().try_for_each(|size| check_size("shape", *size))?;
        if !(eps.is_finite() && eps >= 0.0) {
            return Err(Failure::argument("eps", eps, "a finite number from 0 on"));
        }
        Ok(Box::new(nn::LayerNorm::new(&shape, &layers.initializer)?.with_eps(eps)?))
    })
}

/// Adds a layer that replaces elements by 0 with a probability in the training mode, and scales the others.
#[unsafe(no_mangle)]
pub extern "C" fn sv_model_add_dropout(model: sv_model, probability: f64) -> i32 {
    add("sv_model_add_dropout", model, HasParameters::No, &|layers| {
        Ok(Box::new(nn::Dropout::new(probability, &layers.generator)?))
    })
}

/// Adds an activation, one of `SV_NN_...`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_model_add_activation(model: sv_model, activation: i32) -> i32 {
    add("sv_model_add_activation", model, HasParameters::No, &|_| {
        Ok(match activation {
            SV_NN_RELU => Box::new(nn::Relu),
            SV_NN_GELU => Box::new(nn::Gelu),
            SV_NN_GELU_TANH => Box::new(nn::GeluTanh),
            SV_NN_SILU => Box::new(nn::Silu),
            SV_NN_TANH => Box::new(nn::Tanh),
            SV_NN_SIGMOID => Box::new(nn::Sigmoid),
            other => return Err(Failure::argument("activation", other, "one of SV_NN_...")),
        })
    })
}

/// Sets the mode of a model: 1 for training, 0 for evaluation.
#[unsafe(no_mangle)]
pub extern "C" fn sv_model_set_training(model: sv_model, training: i32) -> i32 {
    guard::call("sv_model_set_training", || {
        let (object, training) = (ModelObject::find(model)?, flag(training, "training")?);
        let mut model = object.write();
        model.is_training = training;
        model.module_mut().set_training(training);
        Ok(())
    })
}

/// Computes the result of a model for a variable, and records the operations for `sv_variable_backward`.
///
/// The caller owns one reference to `*result`, a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_model_forward(
    model: sv_model,
    input: sv_variable,
    result: *mut sv_variable,
) -> i32 {
    give_variable("sv_model_forward", result, &|| {
        let (model, input) = (ModelObject::find(model)?, variable(input, "input")?);
        let model = model.read();
        Ok(model.module().forward(&input)?)
    })
}

/// Computes the result of a model for a tensor, and records nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_model_predict(model: sv_model, input: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_model_predict", result, || {
        let (model, input) = (ModelObject::find(model)?, tensor(input, "input")?);
        let model = model.read();
        Ok(nn::no_grad(|| model.module().forward(&nn::Variable::new(input)))?.tensor())
    })
}

/// Trains a model by one batch: removes the gradients, computes the result and one of `SV_LOSS_...`, the gradients, and a step
/// of the optimizer, which is one of the model. Gives the loss, a tensor of one element; the call does not wait for it.
///
/// Others that use the optimizer wait meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_model_train_step(
    model: sv_model,
    optimizer: sv_optimizer,
    loss: i32,
    input: sv_tensor,
    target: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_model_train_step", result, || {
        let (model, optimizer) = (ModelObject::find(model)?, self::optimizer(optimizer)?);
        optimizer.check_model(&model)?;
        let (input, target) = (tensor(input, "input")?, tensor(target, "target")?);
        let mut optimizer = optimizer.lock();
        let model = model.read();
        optimizer.zero_grad();
        let found = self::loss(loss, &model.module().forward(&nn::Variable::new(input))?, &target)?;
        found.backward()?;
        optimizer.step()?;
        Ok(found.tensor())
    })
}

/// Writes the names of a model's parameters, one a line, such as `0.weight`. The text is cut to fit `capacity`; `*length` gets
/// the bytes of the whole text.
///
/// # Safety
///
/// `names` is NULL or points to `capacity` bytes, and `length` is NULL or points to a `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_model_parameter_names(
    model: sv_model,
    names: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_model_parameter_names", || {
        let parameters = ModelObject::find(model)?.read().module().named_parameters();
        let found: Vec<String> = parameters.into_iter().map(|(name, _)| name).collect();
        write_text(&found.join("\n"), names, capacity, length)
    })
}

/// Gives a parameter of a model by its name, as a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_model_parameter(
    model: sv_model,
    name: *const c_char,
    result: *mut sv_variable,
) -> i32 {
    give_variable("sv_model_parameter", result, &|| {
        let (parameters, name) =
            (ModelObject::find(model)?.read().module().named_parameters(), text(name, "name")?);
        let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
        let found = parameters.iter().find(|(known, _)| known == name);
        let wanted = || format!("one of the model's parameters: {}", names.join(", "));
        let found = found.ok_or_else(|| Failure::argument("name", name, &wanted()))?;
        Ok(found.1.clone())
    })
}

/// Writes the parameters of a model with their names to a safetensors file, replacing the file at that path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_model_save(model: sv_model, path: *const c_char) -> i32 {
    guard::call("sv_model_save", || {
        let entries = ModelObject::find(model)?.read().module().state_dict();
        write_entries(text(path, "path")?, &entries)
    })
}

/// Sets the parameters of a model to those in a safetensors file, which has exactly the model's names and shapes.
///
/// Others that use the model wait meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_model_load(model: sv_model, path: *const c_char) -> i32 {
    guard::call("sv_model_load", || {
        let object = ModelObject::find(model)?;
        let path = text(path, "path")?;
        let mut model = object.write();
        let entries: BTreeMap<String, Tensor> =
            Tensor::read_safetensors(path, &model.device)?.into_iter().collect();
        Ok(model.module_mut().load_state_dict(&entries)?)
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A layer that stores its mode.
    struct Mode(Arc<AtomicBool>);

    impl Module for Mode {
        fn forward(&self, input: &nn::Variable) -> crate::Result<nn::Variable> {
            Ok(input.clone())
        }

        fn set_training(&mut self, is_training: bool) {
            self.0.store(is_training, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_panic_during_an_evaluation_leaves_the_model_in_its_mode() {
        let mode = Arc::new(AtomicBool::new(true));
        let device = Device::cpu();
        let list = nn::Sequential::new().with(Mode(mode.clone()));
        let (generator, initializer) = (Generator::new(0), nn::Initializer::new(&device));
        let layers = Layers { list, generator, initializer };
        let object = ModelObject::new(ModelContent::Layers(layers), device);
        for is_training in [true, false] {
            let mut model = object.write();
            model.is_training = is_training;
            let result = catch_unwind(AssertUnwindSafe(|| {
                let _evaluation = EvaluationMode::new(&mut model);
                assert!(!mode.load(Ordering::Relaxed));
                panic!("on purpose");
            }));
            assert!(result.is_err() && mode.load(Ordering::Relaxed) == is_training);
        }
    }
}
