//! The rows of training runs, language models and the engines: spiking networks, golden ratio, catalogue, classifier.

use super::Face::{Has, HasSome, Lacks};
use super::Topic;
use super::runtime_rows::SHELL;

const C_LORA: &str = "Not there yet: the C ABI runs published models and has no adapters of them.";
const C_TOKENIZERS: &str = "Not there yet: a tokenizer of C is loaded, and encodes and decodes whole texts.";
const C_DATA: &str = "Not there yet: a program of C makes its batches.";
const C_CACHE: &str = "The cache belongs to the call that generates.";
const C_BURST: &str = "Devices and exchanges of shards are traits of Rust.";
const PYTHON_BURST: &str = "Not there yet: a network of Python runs, without plasticity, samplers and edits.";
const PYTHON_TRAINING_TEXT: &str = "Not there yet: Python has no folders of several checkpoints.";
const TRANSFERS: &str = "The backend and its counts are for tests and measurements of Rust programs.";

pub const TOPICS: &[Topic] = &[
    Topic {
        name: "Training runs",
        rows: &[
            (
                "a training step, captured as a graph on a device",
                [
                    Has("nn::TrainingStep | nn::StepReport"),
                    HasSome(
                        "sv_model_train_step",
                        "Not there yet as a graph: the step of a model of C launches its kernels.",
                    ),
                    HasSome(
                        "nn::Sequential::train_step",
                        "Not there yet as a graph: the step of a model of C launches its kernels.",
                    ),
                    Has("nn.TrainingStep | nn.StepReport"),
                    Has("train"),
                ],
            ),
            (
                "scales of the loss for f16",
                [
                    Has("nn::LossScale"),
                    HasSome(
                        "sv_gpt_trainer_set_loss_scale sv_gpt_trainer_loss_scale",
                        "A trainer of C has a scale, and a step of a list of layers has none.",
                    ),
                    HasSome(
                        "nn::GptTrainer::set_loss_scale",
                        "A trainer of C has a scale, and a step of a list of layers has none.",
                    ),
                    Has("nn.TrainingStep.loss_scale nn.Trainer.loss_scale"),
                    Has("train --dtype"),
                ],
            ),
            (
                "activations that a backward computes again",
                [
                    Has("nn::Recompute"),
                    HasSome(
                        "sv_gpt_trainer_set_recompute",
                        "A trainer of C has the choice; its variables have no checkpoints.",
                    ),
                    HasSome(
                        "nn::GptTrainer::set_recompute",
                        "A trainer of C++ has the choice; its variables have no checkpoints.",
                    ),
                    Has("nn.Trainer"),
                    Has("train --recompute"),
                ],
            ),
            (
                "a trainer of language models",
                [
                    Has("nn::Trainer nn::TrainerOptions nn::LanguageModel"),
                    HasSome(
                        "sv_gpt_trainer_create sv_gpt_trainer_run sv_gpt_trainer_evaluate | sv_gpt_trainer_defaults \
                         sv_gpt_trainer_model sv_gpt_trainer_steps",
                        "Not there yet: the C ABI trains GPTs on a text, and no published models.",
                    ),
                    HasSome(
                        "nn::GptTrainer",
                        "Not there yet: the C ABI trains GPTs on a text, and no published models.",
                    ),
                    Has("nn.Trainer"),
                    Has("train"),
                ],
            ),
            (
                "checkpoints",
                [
                    Has(
                        "nn::Checkpoint nn::Checkpoints | nn::BestCheckpoint nn::CheckpointEntry nn::CheckpointInfo nn::CheckpointList",
                    ),
                    HasSome(
                        "sv_gpt_trainer_save sv_gpt_trainer_resume sv_gpt_load_checkpoint",
                        "Checkpoints of C are those of its trainer; models and optimizers have files of their own.",
                    ),
                    HasSome(
                        "nn::GptTrainer::save nn::GptTrainer::resume nn::Gpt::load_checkpoint",
                        "Checkpoints of C are those of its trainer; models and optimizers have files of their own.",
                    ),
                    HasSome("nn.save_checkpoint nn.load_checkpoint nn.Trainer.save", PYTHON_TRAINING_TEXT),
                    Has("train --resume"),
                ],
            ),
            (
                "batches of tensors (data loader)",
                [
                    Has("nn::DataLoader | nn::DataLoaderOptions nn::DataLoaderState"),
                    Lacks(C_DATA),
                    Lacks(C_DATA),
                    Has("nn.DataLoader"),
                    Lacks(SHELL),
                ],
            ),
            (
                "texts and batches of ids",
                [
                    Has("nn::TokenizedText nn::Batches | nn::Batch nn::Split nn::TextFile"),
                    HasSome("sv_gpt_trainer_create", C_DATA),
                    HasSome("nn::GptTrainer", C_DATA),
                    HasSome("nn.Trainer", "The batches of ids are those of the trainer."),
                    Has("train --text, train --data"),
                ],
            ),
            (
                "choice of CPU or CUDA, and counts of transfers",
                [
                    Has("nn::Backend nn::Cpu nn::Cuda | nn::AutomaticTransfers nn::TransferCounts"),
                    Lacks(TRANSFERS),
                    Lacks(TRANSFERS),
                    Lacks(TRANSFERS),
                    Has("train --device"),
                ],
            ),
        ],
    },
    Topic {
        name: "Language models",
        rows: &[
            (
                "GPT",
                [
                    Has("nn::Gpt nn::GptConfig"),
                    Has("sv_gpt_create | sv_gpt_configuration sv_gpt_loss"),
                    Has("nn::Gpt"),
                    Has("nn.Gpt nn.GptConfig"),
                    Has("train --model"),
                ],
            ),
            (
                "generation by a GPT",
                [
                    Has("nn::Generation nn::Sampler nn::SamplerOptions | nn::KeyValueCache"),
                    Has("sv_gpt_generate sv_gpt_generate_text"),
                    Has("nn::Gpt::generate nn::Sampling"),
                    Has("nn.Gpt.generate"),
                    Has("generate --run"),
                ],
            ),
            (
                "published models (decoders)",
                [
                    Has("nn::Decoder nn::DecoderConfig | nn::DecoderOptions"),
                    Has(
                        "sv_decoder_load sv_decoder_logits | sv_decoder_context sv_decoder_parameter_count sv_decoder_vocab_size",
                    ),
                    Has("nn::Decoder"),
                    Has("sv.Decoder"),
                    Has("generate --model, eval --model, convert"),
                ],
            ),
            (
                "generation by a decoder, in batches",
                [
                    Has("nn::Decoder::generate nn::GenerationOptions | nn::DecoderGeneration"),
                    Has("sv_decoder_generate"),
                    Has("nn::Decoder::generate nn::GenerationOptions"),
                    Has("sv.Decoder.generate"),
                    Has("generate --model"),
                ],
            ),
            (
                "caches of a decoder, prompts in parts",
                [
                    Has("nn::DecoderCache nn::Decoder::prefill"),
                    Lacks(C_CACHE),
                    Lacks(C_CACHE),
                    HasSome("sv.Decoder.generate", C_CACHE),
                    Has("generate --prefill-chunk"),
                ],
            ),
            (
                "the same bits beside any other sequences",
                [
                    Has("nn::DecoderCache::batch_invariant gemm::batch_invariant"),
                    Has("sv_decoder_generate"),
                    Has("nn::GenerationOptions::is_batch_invariant"),
                    Has("sv.Decoder.generate"),
                    Has("generate --batch-invariant"),
                ],
            ),
            (
                "log-probabilities and perplexity",
                [
                    Has("nn::LogProbabilities nn::TextLoss"),
                    HasSome("sv_decoder_logits", "Not there yet: the logits of a whole text give them."),
                    HasSome("nn::Decoder::logits", "Not there yet: the logits of a whole text give them."),
                    HasSome(
                        "sv.Decoder.perplexity sv.Decoder.logits",
                        "`log_softmax` of the logits of a whole text has the log-probabilities.",
                    ),
                    Has("generate --logprobs, eval"),
                ],
            ),
            (
                "stop strings and texts as they come",
                [
                    Has("nn::StopFilter nn::StreamDecoder"),
                    Lacks(C_TOKENIZERS),
                    Lacks(C_TOKENIZERS),
                    HasSome(
                        "sv.StreamDecoder",
                        "A callback of `generate` that returns False ends it at any text.",
                    ),
                    Has("generate --stop"),
                ],
            ),
            (
                "adapters (LoRA)",
                [
                    Has("nn::Decoder::add_lora nn::Decoder::load_lora nn::LoraOptions"),
                    Lacks(C_LORA),
                    Lacks(C_LORA),
                    Has("sv.Decoder.add_lora sv.Decoder.load_lora"),
                    Has("train --lora, generate --lora, convert --merge"),
                ],
            ),
            (
                "tokenizers of bytes and characters",
                [
                    Has("nn::ByteTokenizer nn::CharTokenizer | nn::Tokenizer nn::tokenizer_from_json"),
                    Has(
                        "sv_tokenizer_bytes sv_tokenizer_characters | sv_tokenizer_encode sv_tokenizer_decode \
                         sv_tokenizer_vocab_size sv_tokenizer_to_json sv_tokenizer_from_json",
                    ),
                    Has("nn::Tokenizer"),
                    HasSome(
                        "nn.Trainer",
                        "A `Trainer` takes them by name, `bytes` and `characters`; Python has no objects of them.",
                    ),
                    Has("train --tokenizer"),
                ],
            ),
            (
                "tokenizers of published models",
                [
                    Has("nn::SubwordTokenizer"),
                    Has("sv_tokenizer_load"),
                    Has("nn::Tokenizer::load"),
                    Has("sv.Tokenizer"),
                    Has("tokenize"),
                ],
            ),
            (
                "training of vocabularies",
                [
                    Has("nn::SubwordTokenizer::train nn::BpeOptions | nn::SplitPattern"),
                    Lacks(C_TOKENIZERS),
                    Lacks(C_TOKENIZERS),
                    Has("sv.Tokenizer.train | sv.Tokenizer.save"),
                    Has("tokenize --train"),
                ],
            ),
            (
                "chat templates",
                [
                    Has("nn::ChatTemplate | nn::ChatMessage"),
                    Lacks(C_TOKENIZERS),
                    Lacks(C_TOKENIZERS),
                    Has("sv.Tokenizer.apply_chat_template"),
                    Has("generate --chat"),
                ],
            ),
        ],
    },
    Topic {
        name: "Engines",
        rows: &[
            (
                "spiking networks: making and running",
                [
                    Has("burst::Network burst::Simulation burst::GeneratedNetwork"),
                    Has("sv_network_create sv_simulation_create sv_simulation_run | sv_network_*"),
                    Has(
                        "burst::Network burst::Simulation | burst::Options burst::Arrays burst::Spikes burst::Pattern",
                    ),
                    Has("burst.Network"),
                    Has("burst make, burst run, burst verify"),
                ],
            ),
            (
                "plasticity, edits, samplers and ledgers",
                [
                    Has("burst::PlasticityRule burst::SynapseCreation burst::Sampler | burst::*"),
                    Has(
                        "sv_simulation_add_rule sv_simulation_create_synapses sv_simulation_add_sampler | sv_simulation_* sv_spike_hash_add",
                    ),
                    Has(
                        "burst::Simulation::add_rule burst::Simulation::create_synapses | burst::FireQueue burst::Places \
                         burst::Area burst::State",
                    ),
                    Lacks(PYTHON_BURST),
                    Lacks("A network of the program runs without rules and edits."),
                ],
            ),
            (
                "a network on a thread of its own",
                [
                    Has("burst::BurstRunner"),
                    Has("sv_simulation_start sv_simulation_stop"),
                    Has("burst::Runner"),
                    Lacks(PYTHON_BURST),
                    Lacks(SHELL),
                ],
            ),
            (
                "a network in the memory of a device alone",
                [
                    Has("burst::Cuda"),
                    Has("sv_device_network_create sv_device_network_run | sv_device_network_*"),
                    Has("burst::DeviceNetwork"),
                    Lacks(PYTHON_BURST),
                    Lacks(SHELL),
                ],
            ),
            (
                "shards of a network, custom devices",
                [
                    Has("burst::Shards burst::Exchange burst::Backend"),
                    Lacks(C_BURST),
                    Lacks(C_BURST),
                    Lacks(C_BURST),
                    Lacks(SHELL),
                ],
            ),
            (
                "golden-ratio operations",
                [
                    Has("srt::snap srt::mm srt::syntony | srt::*"),
                    Has("sv_srt_snap sv_srt_mm sv_srt_syntony | sv_srt_*"),
                    Has(
                        "srt::snap srt::mm srt::syntony | srt::Product srt::E8Layout srt::Cone srt::Roots srt::Interval \
                         srt::Aggregate srt::Gradient srt::MatrixOperation srt::Residual srt::GoldenOperation srt::Checked \
                         srt::Golden srt::Correction srt::RunningStatistics",
                    ),
                    Has("srt.snap srt.mm srt.syntony | srt.*"),
                    Has("srt verify"),
                ],
            ),
            (
                "exact numbers and expressions",
                [
                    Has("srt::GoldenExact srt::SymExpr | srt::GoldenTensor"),
                    Has("sv_srt_exact_create sv_srt_symbolic_operation"),
                    Has("srt::GoldenExact srt::SymExpr | srt::Constant"),
                    Has("srt.GoldenExact srt.SymExpr | srt.GoldenTensor"),
                    Lacks(SHELL),
                ],
            ),
            (
                "evolution of states",
                [
                    Has("srt::Evolver | srt::EvolverOptions"),
                    Has("sv_srt_evolver_create sv_srt_evolver_run"),
                    Has("srt::Evolver | srt::EvolverEnd"),
                    Has("srt.Evolver"),
                    Has("srt evolve"),
                ],
            ),
            (
                "oscillators and neurons",
                [
                    Has("catalogue::kuramoto_step catalogue::leaky_integrate_fire | catalogue::*"),
                    Has(
                        "sv_kuramoto_step sv_leaky_integrate_fire | sv_order_parameter sv_entropy_production \
                         sv_reservoir_update sv_stdp_update",
                    ),
                    Has("catalogue::kuramoto_step catalogue::leaky_integrate_fire | catalogue::NeuronStep"),
                    Has("catalogue.kuramoto_step catalogue.leaky_integrate_fire | catalogue.*"),
                    Lacks(SHELL),
                ],
            ),
            (
                "information, beliefs and policies",
                [
                    Has("catalogue::mutual_information catalogue::GaussianModel catalogue::choose_policy"),
                    Has(
                        "sv_mutual_information sv_gaussian_model_create sv_choose_policy | sv_discretize sv_histogram_2d \
                         sv_transfer_entropy sv_transfer_entropy_of_counts sv_shannon_entropy sv_kl_divergence \
                         sv_variational_free_energy sv_conditional_entropy sv_time_delayed_embedding sv_gaussian_* \
                         sv_linear_gaussian_model_* sv_expected_free_energy sv_policy_probabilities sv_sample_policy",
                    ),
                    Has("catalogue::mutual_information catalogue::GaussianModel catalogue::choose_policy | \
                         catalogue::InferenceOptions catalogue::Inference catalogue::ExpectedFreeEnergy \
                         catalogue::StateRollout catalogue::PolicyPredictions catalogue::LinearGaussianModel"),
                    Has("catalogue.mutual_information catalogue.GaussianModel catalogue.choose_policy"),
                    Has("classify policy"),
                ],
            ),
            (
                "quantum gates, rotary encoding and sampling",
                [
                    Has("catalogue::hadamard catalogue::rope_encoding catalogue::top_k_sampling"),
                    Has("sv_hadamard sv_rope_encoding sv_top_k_sampling | sv_pauli_x sv_phase_gate sv_cnot \
                         sv_measurement_probabilities"),
                    Has("catalogue::hadamard catalogue::rope_encoding catalogue::top_k_sampling"),
                    Has("catalogue.hadamard catalogue.rope_encoding catalogue.top_k_sampling"),
                    Lacks(SHELL),
                ],
            ),
            (
                "the active-inference classifier",
                [
                    Has("classifier::Classifier classifier::synthetic | classifier::*"),
                    Has("sv_classifier_create sv_classifier_train sv_classifier_classify | sv_classifier_* \
                         sv_generative_model_* sv_free_energy sv_fuse_prior sv_learned_prior"),
                    Has(
                        "Classifier | ClassifierOptions ClassifierTraining Classification RowClassification SyntheticData \
                         GenerativeModel",
                    ),
                    Has("classifier.Classifier classifier.synthetic | classifier.*"),
                    Has("classify train, classify run"),
                ],
            ),
        ],
    },
];
