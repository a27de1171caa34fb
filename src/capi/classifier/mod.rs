//! The active-inference classifier: a recognition network, a prior, and the free energy of each decision.
//!
//! A classifier is used by one call at a time; others wait meanwhile.

pub mod generative;
pub mod inference;
pub mod rows;
pub mod settings;

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::arguments::{
    check_count, check_reserved, check_unused, copied, or_default, out, out_structure, slice, slice_mut,
    structure, text, write_some,
};
use super::buffer::User;
use super::error::Result;
use super::guard;
use super::handle::{Object, object, sv_classifier, sv_tensor};
use super::tensor::{device, flag, give, give_all, tensor};
use crate::classifier::{
    self, Classifier, ClassifierOptions, EpochReport, Evaluation, GenerativeModel, TrainingOptions,
};

/// A classifier behind a handle.
#[derive(Clone)]
pub(super) struct ClassifierObject(Arc<Mutex<Classifier>>);
object!(ClassifierObject, Classifier);

impl ClassifierObject {
    fn find(handle: u64) -> Result<ClassifierObject> {
        ClassifierObject::table().get(handle, "classifier")
    }

    fn lock(&self) -> MutexGuard<'_, Classifier> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(classifier: Classifier) -> Result<u64> {
        ClassifierObject::table().insert(ClassifierObject(Arc::new(Mutex::new(classifier))))
    }
}

/// Runs `work` on the classifier of a handle.
fn change(function: &'static str, handle: u64, work: &dyn Fn(&mut Classifier) -> Result<()>) -> i32 {
    guard::call(function, || work(&mut ClassifierObject::find(handle)?.lock()))
}

/// The shape and the first values of a classifier.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_classifier_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The number of features of a row.
    pub features: usize,
    /// The widths of the hidden layers.
    pub hidden: *const usize,
    /// The number of hidden layers, from 0 on.
    pub hidden_count: usize,
    /// The probability of each class.
    pub prior: *const f64,
    /// The number of classes.
    pub classes: usize,
    /// The probability with which training drops an element behind a hidden layer; 0 for no dropout.
    pub dropout: f64,
    /// The seed of the first weights.
    pub seed: u64,
    /// 1 if beliefs are the posterior times the prior, normalised; 0 if they are the posterior.
    pub fuse_prior: i32,
    /// 0.
    pub reserved: i32,
}

/// The settings of a training. Zeros are the defaults, but for `size`.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_classifier_training_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The most epochs; 0 for 100.
    pub epochs: usize,
    /// The rows of a batch; 0 for 64.
    pub batch: usize,
    /// The epochs without a better validation loss after which the training ends; 0 for 10.
    pub patience: usize,
    /// The learning rate of Adam; 0 for 1e-3.
    pub learning_rate: f64,
    /// The part of the rows that is kept for validation. 0 without `has_validation`.
    pub validation: f64,
    /// The seed of the split, the order of rows and dropout.
    pub seed: u64,
    /// 1 to use `validation`; otherwise it is 0.2.
    pub has_validation: i32,
    /// 0.
    pub reserved: i32,
}

/// The course of an epoch.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_classifier_epoch {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The epoch, from 1.
    pub epoch: usize,
    /// The mean loss of the epoch's batches, with dropout.
    pub training_loss: f64,
    /// The loss of the validation rows; without such rows, the training loss.
    pub validation_loss: f64,
    /// The part of right classes of the validation rows; NaN without such rows.
    pub validation_accuracy: f64,
    /// 1 if the validation loss is the least so far, else 0.
    pub is_best: i32,
    /// 0.
    pub reserved: i32,
}

/// The classes of rows beside their labels.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_classifier_evaluation {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The number of rows.
    pub rows: u64,
    /// The part of right classes.
    pub accuracy: f64,
    /// The mean of |accuracy - confidence| over ten bins of confidence, weighted by their rows.
    pub calibration_error: f64,
}

/// The course of a training.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_classifier_report {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The epochs that ran.
    pub epochs: usize,
    /// The epoch whose weights the classifier has now.
    pub best_epoch: usize,
    /// The rows that weights were trained on.
    pub training_rows: usize,
    /// The rows that were kept for validation.
    pub validation_rows: usize,
    /// The part of right classes of the validation rows; without such rows, of the training rows.
    pub accuracy: f64,
    /// The calibration error of the same rows.
    pub calibration_error: f64,
    /// 1 if the training ended before its last epoch, else 0.
    pub is_stopped_early: i32,
    /// 0.
    pub reserved: i32,
}

/// A function that is called after each epoch of a training, on the thread that trains. The struct is valid during the call. It
/// must not call functions of the same classifier.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_classifier_epoch_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, epoch: *const sv_classifier_epoch)>;

/// Creates a classifier with weights of a seed, which are the same on every device.
///
/// # Safety
///
/// `options` points to a struct with pointers to as many elements as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_create(
    options: *const sv_classifier_options,
    device: i32,
    classifier: *mut sv_classifier,
) -> i32 {
    guard::call("sv_classifier_create", || {
        let (options, result) = (structure(options, "options")?, out(classifier, "classifier")?);
        let (hidden, prior) = (
            copied(slice(options.hidden, options.hidden_count, "options->hidden")?, "options->hidden")?,
            copied(slice(options.prior, options.classes, "options->prior")?, "options->prior")?,
        );
        check_reserved("options->reserved", options.reserved)?;
        let fuse_prior = flag(options.fuse_prior, "options->fuse_prior")?;
        let &sv_classifier_options { features, dropout, seed, .. } = options;
        let options = ClassifierOptions { features, hidden, prior, fuse_prior, dropout, seed };
        result.write(ClassifierObject::enter(Classifier::new(&options, &self::device(device)?)?)?);
        Ok(())
    })
}

/// Trains a classifier on rows of `SV_DTYPE_F32` with labels, a vector of integers, by Adam on the cross entropy, and calls
/// `callback`, if not NULL, after each epoch. In the end the weights are those of the epoch with the least validation loss; they
/// are the first ones after an error. The same data, options and first weights give the same weights.
///
/// Others that use the classifier wait meanwhile.
///
/// # Safety
///
/// `options` and `report` point to structs, and `callback` may be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_train(
    classifier: sv_classifier,
    features: sv_tensor,
    labels: sv_tensor,
    options: *const sv_classifier_training_options,
    callback: sv_classifier_epoch_callback,
    user: *mut c_void,
    report: *mut sv_classifier_report,
) -> i32 {
    guard::call("sv_classifier_train", || {
        let (options, report) = (structure(options, "options")?, out_structure(report, "report")?);
        check_reserved("options->reserved", options.reserved)?;
        let default = TrainingOptions::default();
        let options = TrainingOptions {
            epochs: or_default(options.epochs, default.epochs),
            batch: or_default(options.batch, default.batch),
            patience: or_default(options.patience, default.patience),
            learning_rate: or_default(options.learning_rate, default.learning_rate),
            validation: match flag(options.has_validation, "options->has_validation")? {
                true => options.validation,
                false => {
                    let reads = "options->has_validation 1";
                    check_unused("options->validation", options.validation, reads)?;
                    default.validation
                }
            },
            seed: options.seed,
        };
        let (object, features, labels) =
            (ClassifierObject::find(classifier)?, tensor(features, "features")?, tensor(labels, "labels")?);
        let user = User(user);
        let observe = |report: &EpochReport| {
            let &EpochReport { epoch, training_loss, validation_loss, validation_accuracy, is_best } = report;
            let epoch = sv_classifier_epoch {
                size: size_of::<sv_classifier_epoch>(),
                epoch,
                training_loss,
                validation_loss,
                validation_accuracy: validation_accuracy.unwrap_or(f64::NAN),
                is_best: i32::from(is_best),
                reserved: 0,
            };
            if let Some(callback) = callback {
                // SAFETY: the caller vouches for the function and its pointer; the struct lives during the call.
                unsafe { callback(user.pointer(), &epoch) }
            }
        };
        let found = object.lock().train(&features, &labels, &options, observe)?;
        report.write(sv_classifier_report {
            size: 0,
            epochs: found.epochs.len(),
            best_epoch: found.best_epoch,
            training_rows: found.training_rows,
            validation_rows: found.validation_rows,
            accuracy: found.evaluation.accuracy(),
            calibration_error: found.evaluation.calibration_error(),
            is_stopped_early: i32::from(found.is_stopped_early),
            reserved: 0,
        });
        Ok(())
    })
}

/// Classifies rows of `SV_DTYPE_F32` on the classifier's device. Writes the class of each row as `SV_DTYPE_I64`, the posterior
/// and the beliefs with a column for each class, the free energy of each row, and its largest belief.
///
/// A feature that is not finite is an error that names the row. It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_run(
    classifier: sv_classifier,
    features: sv_tensor,
    classes: *mut sv_tensor,
    posterior: *mut sv_tensor,
    beliefs: *mut sv_tensor,
    free_energy: *mut sv_tensor,
    confidence: *mut sv_tensor,
) -> i32 {
    let results = [
        (classes, "classes"),
        (posterior, "posterior"),
        (beliefs, "beliefs"),
        (free_energy, "free_energy"),
        (confidence, "confidence"),
    ];
    give_all("sv_classifier_run", results, || {
        let (object, features) = (ClassifierObject::find(classifier)?, tensor(features, "features")?);
        let found = object.lock().classify_batch(&features)?;
        Ok([found.classes, found.posterior, found.beliefs, found.free_energy, found.confidence])
    })
}

/// Gives the logits of rows, a column for each class.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_logits(
    classifier: sv_classifier,
    features: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_classifier_logits", result, || {
        let (object, features) = (ClassifierObject::find(classifier)?, tensor(features, "features")?);
        let classifier = object.lock();
        Ok(classifier.logits(&features)?)
    })
}

/// Classifies rows and compares their classes with labels, a vector of integers.
///
/// `confusion` gets the rows by label and class: a row for each label, with a column for each class. `count` is the number of
/// classes squared, or 0 for no such table. The history of free energies stays. It waits for the device.
///
/// # Safety
///
/// `confusion` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_evaluate(
    classifier: sv_classifier,
    features: sv_tensor,
    labels: sv_tensor,
    evaluation: *mut sv_classifier_evaluation,
    confusion: *mut u64,
    count: usize,
) -> i32 {
    guard::call("sv_classifier_evaluate", || {
        let (evaluation, confusion) =
            (out_structure(evaluation, "evaluation")?, slice_mut(confusion, count, "confusion")?);
        let (object, features, labels) =
            (ClassifierObject::find(classifier)?, tensor(features, "features")?, tensor(labels, "labels")?);
        let found: Evaluation = object.lock().evaluate(&features, &labels)?;
        if count > 0 {
            let table: Vec<u64> = found.confusion().iter().flatten().copied().collect();
            check_count("count", count, table.len())?;
            confusion.copy_from_slice(&table);
        }
        evaluation.write(sv_classifier_evaluation {
            size: 0,
            rows: found.count(),
            accuracy: found.accuracy(),
            calibration_error: found.calibration_error(),
        });
        Ok(())
    })
}

/// Writes the probability of each class. `classes` is their number.
///
/// # Safety
///
/// `prior` points to `classes` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_prior(
    classifier: sv_classifier,
    prior: *mut f64,
    classes: usize,
) -> i32 {
    change("sv_classifier_prior", classifier, &|classifier| {
        check_count("classes", classes, classifier.classes())?;
        slice_mut(prior, classes, "prior")?.copy_from_slice(classifier.prior());
        Ok(())
    })
}

/// Sets the probability of each class. The sum is 1.
///
/// # Safety
///
/// `prior` points to `classes` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_set_prior(
    classifier: sv_classifier,
    prior: *const f64,
    classes: usize,
) -> i32 {
    change("sv_classifier_set_prior", classifier, &|classifier| {
        Ok(classifier.set_prior(slice(prior, classes, "prior")?)?)
    })
}

/// Moves the prior toward the observed probabilities of the classes: 0.9 of the prior plus 0.1 of them.
///
/// # Safety
///
/// `observed` points to `classes` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_learn_prior(
    classifier: sv_classifier,
    observed: *const f64,
    classes: usize,
) -> i32 {
    change("sv_classifier_learn_prior", classifier, &|classifier| {
        Ok(classifier.learn_prior(slice(observed, classes, "observed")?)?)
    })
}

/// Sets whether beliefs are the posterior times the prior, normalised (1), or the posterior (0).
#[unsafe(no_mangle)]
pub extern "C" fn sv_classifier_set_fuse_prior(classifier: sv_classifier, fuse_prior: i32) -> i32 {
    change("sv_classifier_set_fuse_prior", classifier, &|classifier| {
        classifier.set_fuse_prior(flag(fuse_prior, "fuse_prior")?);
        Ok(())
    })
}

/// Sets the generative model of the full mode: each class is a Gaussian around its row of `centres`, of one deviation. With 0
/// for `centres`, free energies are those of the KL mode, which has no such model.
#[unsafe(no_mangle)]
pub extern "C" fn sv_classifier_set_generative_model(
    classifier: sv_classifier,
    centres: sv_tensor,
    deviation: f64,
) -> i32 {
    change("sv_classifier_set_generative_model", classifier, &|classifier| {
        let model = match centres {
            0 => None,
            centres => Some(GenerativeModel::new(tensor(centres, "centres")?, deviation)?),
        };
        Ok(classifier.set_generative_model(model.as_ref())?)
    })
}

/// Writes the free energies of the last rows, at most 100, the oldest first.
///
/// `count` gets their number; the array gets the first `capacity` of them. A capacity of 0 asks for the number alone.
///
/// # Safety
///
/// `energies` points to `capacity` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_free_energies(
    classifier: sv_classifier,
    energies: *mut f64,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    change("sv_classifier_free_energies", classifier, &|classifier| {
        let found = classifier.free_energies();
        let count = out(count, "count")?;
        write_some(&found, energies, capacity, "energies")?;
        count.write(found.len());
        Ok(())
    })
}

/// Writes the weights, the prior, the options and the generative model to a file, replacing the file at that path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_save(classifier: sv_classifier, path: *const c_char) -> i32 {
    change("sv_classifier_save", classifier, &|classifier| Ok(classifier.save(text(path, "path")?)?))
}

/// Reads a classifier from a file of `sv_classifier_save`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_load(
    path: *const c_char,
    device: i32,
    classifier: *mut sv_classifier,
) -> i32 {
    guard::call("sv_classifier_load", || {
        let (path, result) = (text(path, "path")?, out(classifier, "classifier")?);
        result.write(ClassifierObject::enter(Classifier::load(path, &self::device(device)?)?)?);
        Ok(())
    })
}

/// Draws `count` rows of five classes: a class by the prior 0.7, 0.1, 0.1, 0.05, 0.05, and its centre plus normal noise of
/// deviation 3. Writes the features of shape (count, 100), the labels, and the centres of shape (5, 100).
///
/// The numbers are the same on every device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_synthetic(
    count: usize,
    seed: u64,
    device: i32,
    features: *mut sv_tensor,
    labels: *mut sv_tensor,
    centres: *mut sv_tensor,
) -> i32 {
    let results = [(features, "features"), (labels, "labels"), (centres, "centres")];
    give_all("sv_classifier_synthetic", results, || {
        let data = classifier::synthetic(count, seed, &self::device(device)?)?;
        Ok([data.features, data.labels, data.model.centres().clone()])
    })
}
