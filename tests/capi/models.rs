//! Models and optimizers of a C program: each call that would succeed without an effect is an error that says what to do.

use std::ptr::null;

use selvedge::capi::library::sv_release;
use selvedge::capi::matmul::{self, SV_ACTIVATION_GELU_TANH, sv_matmul_options};
use selvedge::capi::nn::gpt::{sv_gpt_config, sv_gpt_create};
use selvedge::capi::nn::model::*;
use selvedge::capi::nn::optimizer::*;
use selvedge::capi::nn::schedule::*;
use selvedge::capi::nn::tokenizer::sv_tokenizer_bytes;
use selvedge::capi::nn::trainer::{sv_gpt_trainer_create, sv_gpt_trainer_defaults, sv_gpt_trainer_options};
use selvedge::capi::nn::variable::losses::SV_LOSS_MSE;
use selvedge::capi::status::*;
use selvedge::capi::tensor::elementwise::sv_unary;
use selvedge::capi::tensor::operations::{SV_OP_GELU, SV_OP_GELU_TANH};
use selvedge::capi::tensor::*;
use selvedge::capi::{classifier, device, module, stream};

use super::{CPU, check, fails, floats, integers, message, ok, real, take};

/// Returns options of Adam, and zeros.
fn adam() -> sv_optimizer_options {
    // SAFETY: the struct is made of numbers, all of which may be 0.
    let zeros: sv_optimizer_options = unsafe { std::mem::zeroed() };
    sv_optimizer_options {
        size: size_of::<sv_optimizer_options>(),
        kind: SV_OPTIMIZER_ADAM,
        learning_rate: 0.1,
        ..zeros
    }
}

fn model() -> u64 {
    // SAFETY: the pointer is to a number.
    ok(|result| unsafe { sv_model_create(SV_DTYPE_F32, CPU, 1, result) })
}

#[track_caller]
fn refuses_options(model: u64, options: &sv_optimizer_options, text: &str) {
    let mut optimizer = 0;
    // SAFETY: the pointers are to a struct and a number.
    fails(unsafe { sv_optimizer_create(model, options, &mut optimizer) }, SV_ERROR_INVALID_ARGUMENT, text);
    assert_eq!(optimizer, 0);
}

#[test]
fn an_optimizer_has_parameters_and_a_model_with_one_gets_no_more() {
    let model = model();
    refuses_options(model, &adam(), "found a model without parameters");
    check(sv_model_add_activation(model, SV_NN_RELU));
    check(sv_model_add_dropout(model, 0.5));
    refuses_options(model, &adam(), "add its layers first");
    check(sv_model_add_linear(model, 2, 3, 1));
    // SAFETY: the pointers are to structs, numbers and texts.
    unsafe {
        let optimizer = ok(|result| sv_optimizer_create(model, &adam(), result));
        let late = [
            sv_model_add_linear(model, 3, 1, 1),
            sv_model_add_embedding(model, 3, 1),
            sv_model_add_layer_norm(model, [3].as_ptr(), 1, 1e-5),
        ];
        for status in late {
            assert_eq!(status, SV_ERROR_INVALID_ARGUMENT);
        }
        assert!(message().contains("with an optimizer, which would not train the layer"), "{}", message());
        // Layers without parameters miss no training.
        check(sv_model_add_activation(model, SV_NN_TANH));
        check(sv_release(optimizer));
        check(sv_model_add_linear(model, 3, 1, 1));
        let mut length = 0;
        check(sv_model_parameter_names(model, std::ptr::null_mut(), 0, &mut length));
        assert_eq!(length, "2.weight\n2.bias\n4.weight\n4.bias".len());
        check(sv_release(ok(|result| sv_optimizer_create(model, &adam(), result))));
        check(sv_release(model));
    }
}

#[test]
fn a_step_takes_the_optimizer_of_its_model() {
    let [one, other] = [model(), model()];
    for model in [one, other] {
        check(sv_model_add_linear(model, 2, 1, 1));
    }
    let (x, y) = (floats(&[1.0, 2.0], &[1, 2]), floats(&[3.0], &[1, 1]));
    // SAFETY: the pointers are to structs and numbers.
    unsafe {
        let optimizer = ok(|result| sv_optimizer_create(one, &adam(), result));
        let mut loss = 0;
        let status = sv_model_train_step(other, optimizer, SV_LOSS_MSE, x, y, &mut loss);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "optimizer: found one of another model");
        let loss = ok(|result| sv_model_train_step(one, optimizer, SV_LOSS_MSE, x, y, result));
        assert_eq!(take::<f32>(loss).len(), 1);
        // A schedule may reach 0, from which it goes on.
        check(sv_optimizer_set_learning_rate(optimizer, 0.0));
        check(sv_optimizer_step(optimizer));
        for learning_rate in [-1.0, f64::NAN, f64::INFINITY] {
            let status = sv_optimizer_set_learning_rate(optimizer, learning_rate);
            fails(status, SV_ERROR_INVALID_ARGUMENT, "learning_rate: found");
        }
        for handle in [optimizer, one, other, x, y] {
            check(sv_release(handle));
        }
    }
}

#[test]
fn options_that_would_have_no_effect_are_refused() {
    let model = model();
    check(sv_model_add_linear(model, 2, 1, 1));
    refuses_options(
        model,
        &sv_optimizer_options { learning_rate: 0.0, ..adam() },
        "sv_optimizer_set_learning_rate",
    );
    for learning_rate in [-0.1, f64::NAN] {
        refuses_options(model, &sv_optimizer_options { learning_rate, ..adam() }, "learning rate");
    }
    refuses_options(
        model,
        &sv_optimizer_options { weight_decay: 0.1, ..adam() },
        "options.has_weight_decay 1",
    );
    refuses_options(model, &sv_optimizer_options { momentum: 0.9, ..adam() }, "SV_OPTIMIZER_SGD");
    let sgd = sv_optimizer_options { kind: SV_OPTIMIZER_SGD, ..adam() };
    refuses_options(model, &sv_optimizer_options { beta1: 0.9, ..sgd }, "options.beta1");
    refuses_options(model, &sv_optimizer_options { beta2: 0.9, ..sgd }, "options.beta2");
    refuses_options(model, &sv_optimizer_options { eps: 1e-8, ..sgd }, "options.eps");
    let nesterov = sv_optimizer_options { kind: SV_OPTIMIZER_NESTEROV, ..adam() };
    refuses_options(model, &nesterov, "Nesterov momentum with a momentum of 0");
    refuses_options(model, &sv_optimizer_options { momentum: 0.9, eps: 1e-8, ..nesterov }, "options.eps");
    let lion = sv_optimizer_options { kind: SV_OPTIMIZER_LION, ..adam() };
    refuses_options(model, &sv_optimizer_options { eps: 1e-8, ..lion }, "options.eps");
    refuses_options(model, &sv_optimizer_options { momentum: 0.9, ..lion }, "options.momentum");
    refuses_options(model, &sv_optimizer_options { beta2: 1.0, ..lion }, "Lion: found a second beta of 1");
    let right = sv_optimizer_options { momentum: 0.9, has_weight_decay: 1, weight_decay: 0.1, ..sgd };
    // SAFETY: the pointers are to structs and numbers; the structs are made of numbers, all of which may be 0.
    unsafe {
        for options in [right, sv_optimizer_options { kind: SV_OPTIMIZER_NESTEROV, ..right }, lion] {
            check(sv_release(ok(|result| sv_optimizer_create(model, &options, result))));
        }
        check(sv_release(model));

        let a = floats(&[2.0], &[1, 1]);
        let mut options: sv_matmul_options = std::mem::zeroed();
        options.size = size_of::<sv_matmul_options>();
        options.alpha = real(0.5);
        let mut product = 0;
        let status = matmul::sv_matmul(a, a, &options, &mut product);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "options.has_alpha 1");
        options.has_alpha = 1;
        assert_eq!(take::<f32>(ok(|result| matmul::sv_matmul(a, a, &options, result))), [2.0]);

        let mut training: classifier::sv_classifier_training_options = std::mem::zeroed();
        training.size = size_of_val(&training);
        training.validation = 0.5;
        let priors = [0.5, 0.5];
        let mut described: classifier::sv_classifier_options = std::mem::zeroed();
        described.size = size_of_val(&described);
        (described.features, described.prior, described.classes) = (1, priors.as_ptr(), 2);
        let created = ok(|result| classifier::sv_classifier_create(&described, CPU, result));
        let rows = floats(&[0.0, 1.0, 2.0, 3.0], &[4, 1]);
        let labels = integers(&[0, 0, 1, 1], &[4]);
        let mut report: classifier::sv_classifier_report = std::mem::zeroed();
        report.size = size_of_val(&report);
        let status = classifier::sv_classifier_train(
            created,
            rows,
            labels,
            &training,
            None,
            std::ptr::null_mut(),
            &mut report,
        );
        fails(status, SV_ERROR_INVALID_ARGUMENT, "options->has_validation 1");
        for handle in [a, created, rows, labels] {
            check(sv_release(handle));
        }
    }
}

#[test]
fn models_have_dtypes_and_layers_that_train() {
    // SAFETY: the pointers are to structs, numbers and texts; the structs are made of numbers, all of which may be 0.
    unsafe {
        let mut model = 0;
        let mut config: sv_gpt_config = std::mem::zeroed();
        config.size = size_of_val(&config);
        (config.vocab_size, config.context, config.width, config.layers, config.heads) = (256, 4, 4, 1, 1);
        for dtype in [SV_DTYPE_I32, SV_DTYPE_BOOL, SV_DTYPE_U8, SV_DTYPE_F8E4M3, SV_DTYPE_C64] {
            let status = sv_model_create(dtype, CPU, 0, &mut model);
            fails(status, SV_ERROR_INVALID_ARGUMENT, "wanted f16, bf16, f32 or f64, which train");
            let status = sv_gpt_create(&config, dtype, CPU, 0, &mut model);
            fails(status, SV_ERROR_INVALID_ARGUMENT, "wanted f16, bf16, f32 or f64, which train");
        }
        for dtype in [SV_DTYPE_F16, SV_DTYPE_BF16, SV_DTYPE_F32, SV_DTYPE_F64] {
            let model = ok(|result| sv_model_create(dtype, CPU, 0, result));
            for status in [
                sv_model_add_linear(model, 0, 1, 1),
                sv_model_add_linear(model, 1, 0, 1),
                sv_model_add_embedding(model, 0, 1),
                sv_model_add_embedding(model, 1, 0),
                sv_model_add_layer_norm(model, [0].as_ptr(), 1, 1e-5),
                sv_model_add_layer_norm(model, null(), 0, 1e-5),
            ] {
                fails(status, SV_ERROR_INVALID_ARGUMENT, "1 or more");
            }
            for eps in [-1e-5, f64::NAN, f64::INFINITY] {
                let status = sv_model_add_layer_norm(model, [2].as_ptr(), 1, eps);
                fails(status, SV_ERROR_INVALID_ARGUMENT, "eps: found");
            }
            check(sv_release(model));
        }
        let mut options: sv_gpt_trainer_options = std::mem::zeroed();
        options.size = size_of_val(&options);
        check(sv_gpt_trainer_defaults(&mut options));
        options.learning_rate = 0.0;
        let tokenizer = ok(|result| sv_tokenizer_bytes(result));
        let (text, mut trainer) = (c"to be, or not to be, that is the question", 0);
        let bytes = text.count_bytes();
        let status =
            sv_gpt_trainer_create(&config, text.as_ptr(), bytes, tokenizer, &options, CPU, &mut trainer);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "options.learning_rate: found 0");
        check(sv_release(tokenizer));
    }
}

#[test]
fn gelu_without_tanh_in_its_name_is_the_form_by_the_error_function() {
    let x = floats(&[1.0, -1.0], &[1, 2]);
    let near = |found: Vec<f32>, wanted: [f32; 2], what: &str| {
        assert!(found.iter().zip(wanted).all(|(x, y)| (x - y).abs() < 2e-7), "{what}: {found:?}");
    };
    // From mpmath: the two forms differ by 1.5e-4 at 1.
    let (erf, tanh) = ([0.841_344_7, -0.158_655_25], [0.841_192, -0.158_808_01]);
    // SAFETY: the pointers are to structs and numbers; the struct is made of numbers, all of which may be 0.
    unsafe {
        near(take(ok(|result| sv_unary(SV_OP_GELU, x, result))), erf, "sv_gelu");
        near(take(ok(|result| sv_unary(SV_OP_GELU_TANH, x, result))), tanh, "sv_gelu_tanh");
        for (activation, wanted) in [(SV_NN_GELU, erf), (SV_NN_GELU_TANH, tanh)] {
            let model = model();
            check(sv_model_add_activation(model, activation));
            near(take(ok(|result| sv_model_predict(model, x, result))), wanted, "SV_NN_GELU");
            check(sv_release(model));
        }
        let identity = floats(&[1.0, 0.0, 0.0, 1.0], &[2, 2]);
        let mut options: sv_matmul_options = std::mem::zeroed();
        options.size = size_of::<sv_matmul_options>();
        options.activation = SV_ACTIVATION_GELU_TANH;
        near(
            take(ok(|result| matmul::sv_matmul(x, identity, &options, result))),
            tanh,
            "SV_ACTIVATION_GELU_TANH",
        );
        check(sv_release(identity));
        check(sv_release(x));
    }
}

#[test]
fn calls_that_need_a_cuda_device_say_so_on_the_cpu() {
    let mut handle = 0;
    // SAFETY: the pointers are to numbers and texts.
    unsafe {
        let status = module::sv_module_load(CPU, c"x".as_ptr().cast(), 1, &mut handle);
        let wanted = "sv_module_load: device: a module needs a CUDA device, but this is the CPU";
        fails(status, SV_ERROR_INVALID_ARGUMENT, wanted);
        let status = stream::sv_stream_create(CPU, 0, &mut handle);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "a stream needs a CUDA device, but this is the CPU");
        let status = stream::sv_event_create(CPU, 0, &mut handle);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "an event needs a CUDA device, but this is the CPU");
        fails(device::sv_device_reset(CPU), SV_ERROR_INVALID_ARGUMENT, "a reset needs a CUDA device");
        let status = creation::sv_tensor_zeros(SV_DTYPE_F32, null(), 0, -7, &mut handle);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "found -7; wanted SV_CPU or the ordinal of a CUDA device");
        check(device::sv_device_synchronize(CPU));
        let (mut name, mut length) = ([0; 8], 0);
        check(device::sv_device_name(CPU, name.as_mut_ptr(), name.len(), &mut length));
        assert_eq!((length, std::ffi::CStr::from_ptr(name.as_ptr())), (3, c"CPU"));
    }
}

#[test]
fn schedules_have_their_rates_and_refuse_what_they_do_not_read() {
    // SAFETY: the struct is made of numbers, all of which may be 0.
    let zeros: sv_schedule = unsafe { std::mem::zeroed() };
    let linear = sv_schedule {
        size: size_of::<sv_schedule>(),
        shape: SV_SCHEDULE_LINEAR,
        peak: 1.0,
        warmup_steps: 2,
        total_steps: 12,
        ..zeros
    };
    let step = sv_schedule { shape: SV_SCHEDULE_STEP, total_steps: 0, step_size: 5, ..linear };
    let rate = |schedule: &sv_schedule, at: u64| -> f64 {
        let mut rate = f64::NAN;
        // SAFETY: the pointers are to a struct and a number.
        check(unsafe { sv_schedule_learning_rate(schedule, at, &mut rate) });
        rate
    };
    assert_eq!([0, 1, 7, 12].map(|at| rate(&linear, at)), [0.5, 1.0, 0.5, 0.0]);
    let constant = sv_schedule { shape: SV_SCHEDULE_CONSTANT, total_steps: 0, ..linear };
    assert_eq!([0, 100].map(|at| rate(&constant, at)), [0.5, 1.0]);
    let wsd = sv_schedule { shape: SV_SCHEDULE_WSD, minimum: 0.5, ..linear };
    assert_eq!([9, 11, 12].map(|at| rate(&wsd, at)), [1.0, 0.75, 0.5]);
    let cosine = sv_schedule { shape: SV_SCHEDULE_COSINE, ..linear };
    assert!((rate(&cosine, 7) - 0.5).abs() < 1e-15);
    assert_eq!([6, 7].map(|at| rate(&step, at)), [1.0, 0.1]);
    assert_eq!(rate(&sv_schedule { gamma: 0.5, ..step }, 12), 0.25);
    let cycle = sv_schedule { shape: SV_SCHEDULE_ONE_CYCLE, ..linear };
    assert_eq!([0, 1, 11].map(|at| rate(&cycle, at)), [0.04, 1.0, 0.0]);
    assert_eq!(rate(&sv_schedule { div_factor: 4.0, ..cycle }, 0), 0.25);
    let wrong = [
        (sv_schedule { shape: 9, ..linear }, "schedule.shape"),
        (sv_schedule { reserved: 1, ..linear }, "schedule.reserved"),
        (sv_schedule { gamma: 0.5, ..linear }, "schedule.gamma"),
        (sv_schedule { step_size: 5, ..linear }, "schedule.step_size"),
        (sv_schedule { step_size: 0, ..step }, "schedule.step_size"),
        (sv_schedule { total_steps: 9, ..step }, "schedule.total_steps"),
        (sv_schedule { total_steps: 9, ..constant }, "schedule.total_steps"),
        (sv_schedule { minimum: 0.1, ..constant }, "schedule.minimum"),
        (sv_schedule { div_factor: 4.0, ..linear }, "schedule.div_factor"),
        (sv_schedule { div_factor: -4.0, ..cycle }, "a div_factor of -4"),
        (sv_schedule { gamma: f64::NAN, ..step }, "a gamma of NaN"),
        (sv_schedule { peak: -1.0, ..linear }, "a peak of -1"),
    ];
    for (schedule, text) in wrong {
        let mut rate = 0.0;
        // SAFETY: the pointers are to a struct and a number.
        let status = unsafe { sv_schedule_learning_rate(&schedule, 0, &mut rate) };
        fails(status, SV_ERROR_INVALID_ARGUMENT, text);
    }
}

#[test]
fn a_muon_has_its_settings_and_refuses_bad_ones() {
    let create = || {
        let model = model();
        check(sv_model_add_linear(model, 2, 3, 1));
        check(sv_model_add_linear(model, 3, 1, 0));
        model
    };
    let model = create();
    // SAFETY: the struct is made of numbers, all of which may be 0.
    let zeros: sv_muon_options = unsafe { std::mem::zeroed() };
    let least = sv_muon_options {
        size: size_of::<sv_muon_options>(),
        learning_rate: 0.1,
        adamw_learning_rate: 0.05,
        ..zeros
    };
    let right = sv_muon_options {
        has_weight_decay: 1,
        without_nesterov: 1,
        rate_adjustment: SV_MUON_RATE_MATCH_RMS_ADAMW,
        newton_schulz_steps: 3,
        weight_decay: 0.2,
        momentum: 0.5,
        coefficients: [3.0, -3.2, 1.2],
        eps: 1e-3,
        adamw_weight_decay: 0.1,
        ..least
    };
    let wrong = [
        (sv_muon_options { learning_rate: 0.0, ..right }, "options.learning_rate"),
        (sv_muon_options { adamw_learning_rate: 0.0, ..right }, "options.adamw_learning_rate"),
        (sv_muon_options { learning_rate: -1.0, ..right }, "Muon: found a learning rate of -1"),
        (sv_muon_options { adamw_learning_rate: -1.0, ..right }, "AdamW: found a learning rate of -1"),
        (sv_muon_options { has_weight_decay: 0, ..right }, "options.weight_decay"),
        (sv_muon_options { adamw_weight_decay: 0.1, ..least }, "options.adamw_weight_decay"),
        (sv_muon_options { has_weight_decay: 2, ..right }, "options.has_weight_decay"),
        (sv_muon_options { without_nesterov: 2, ..right }, "options.without_nesterov"),
        (sv_muon_options { rate_adjustment: 4, ..right }, "options.rate_adjustment"),
        (sv_muon_options { newton_schulz_steps: -1, ..right }, "options.newton_schulz_steps"),
        (sv_muon_options { newton_schulz_steps: 100, ..right }, "100 Newton-Schulz steps"),
        (
            sv_muon_options { coefficients: [1.0, f64::NAN, 1.0], ..right },
            "a Newton-Schulz coefficient of NaN",
        ),
        (sv_muon_options { momentum: 1.0, ..right }, "a momentum of 1"),
        (sv_muon_options { eps: -1.0, ..right }, "an eps of -1"),
        (sv_muon_options { weight_decay: -1.0, ..right }, "Muon: found a weight decay of -1"),
        (sv_muon_options { adamw_weight_decay: -1.0, ..right }, "AdamW: found a weight decay of -1"),
        (sv_muon_options { size: 8, ..right }, "size"),
    ];
    // SAFETY: the pointers are to structs and numbers.
    unsafe {
        for (options, text) in wrong {
            let mut optimizer = 0;
            let status = sv_optimizer_create_muon(model, &options, &mut optimizer);
            fails(status, SV_ERROR_INVALID_ARGUMENT, text);
        }
        let (x, y) = (floats(&[1.0, 2.0], &[1, 2]), floats(&[3.0], &[1, 1]));
        let losses = |options: &sv_muon_options| {
            let model = create();
            let optimizer = ok(|result| sv_optimizer_create_muon(model, options, result));
            let found: Vec<f32> = (0..6)
                .map(|_| {
                    let loss = ok(|result| sv_model_train_step(model, optimizer, SV_LOSS_MSE, x, y, result));
                    take::<f32>(loss)[0]
                })
                .collect();
            check(sv_release(optimizer));
            check(sv_release(model));
            found
        };
        let of_defaults = losses(&least);
        assert!(of_defaults[5] < of_defaults[0] / 2.0, "{of_defaults:?}");
        let explicit = sv_muon_options {
            has_weight_decay: 1,
            rate_adjustment: SV_MUON_RATE_ORIGINAL,
            newton_schulz_steps: 5,
            weight_decay: 0.1,
            momentum: 0.95,
            coefficients: [3.4445, -4.775, 2.0315],
            eps: 1e-7,
            adamw_weight_decay: 0.01,
            ..least
        };
        assert_eq!(losses(&explicit), of_defaults);
        let settings = [
            sv_muon_options { without_nesterov: 1, ..explicit },
            sv_muon_options { rate_adjustment: SV_MUON_RATE_SPECTRAL_UNCLAMPED, ..explicit },
            sv_muon_options { newton_schulz_steps: 2, ..explicit },
            sv_muon_options { weight_decay: 0.9, ..explicit },
            sv_muon_options { coefficients: [2.0, -1.5, 0.5], ..explicit },
            sv_muon_options { eps: 1e3, ..explicit },
            sv_muon_options { adamw_weight_decay: 0.9, ..explicit },
            sv_muon_options { adamw_learning_rate: 0.1, ..explicit },
            right,
        ];
        for (at, options) in settings.iter().enumerate() {
            assert_ne!(losses(options), of_defaults, "setting {at} has no effect");
        }
        // A model of matrices alone needs no AdamW, and one without a matrix is refused.
        let (matrices, norm) = (self::model(), self::model());
        check(sv_model_add_linear(matrices, 2, 1, 0));
        check(sv_model_add_layer_norm(norm, [2].as_ptr(), 1, 0.0));
        let options = sv_muon_options { adamw_learning_rate: 0.0, ..least };
        let optimizer = ok(|result| sv_optimizer_create_muon(matrices, &options, result));
        let mut refused = 0;
        let status = sv_optimizer_create_muon(norm, &least, &mut refused);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "parameters that are no matrices");
        for handle in [optimizer, matrices, norm, model, x, y] {
            check(sv_release(handle));
        }
    }
}

#[test]
fn an_adafactor_has_its_settings_and_refuses_bad_ones() {
    let model = model();
    check(sv_model_add_linear(model, 2, 1, 1));
    // SAFETY: the struct is made of numbers, all of which may be 0.
    let zeros: sv_adafactor_options = unsafe { std::mem::zeroed() };
    let right = sv_adafactor_options {
        size: size_of::<sv_adafactor_options>(),
        learning_rate: 0.1,
        fixed_step: 1,
        weight_decay: 0.1,
        beta2_decay: -0.5,
        variance_eps: 1e-8,
        scale_eps: 1e-2,
        clipping_threshold: 2.0,
        ..zeros
    };
    let wrong = [
        (sv_adafactor_options { learning_rate: 0.0, ..right }, "sv_optimizer_set_learning_rate"),
        (sv_adafactor_options { learning_rate: -1.0, ..right }, "a learning rate of -1"),
        (sv_adafactor_options { fixed_step: 2, ..right }, "options.fixed_step"),
        (sv_adafactor_options { reserved: 1, ..right }, "options.reserved"),
        (sv_adafactor_options { weight_decay: f64::NAN, ..right }, "a weight decay of NaN"),
        (sv_adafactor_options { beta2_decay: 0.5, ..right }, "a beta2_decay of 0.5"),
        (sv_adafactor_options { variance_eps: -1.0, ..right }, "an eps of the variance of -1"),
        (sv_adafactor_options { scale_eps: -1.0, ..right }, "an eps of the scale of -1"),
        (sv_adafactor_options { clipping_threshold: 0.5, ..right }, "a clipping threshold of 0.5"),
        (sv_adafactor_options { size: 8, ..right }, "size"),
    ];
    // SAFETY: the pointers are to structs and numbers.
    unsafe {
        for (options, text) in wrong {
            let mut optimizer = 0;
            let status = sv_optimizer_create_adafactor(model, &options, &mut optimizer);
            fails(status, SV_ERROR_INVALID_ARGUMENT, text);
        }
        let (x, y) = (floats(&[1.0, 2.0], &[1, 2]), floats(&[3.0], &[1, 1]));
        let optimizer = ok(|result| sv_optimizer_create_adafactor(model, &right, result));
        let step =
            || take::<f32>(ok(|result| sv_model_train_step(model, optimizer, SV_LOSS_MSE, x, y, result)))[0];
        let (first, second) = (step(), step());
        assert!(second < first, "{second} after {first}");
        for handle in [optimizer, model, x, y] {
            check(sv_release(handle));
        }
    }
}
