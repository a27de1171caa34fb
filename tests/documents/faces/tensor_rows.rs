//! The rows of tensors: creation, operations, fused functions, products and files.

use super::Face::{Has, HasSome, Lacks};
use super::Topic;
use super::runtime_rows::SHELL;

const BACKWARD: &str =
    "These are the parts of a backward; variables of `nn` compute gradients in the other languages.";
const NO_SLICES: &str = "C takes a row by `sv_tensor_select` and parts by `sv_tensor_split`; the other languages also have iterators of rows.";
const ENGINES: &str =
    "`SELVEDGE_GEMM` chooses the engine; the functions on device memory and on slices are for Rust.";
const HELPERS: &str =
    "The functions on slices and device memory are for Rust; tensors have the same operations.";

pub const TOPICS: &[Topic] = &[
    Topic {
        name: "Tensors",
        rows: &[
            (
                "tensors and their properties",
                [
                    Has(
                        "Tensor tensor::Nested tensor::Item | Tensor::shape Tensor::dtype Tensor::rank tensor::Axes tensor::TensorOperand",
                    ),
                    Has(
                        "sv_tensor_shape sv_tensor_dtype sv_tensor_device | sv_tensor_rank sv_tensor_count sv_tensor_strides \
                         sv_tensor_is_contiguous sv_tensor_item sv_tensor_text",
                    ),
                    Has("Tensor | Shape Axes Elements Operand Number"),
                    Has("sv.Tensor"),
                    Has("demo --npy"),
                ],
            ),
            (
                "dtypes",
                [
                    Has("DType bf16 f16 Complex | types::*"),
                    Has("SV_DTYPE_F32 SV_DTYPE_BF16 | SV_DTYPE_F16 SV_DTYPE_F64 SV_DTYPE_C64"),
                    Has("DType"),
                    Has("sv.DType sv.f32 sv.bf16"),
                    Has("convert --dtype"),
                ],
            ),
            (
                "creation",
                [
                    Has(
                        "Tensor::new Tensor::zeros Tensor::arange | Tensor::full Tensor::ones Tensor::empty Tensor::linspace Tensor::eye",
                    ),
                    Has(
                        "sv_tensor_from_host sv_tensor_zeros sv_tensor_arange | sv_tensor_ones sv_tensor_full \
                         sv_tensor_full_like sv_tensor_empty sv_tensor_linspace sv_tensor_logspace sv_tensor_eye \
                         sv_tensor_from_pinned",
                    ),
                    Has("tensor Tensor::zeros Tensor::arange"),
                    Has(
                        "sv.asarray sv.zeros sv.arange | sv.ones sv.full sv.empty sv.zeros_like sv.ones_like sv.full_like \
                         sv.empty_like sv.linspace sv.logspace sv.eye",
                    ),
                    Lacks(SHELL),
                ],
            ),
            (
                "copies, devices and dtypes of elements",
                [
                    Has(
                        "Tensor::to Tensor::cast Tensor::to_vec | Tensor::copy Tensor::contiguous Tensor::item",
                    ),
                    Has(
                        "sv_tensor_to_device sv_tensor_cast sv_tensor_to_host | sv_tensor_copy sv_tensor_contiguous",
                    ),
                    Has("Tensor::to Tensor::cast Tensor::to_vector"),
                    Has(
                        "sv.Tensor.to sv.Tensor.cast sv.Tensor.tolist | sv.Tensor.numpy sv.Tensor.item sv.Tensor.copy",
                    ),
                    Lacks(SHELL),
                ],
            ),
            (
                "elementwise operations",
                [
                    Has("Tensor::add Tensor::exp tensor::apply | fuse::Operation"),
                    Has(
                        "sv_operation sv_unary sv_binary sv_ternary | sv_operation_into sv_operation_name sv_operation_code \
                         sv_operation_arity",
                    ),
                    Has("Tensor::add choose"),
                    Has("sv.Tensor.add sv.Tensor.exp sv.where"),
                    Has("explain expr"),
                ],
            ),
            (
                "comparison",
                [
                    Has("Tensor::allclose Tensor::isclose Tensor::equal"),
                    Has("sv_tensor_allclose sv_tensor_isclose sv_tensor_equal"),
                    Has("allclose Tensor::isclose Tensor::equal"),
                    Has("sv.Tensor.allclose sv.Tensor.isclose sv.Tensor.equal"),
                    Lacks(SHELL),
                ],
            ),
            (
                "reductions and statistics",
                [
                    Has("Tensor::sum Tensor::mean Tensor::var | Tensor::aminmax Tensor::cov Tensor::diff"),
                    Has(
                        "sv_tensor_reduce | sv_tensor_aminmax sv_tensor_std_mean sv_tensor_var_mean sv_tensor_cov \
                         sv_tensor_corrcoef sv_tensor_diff sv_tensor_cdist sv_tensor_nan_to_num",
                    ),
                    Has("Tensor::sum Tensor::mean Tensor::var"),
                    Has(
                        "sv.Tensor.sum sv.Tensor.mean sv.Tensor.var | sv.Tensor.aminmax sv.Tensor.cov sv.Tensor.diff",
                    ),
                    Has("explain expr --axis"),
                ],
            ),
            (
                "scans",
                [
                    Has("Tensor::cumsum Tensor::cumprod Tensor::cummax Tensor::cummin"),
                    Has("sv_tensor_scan"),
                    Has("Tensor::cumsum Tensor::cumprod Tensor::cummax Tensor::cummin"),
                    Has("sv.Tensor.cumsum sv.Tensor.cumprod sv.Tensor.cummax sv.Tensor.cummin"),
                    Lacks(SHELL),
                ],
            ),
            (
                "sorting and selection",
                [
                    Has(
                        "Tensor::sort Tensor::topk Tensor::median | Tensor::argsort Tensor::quantile Tensor::nonzero",
                    ),
                    Has(
                        "sv_tensor_sort sv_tensor_topk | sv_tensor_sorted sv_tensor_argsort sv_tensor_kthvalue \
                         sv_tensor_quantile sv_tensor_nonzero sv_tensor_masked_select sv_tensor_reduce_with_indices",
                    ),
                    Has("Tensor::sort Tensor::topk Tensor::median"),
                    Has(
                        "sv.Tensor.sort sv.Tensor.topk sv.Tensor.median | sv.Tensor.argsort sv.Tensor.quantile sv.Tensor.nonzero",
                    ),
                    Lacks(SHELL),
                ],
            ),
            (
                "search, sets and counts",
                [
                    Has("Tensor::searchsorted Tensor::unique Tensor::bincount"),
                    Has(
                        "sv_tensor_searchsorted sv_tensor_unique sv_tensor_bincount | sv_tensor_unique_with_counts \
                         sv_tensor_isin sv_tensor_bucketize sv_tensor_histc sv_tensor_histogram",
                    ),
                    Has("Tensor::searchsorted Tensor::unique Tensor::bincount"),
                    Has("sv.Tensor.searchsorted sv.Tensor.unique sv.Tensor.bincount"),
                    Lacks(SHELL),
                ],
            ),
            (
                "views",
                [
                    Has(
                        "Tensor::reshape Tensor::permute Tensor::slice | Tensor::transpose Tensor::expand Tensor::rows tensor::Rows",
                    ),
                    HasSome(
                        "sv_tensor_reshape sv_tensor_permute sv_tensor_slice | sv_tensor_transpose sv_tensor_movedim \
                         sv_tensor_expand sv_tensor_narrow sv_tensor_select sv_tensor_squeeze sv_tensor_squeeze_all \
                         sv_tensor_unsqueeze sv_tensor_flatten sv_tensor_unflatten sv_tensor_ravel sv_tensor_flip \
                         sv_tensor_diagonal sv_tensor_unfold sv_tensor_view_dtype sv_tensor_view_as_real \
                         sv_tensor_view_as_complex",
                        NO_SLICES,
                    ),
                    Has("Tensor::reshape Tensor::permute Slice"),
                    Has("sv.Tensor.reshape sv.Tensor.permute sv.Tensor.unbind"),
                    Lacks(SHELL),
                ],
            ),
            (
                "joining, splitting, repeating and padding",
                [
                    Has(
                        "Tensor::cat Tensor::split Tensor::pad | Tensor::stack Tensor::repeat Tensor::meshgrid tensor::Padding",
                    ),
                    Has("sv_tensor_cat sv_tensor_split sv_tensor_pad | sv_tensor_stack sv_tensor_repeat \
                         sv_tensor_repeat_interleave sv_tensor_roll sv_tensor_meshgrid"),
                    Has("cat Tensor::split Padding | stack meshgrid"),
                    Has("sv.cat sv.Tensor.split sv.Tensor.pad | sv.stack sv.meshgrid"),
                    Lacks(SHELL),
                ],
            ),
            (
                "masks and triangles",
                [
                    Has("Tensor::masked_fill Tensor::tril Tensor::triu"),
                    Has(
                        "sv_tensor_masked_fill sv_tensor_tril sv_tensor_triu | sv_tensor_masked_fill_in_place",
                    ),
                    Has("Tensor::masked_fill Tensor::tril Tensor::triu"),
                    Has("sv.Tensor.masked_fill sv.Tensor.tril sv.Tensor.triu"),
                    Lacks(SHELL),
                ],
            ),
            (
                "indexing",
                [
                    Has(
                        "Tensor::index Tensor::gather Tensor::scatter | tensor::Index tensor::IndexExpression tensor::ScatterReduction",
                    ),
                    Has(
                        "sv_tensor_index sv_tensor_gather sv_tensor_scatter | sv_tensor_index_* sv_tensor_take \
                         sv_tensor_take_along_axis sv_tensor_one_hot sv_tensor_put sv_tensor_put_in_place \
                         sv_tensor_scatter_* sv_tensor_masked_scatter sv_tensor_masked_scatter_in_place \
                         sv_tensor_segment_reduce",
                    ),
                    Has("Tensor::index Tensor::gather Tensor::scatter | Index ScatterReduction"),
                    Has("sv.Tensor.__getitem__ sv.Tensor.gather sv.Tensor.scatter"),
                    Lacks(SHELL),
                ],
            ),
            (
                "writing in place",
                [
                    Has("Tensor::in_place Tensor::with_output tensor::TensorMut | tensor::WithOutput"),
                    Has("sv_operation_in_place sv_tensor_assign | sv_tensor_assign_slice"),
                    Has("Tensor::assign"),
                    Has("sv.Tensor.__setitem__ sv.Tensor.fill_"),
                    Lacks(SHELL),
                ],
            ),
            (
                "random numbers",
                [
                    Has("tensor::Generator Tensor::rand Tensor::randn | tensor::GeneratorState"),
                    Has(
                        "sv_generator_create sv_rand sv_randn | sv_generator_state sv_generator_set_state sv_manual_seed \
                         sv_rand_like sv_randn_like sv_uniform sv_normal sv_bernoulli sv_randint sv_permutation \
                         sv_multinomial",
                    ),
                    Has("Generator Tensor::rand manual_seed"),
                    Has(
                        "sv.Generator sv.rand sv.randn | sv.manual_seed sv.rand_like sv.randn_like sv.uniform sv.normal \
                         sv.bernoulli sv.randint sv.permutation",
                    ),
                    Lacks(SHELL),
                ],
            ),
            (
                "softmax and normalization",
                [
                    Has(
                        "Tensor::softmax Tensor::layer_norm Tensor::batch_norm | Tensor::rms_norm Tensor::group_norm",
                    ),
                    Has(
                        "sv_tensor_softmax sv_tensor_layer_norm sv_tensor_batch_norm | sv_tensor_log_softmax \
                         sv_tensor_rms_norm sv_tensor_group_norm sv_tensor_batch_norm_training sv_tensor_normalize \
                         sv_tensor_standardize",
                    ),
                    Has("Tensor::softmax Tensor::layer_norm Tensor::batch_norm"),
                    Has("sv.Tensor.softmax sv.Tensor.layer_norm sv.Tensor.batch_norm"),
                    Has("explain expr"),
                ],
            ),
            (
                "a residual's sum and its norm in one pass",
                [
                    Has("Tensor::add_layer_norm Tensor::add_rms_norm"),
                    Lacks("Not there yet: transformers of C compute so by themselves."),
                    Lacks("Not there yet: transformers of C compute so by themselves."),
                    Lacks("Not there yet: `nn.Gpt` and `sv.Decoder` compute so by themselves."),
                    Lacks(SHELL),
                ],
            ),
            (
                "losses and backward of tensors",
                [
                    Has(
                        "Tensor::cross_entropy_with_gradient Tensor::layer_norm_backward | tensor::CrossEntropyOptions tensor::LossReduction tensor::NormGradients",
                    ),
                    Lacks(BACKWARD),
                    Lacks(BACKWARD),
                    Lacks(BACKWARD),
                    Lacks(SHELL),
                ],
            ),
        ],
    },
    Topic {
        name: "Fused functions, products and attention",
        rows: &[
            (
                "fused functions",
                [
                    Has("tensor::fuse tensor::Fused tensor::DynamicFused | tensor::FusedOperands"),
                    Has(
                        "sv_fused_create sv_fused_run sv_expression_operation | sv_fused_counts sv_expression_cast \
                         sv_expression_index sv_expression_input sv_expression_number",
                    ),
                    Has("fuse Fused Expression"),
                    Has("sv.fuse sv.Fused sv.Expression"),
                    Has("explain expr, demo"),
                ],
            ),
            (
                "explanations of a fused function",
                [
                    Has("tensor::Fused::explain fuse::Explanation"),
                    Lacks("Not there yet: `explain expr` shows the kernels of an expression's text."),
                    Lacks("Not there yet: `explain expr` shows the kernels of an expression's text."),
                    Has("sv.Fused.explain"),
                    Has("explain expr --ptx"),
                ],
            ),
            (
                "the compiler of expressions",
                [
                    Has("fuse::Expression fuse::Reduction fuse::RowProgram | fuse::*"),
                    Lacks(HELPERS),
                    Lacks(HELPERS),
                    Lacks(HELPERS),
                    Has("explain expr"),
                ],
            ),
            (
                "matrix products",
                [
                    Has(
                        "Tensor::matmul tensor::Matmul | Tensor::dot Tensor::outer Tensor::kron Tensor::trace Tensor::diag",
                    ),
                    Has(
                        "sv_matmul sv_matmul_add_to sv_matmul_with_aux | sv_tensor_kron sv_tensor_trace sv_tensor_diag",
                    ),
                    Has("Tensor::matmul matmul MatmulOptions"),
                    Has(
                        "sv.Tensor.matmul sv.Tensor.gemv | sv.Tensor.dot sv.Tensor.outer sv.Tensor.kron sv.Tensor.trace sv.Tensor.diag",
                    ),
                    Has("explain matmul, demo"),
                ],
            ),
            (
                "products on memory, and the choice of an engine",
                [
                    Has("gemm::gemm gemm::Product gemm::Engine | gemm::*"),
                    Lacks(ENGINES),
                    Lacks(ENGINES),
                    Lacks(ENGINES),
                    Has("explain matmul --by"),
                ],
            ),
            (
                "attention",
                [
                    Has(
                        "Tensor::scaled_dot_product_attention tensor::AttentionOptions | tensor::SequenceLengths",
                    ),
                    Has("sv_tensor_scaled_dot_product_attention"),
                    Has("scaled_dot_product_attention AttentionOptions"),
                    Has("sv.Tensor.scaled_dot_product_attention"),
                    Has("explain attention"),
                ],
            ),
            (
                "attention and sorting on memory",
                [
                    Has("attention::forward attention::decode sort::argsort | attention::* sort::*"),
                    Lacks(HELPERS),
                    Lacks(HELPERS),
                    Lacks(HELPERS),
                    Has("explain attention --decode"),
                ],
            ),
        ],
    },
    Topic {
        name: "Exchange and files",
        rows: &[
            (
                "DLPack",
                [
                    Has("Tensor::to_dlpack Tensor::from_dlpack | tensor::dlpack"),
                    Has(
                        "sv_tensor_to_dlpack sv_tensor_from_dlpack | sv_tensor_to_dlpack_legacy sv_tensor_from_dlpack_legacy",
                    ),
                    Has("Tensor::to_dlpack Tensor::from_dlpack"),
                    Has("sv.from_dlpack sv.Tensor.__dlpack__"),
                    Lacks(SHELL),
                ],
            ),
            (
                "`.npy`",
                [
                    Has("Tensor::read_npy Tensor::write_npy io::npy::NpyFile | io::HostArray io::write_file"),
                    Has("sv_tensor_read_npy sv_tensor_write_npy"),
                    Has("Tensor::read_npy Tensor::write_npy"),
                    Has("io.load io.save"),
                    Has("run --arg, run --out, demo --npy"),
                ],
            ),
            (
                "`.npz`",
                [
                    Has("Tensor::read_npz Tensor::write_npz io::npz::NpzFile"),
                    Has("sv_tensor_read_npz sv_tensor_write_npz"),
                    Has("Tensor::read_npz write_npz"),
                    Has("io.load io.save"),
                    Has("burst run --spikes"),
                ],
            ),
            (
                "`.safetensors`",
                [
                    Has(
                        "Tensor::read_safetensors Tensor::write_safetensors io::safetensors::SafetensorsFile",
                    ),
                    Has("sv_tensor_read_safetensors sv_tensor_write_safetensors | sv_safetensors_names"),
                    Has("read_safetensors write_safetensors"),
                    Has("io.load io.save"),
                    Has("convert, classify train --output"),
                ],
            ),
            (
                "files of token ids (`.bin`, `.npy`)",
                [
                    Has("nn::TokenFiles nn::TokenWriter | nn::TokenFormat"),
                    Lacks("Not there yet: a trainer of C takes a text."),
                    Lacks("Not there yet: a trainer of C takes a text."),
                    Has("io.load_ids io.save_ids nn.Trainer"),
                    Has("tokenize, train --data"),
                ],
            ),
            (
                "Hugging Face folders",
                [
                    Has("nn::Decoder::load nn::Decoder::save"),
                    Has("sv_decoder_load sv_decoder_save"),
                    Has("nn::Decoder::load nn::Decoder::save"),
                    Has("sv.Decoder.load sv.Decoder.save"),
                    Has("convert, generate --model"),
                ],
            ),
        ],
    },
];
