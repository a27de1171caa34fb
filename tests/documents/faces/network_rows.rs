//! The rows of networks and their training: variables, layers, losses, optimizers and schedules.

use super::Face::{Has, HasSome, Lacks};
use super::Topic;
use super::runtime_rows::SHELL;

const C_CLOSURES: &str = "Not there yet: the C ABI has no function of the program that a backward calls.";
const C_LAYERS: &str = "The models of C are lists of linear, embedding, LayerNorm, dropout and activation layers; variables have the operation.";
const C_BATCH_NORM: &str = "Not there yet: the C ABI has batch normalization of tensors, without gradients.";
const C_ATTENTION: &str = "Not there yet: the C ABI has attention of tensors, without gradients, and transformers as a whole (`sv_gpt_create`).";
const C_INITIALIZER: &str = "The layers of C have the first values of `nn::Initializer::new`, of a seed.";
const SHELL_OPTIMIZERS: &str = "`selvedge train` trains with AdamW alone.";
const C_PAIR: &str = "A pair in C is a Muon of a model's matrices and an AdamW of its other parameters.";
const SHELL_SCHEDULES: &str =
    "`selvedge train` has the schedules of language models: cosine, constant, linear and wsd.";
const SHELL_LAYERS: &str = "The program trains transformers and classifiers, whose layers are given.";

pub const TOPICS: &[Topic] = &[
    Topic {
        name: "Gradients",
        rows: &[
            (
                "variables",
                [
                    Has(
                        "nn::Variable nn::Variable::backward nn::apply | nn::VariableOperand nn::Variable::grad \
                         nn::Variable::detach",
                    ),
                    Has("sv_variable_create sv_variable_operation sv_variable_backward | sv_variable_grad \
                         sv_variable_zero_grad sv_variable_detach sv_variable_tensor sv_variable_requires_grad \
                         sv_variable_is_leaf sv_variable_assign sv_variable_cast sv_variable_to_device \
                         sv_variable_backward_retain_graph sv_variable_matmul sv_variable_reduce sv_variable_scan \
                         sv_variable_softmax sv_variable_log_softmax sv_variable_sort sv_variable_topk"),
                    Has("nn::Variable nn::Variable::backward | nn::VariableOperand"),
                    Has("nn.Variable nn.Variable.backward | nn.Buffer"),
                    Lacks(SHELL),
                ],
            ),
            (
                "shapes and indices of variables",
                [
                    Has("nn::Variable::reshape nn::Variable::index nn::Variable::cat"),
                    Has("sv_variable_reshape sv_variable_index sv_variable_cat | sv_variable_flatten \
                         sv_variable_unflatten sv_variable_squeeze sv_variable_squeeze_all sv_variable_unsqueeze \
                         sv_variable_transpose sv_variable_permute sv_variable_movedim sv_variable_flip \
                         sv_variable_expand sv_variable_slice sv_variable_select sv_variable_narrow \
                         sv_variable_diagonal sv_variable_split sv_variable_stack sv_variable_roll \
                         sv_variable_repeat sv_variable_pad sv_variable_tril sv_variable_triu \
                         sv_variable_masked_fill sv_variable_masked_select sv_variable_index_select \
                         sv_variable_index_add sv_variable_index_put sv_variable_gather sv_variable_scatter_add \
                         sv_variable_take sv_variable_take_along_axis"),
                    Has("nn::Variable::reshape nn::Variable::index nn::cat | nn::stack nn::choose"),
                    Has("nn.Variable.reshape nn.Variable.__getitem__ nn.cat | nn.stack"),
                    Lacks(SHELL),
                ],
            ),
            (
                "scopes without gradients",
                [
                    Has("nn::no_grad nn::NoGradGuard nn::is_grad_enabled"),
                    Has("sv_no_grad sv_no_grad_begin sv_no_grad_end | sv_is_grad_enabled"),
                    Has("nn::NoGrad nn::is_grad_enabled"),
                    Has("nn.no_grad nn.is_grad_enabled"),
                    Lacks(SHELL),
                ],
            ),
            (
                "gradients of gradients",
                [
                    Has("nn::Variable::gradients nn::Variable::gradients_with"),
                    Has("sv_variable_gradients"),
                    Has("nn::Variable::gradients"),
                    Has("nn.grad"),
                    Lacks(SHELL),
                ],
            ),
            (
                "checkpointing: a forward that runs again in the backward",
                [
                    Has("nn::checkpoint"),
                    Lacks(C_CLOSURES),
                    Lacks(C_CLOSURES),
                    Has("nn.checkpoint"),
                    Lacks(SHELL),
                ],
            ),
            (
                "functions with a backward of their own",
                [
                    Has("nn::Function | nn::FunctionContext"),
                    Lacks(C_CLOSURES),
                    Lacks(C_CLOSURES),
                    Has("nn.Function | nn.FunctionContext"),
                    Lacks(SHELL),
                ],
            ),
            (
                "fused functions with gradients",
                [
                    Has("nn::FusedFunction nn::DynamicFusedFunction"),
                    Lacks("Not there yet: a fused function of C takes tensors."),
                    Lacks("Not there yet: a fused function of C takes tensors."),
                    Has("sv.fuse"),
                    Lacks(SHELL),
                ],
            ),
            (
                "the origin of a NaN in a backward",
                [
                    Has("nn::detect_anomaly"),
                    Lacks("Not there yet."),
                    Lacks("Not there yet."),
                    Lacks("Not there yet."),
                    Lacks(SHELL),
                ],
            ),
        ],
    },
    Topic {
        name: "Layers",
        rows: &[
            (
                "modules and parameters",
                [
                    Has("nn::Module nn::Parameters"),
                    HasSome(
                        "sv_model_create sv_model_parameter sv_model_forward | sv_model_parameter_names sv_model_predict \
                         sv_model_set_training sv_model_save sv_model_load",
                        "A model of C is a list of layers or a transformer. Other models are functions of variables.",
                    ),
                    HasSome(
                        "nn::Module nn::Module::parameter",
                        "A model of C is a list of layers or a transformer. Other models are functions of variables.",
                    ),
                    Has("nn.Module nn.Parameter nn.Parameters | nn.HookHandle"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "first values",
                [
                    Has("nn::Initializer | nn::WeightDistribution"),
                    Lacks(C_INITIALIZER),
                    Lacks(C_INITIALIZER),
                    Has("nn.Initializer"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "Sequential",
                [
                    Has("nn::Sequential"),
                    Has("sv_model_create"),
                    Has("nn::Sequential"),
                    Has("nn.Sequential"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "Linear",
                [
                    Has("nn::Linear | nn::LinearLayer nn::linear_layers"),
                    Has("sv_model_add_linear"),
                    Has("nn::Sequential::linear"),
                    Has("nn.Linear"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "Embedding",
                [
                    Has("nn::Embedding"),
                    Has("sv_model_add_embedding sv_variable_embedding"),
                    Has("nn::Sequential::embedding nn::Variable::embedding"),
                    Has("nn.Embedding"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "LayerNorm",
                [
                    Has("nn::LayerNorm"),
                    Has("sv_model_add_layer_norm sv_variable_layer_norm"),
                    Has("nn::Sequential::layer_norm nn::Variable::layer_norm"),
                    Has("nn.LayerNorm"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "RmsNorm",
                [
                    Has("nn::RmsNorm"),
                    HasSome("sv_variable_rms_norm", C_LAYERS),
                    HasSome("nn::Variable::rms_norm", C_LAYERS),
                    Has("nn.RMSNorm"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "BatchNorm1d, BatchNorm2d",
                [
                    Has("nn::BatchNorm1d nn::BatchNorm2d"),
                    Lacks(C_BATCH_NORM),
                    Lacks(C_BATCH_NORM),
                    Has("nn.BatchNorm1d nn.BatchNorm2d"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "Dropout",
                [
                    Has("nn::Dropout"),
                    Has("sv_model_add_dropout"),
                    Has("nn::Sequential::dropout"),
                    Has("nn.Dropout"),
                    Has("train --dropout"),
                ],
            ),
            (
                "attention of variables",
                [
                    Has("nn::scaled_dot_product_attention nn::AttentionOptions"),
                    Lacks(C_ATTENTION),
                    Lacks(C_ATTENTION),
                    Has("nn.scaled_dot_product_attention"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "MultiHeadAttention",
                [
                    Has("nn::MultiHeadAttention | nn::MultiHeadAttentionOptions"),
                    Lacks(C_ATTENTION),
                    Lacks(C_ATTENTION),
                    Has("nn.MultiHeadAttention"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "FeedForward",
                [
                    Has("nn::FeedForward | nn::FeedForwardOptions"),
                    HasSome(
                        "sv_model_add_linear sv_model_add_activation",
                        "A feed-forward layer is two linear layers and an activation.",
                    ),
                    HasSome(
                        "nn::Sequential::linear nn::Sequential::activation",
                        "A feed-forward layer is two linear layers and an activation.",
                    ),
                    Has("nn.FeedForward"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "TransformerBlock",
                [
                    Has("nn::TransformerBlock"),
                    Lacks(C_ATTENTION),
                    Lacks(C_ATTENTION),
                    Has("nn.TransformerBlock"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "Relu",
                [
                    Has("nn::Relu | nn::Activation"),
                    Has("SV_NN_RELU | sv_model_add_activation"),
                    Has("nn::Activation::Relu"),
                    Has("nn.ReLU"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "Gelu, GeluTanh",
                [
                    Has("nn::Gelu nn::GeluTanh"),
                    Has("SV_NN_GELU SV_NN_GELU_TANH"),
                    Has("nn::Activation::Gelu nn::Activation::GeluTanh"),
                    Has("nn.GELU"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "Silu",
                [
                    Has("nn::Silu"),
                    Has("SV_NN_SILU"),
                    Has("nn::Activation::Silu"),
                    Has("nn.SiLU"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "Tanh",
                [
                    Has("nn::Tanh"),
                    Has("SV_NN_TANH"),
                    Has("nn::Activation::Tanh"),
                    Has("nn.Tanh"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "Sigmoid",
                [
                    Has("nn::Sigmoid"),
                    Has("SV_NN_SIGMOID"),
                    Has("nn::Activation::Sigmoid"),
                    Has("nn.Sigmoid"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
        ],
    },
    Topic {
        name: "Losses",
        rows: &[
            (
                "reductions, ignored labels and label smoothing",
                [
                    Has("nn::Reduction nn::CrossEntropyOptions"),
                    Has("sv_variable_loss_with_options | sv_variable_loss"),
                    Has("nn::LossOptions nn::LossReduction"),
                    Has("nn.cross_entropy"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "mse_loss",
                [
                    Has("nn::mse_loss"),
                    Has("SV_LOSS_MSE"),
                    Has("nn::Loss::Mse"),
                    Has("nn.mse_loss"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "cross_entropy",
                [
                    Has("nn::cross_entropy"),
                    Has("SV_LOSS_CROSS_ENTROPY"),
                    Has("nn::Loss::CrossEntropy | nn::Loss"),
                    Has("nn.cross_entropy"),
                    Has("train, eval"),
                ],
            ),
            (
                "linear_cross_entropy: that of a product, some rows at a time",
                [
                    Has("nn::linear_cross_entropy"),
                    HasSome(
                        "sv_gpt_loss",
                        "Not there yet for variables: the loss of a transformer of C computes so.",
                    ),
                    HasSome(
                        "nn::Gpt::loss",
                        "Not there yet for variables: the loss of a transformer of C computes so.",
                    ),
                    Has("nn.linear_cross_entropy"),
                    Has("train"),
                ],
            ),
            (
                "nll_loss",
                [
                    Has("nn::nll_loss"),
                    Has("SV_LOSS_NLL"),
                    Has("nn::Loss::Nll"),
                    Has("nn.nll_loss"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "binary_cross_entropy",
                [
                    Has("nn::binary_cross_entropy"),
                    Has("SV_LOSS_BINARY_CROSS_ENTROPY"),
                    Has("nn::Loss::BinaryCrossEntropy"),
                    Has("nn.binary_cross_entropy"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "binary_cross_entropy_with_logits",
                [
                    Has("nn::binary_cross_entropy_with_logits"),
                    Has("SV_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS"),
                    Has("nn::Loss::BinaryCrossEntropyWithLogits"),
                    Has("nn.binary_cross_entropy_with_logits"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
            (
                "kl_div",
                [
                    Has("nn::kl_div"),
                    Has("SV_LOSS_KL_DIV"),
                    Has("nn::Loss::KlDiv"),
                    Has("nn.kl_div"),
                    Lacks(SHELL_LAYERS),
                ],
            ),
        ],
    },
    Topic {
        name: "Optimizers and schedules",
        rows: &[
            (
                "steps and state of an optimizer",
                [
                    Has("nn::Optimizer"),
                    Has(
                        "sv_optimizer_create sv_optimizer_step | sv_optimizer_zero_grad sv_optimizer_set_learning_rate \
                         sv_optimizer_save sv_optimizer_load",
                    ),
                    Has("nn::Optimizer"),
                    Has("nn.Optimizer"),
                    Has("train --learning-rate"),
                ],
            ),
            (
                "limits of the gradients' norm",
                [
                    Has("nn::clip_grad_norm Tensor::clip_by_global_norm"),
                    Has("sv_optimizer_clip_grad_norm"),
                    Has("nn::Optimizer::clip_grad_norm"),
                    Has("nn.clip_grad_norm_"),
                    Has("train --max-norm"),
                ],
            ),
            (
                "Sgd, with momentum and Nesterov's",
                [
                    Has("nn::Sgd"),
                    Has("SV_OPTIMIZER_SGD SV_OPTIMIZER_NESTEROV"),
                    Has("nn::Optimizer::sgd"),
                    Has("nn.SGD"),
                    Lacks(SHELL_OPTIMIZERS),
                ],
            ),
            (
                "Adam",
                [
                    Has("nn::Adam"),
                    Has("SV_OPTIMIZER_ADAM"),
                    Has("nn::Optimizer::adam"),
                    Has("nn.Adam"),
                    Lacks(SHELL_OPTIMIZERS),
                ],
            ),
            (
                "AdamW",
                [
                    Has("nn::AdamW"),
                    Has("SV_OPTIMIZER_ADAMW"),
                    Has("nn::Optimizer::adamw"),
                    Has("nn.AdamW"),
                    Has("train --weight-decay"),
                ],
            ),
            (
                "Lion",
                [
                    Has("nn::Lion"),
                    Has("SV_OPTIMIZER_LION"),
                    Has("nn::Optimizer::lion"),
                    Has("nn.Lion"),
                    Lacks(SHELL_OPTIMIZERS),
                ],
            ),
            (
                "Adafactor",
                [
                    Has("nn::Adafactor"),
                    Has("sv_optimizer_create_adafactor"),
                    Has("nn::Optimizer::adafactor"),
                    Has("nn.Adafactor"),
                    Lacks(SHELL_OPTIMIZERS),
                ],
            ),
            (
                "Muon",
                [
                    Has("nn::Muon | nn::MuonRateAdjustment"),
                    Has("sv_optimizer_create_muon | SV_MUON_RATE_ORIGINAL SV_MUON_RATE_MATCH_RMS_ADAMW \
                         SV_MUON_RATE_SPECTRAL_UNCLAMPED"),
                    Has("nn::Optimizer::muon"),
                    Has("nn.Muon"),
                    Lacks(SHELL_OPTIMIZERS),
                ],
            ),
            (
                "two optimizers as one",
                [
                    Has("nn::OptimizerPair"),
                    HasSome("sv_optimizer_create_muon", C_PAIR),
                    HasSome("nn::Optimizer::muon", C_PAIR),
                    Has("nn.OptimizerPair"),
                    Lacks(SHELL_OPTIMIZERS),
                ],
            ),
            (
                "learning rate of a step",
                [
                    Has("nn::LearningRateSchedule"),
                    Has("sv_schedule_learning_rate"),
                    Has("nn::LearningRateSchedule"),
                    Has("nn.LearningRateSchedule"),
                    Has("train --schedule"),
                ],
            ),
            (
                "cosine",
                [
                    Has("nn::ScheduleShape::Cosine"),
                    Has("SV_SCHEDULE_COSINE"),
                    Has("nn::LearningRateSchedule"),
                    Has("nn.LearningRateSchedule"),
                    Has("train --schedule"),
                ],
            ),
            (
                "constant",
                [
                    Has("nn::ScheduleShape::Constant"),
                    Has("SV_SCHEDULE_CONSTANT"),
                    Has("nn::LearningRateSchedule"),
                    Has("nn.LearningRateSchedule"),
                    Has("train --schedule"),
                ],
            ),
            (
                "linear",
                [
                    Has("nn::ScheduleShape::Linear"),
                    Has("SV_SCHEDULE_LINEAR"),
                    Has("nn::LearningRateSchedule"),
                    Has("nn.LearningRateSchedule"),
                    Has("train --schedule"),
                ],
            ),
            (
                "wsd (warm-up, stable, decay)",
                [
                    Has("nn::ScheduleShape::Wsd"),
                    Has("SV_SCHEDULE_WSD"),
                    Has("nn::LearningRateSchedule"),
                    Has("nn.LearningRateSchedule"),
                    Has("train --schedule"),
                ],
            ),
            (
                "step",
                [
                    Has("nn::ScheduleShape::Step nn::LearningRateSchedule::step"),
                    Has("SV_SCHEDULE_STEP"),
                    Has("nn::LearningRateSchedule::step"),
                    Has("nn.LearningRateSchedule"),
                    Lacks(SHELL_SCHEDULES),
                ],
            ),
            (
                "one cycle",
                [
                    Has("nn::ScheduleShape::OneCycle nn::LearningRateSchedule::one_cycle"),
                    Has("SV_SCHEDULE_ONE_CYCLE"),
                    Has("nn::LearningRateSchedule::one_cycle"),
                    Has("nn.LearningRateSchedule"),
                    Lacks(SHELL_SCHEDULES),
                ],
            ),
        ],
    },
];
