// Neural networks: sequential models and optimizers.

#ifndef SELVEDGE_NN_HPP
#define SELVEDGE_NN_HPP

#include "variable.hpp"

SELVEDGE_BEGIN

namespace nn {

enum class Activation : std::int32_t {
    Relu = SV_NN_RELU,
    Gelu = SV_NN_GELU,
    GeluTanh = SV_NN_GELU_TANH,
    Silu = SV_NN_SILU,
    Tanh = SV_NN_TANH,
    Sigmoid = SV_NN_SIGMOID,
};

/// The methods of models of any kind.
template <class Derived>
class Module : public Object<Derived, sv_model> {
public:
    void train() const { detail::call(sv_model_set_training, this->handle(), std::int32_t{1}); }
    void eval() const { detail::call(sv_model_set_training, this->handle(), std::int32_t{0}); }

    /// Computes the result, and records it for Variable::backward().
    Variable forward(const Variable &input) const
    {
        return detail::make<Variable>(sv_model_forward, this->handle(), input.handle());
    }
    /// Computes the result, and records nothing.
    Tensor operator()(const Tensor &input) const
    {
        return detail::make<Tensor>(sv_model_predict, this->handle(), input.handle());
    }

    /// Returns the names of the parameters, such as `0.weight`.
    std::vector<std::string> parameter_names() const
    {
        const std::string text = detail::text(sv_model_parameter_names, this->handle());
        std::vector<std::string> names;
        for (std::size_t start = 0; start < text.size(); start += names.back().size() + 1)
            names.push_back(text.substr(start, text.find('\n', start) - start));
        return names;
    }
    Variable parameter(const std::string &name) const
    {
        return detail::make<Variable>(sv_model_parameter, this->handle(), name.c_str());
    }

    /// Writes the parameters to a safetensors file.
    void save(const std::string &path) const { detail::call(sv_model_save, this->handle(), path.c_str()); }
    void load(const std::string &path) const { detail::call(sv_model_load, this->handle(), path.c_str()); }

protected:
    using Object<Derived, sv_model>::Object;
};

/// Changes the parameters of a model by their gradients. The model has all of its layers, and a learning rate above 0;
/// set_learning_rate() takes 0 too. A copy is the same optimizer.
class Optimizer : public Object<Optimizer, sv_optimizer> {
public:
    Optimizer() noexcept = default;
    template <class Model>
    Optimizer(const Module<Model> &model, sv_optimizer_options options)
    {
        options.size = sizeof options;
        *this = detail::make<Optimizer>(sv_optimizer_create, model.handle(), &options);
    }

    template <class Model>
    static Optimizer sgd(const Module<Model> &model, double learning_rate, double momentum = 0, bool nesterov = false)
    {
        sv_optimizer_options options{};
        options.kind = nesterov ? SV_OPTIMIZER_NESTEROV : SV_OPTIMIZER_SGD;
        options.learning_rate = learning_rate;
        options.momentum = momentum;
        return Optimizer(model, options);
    }
    template <class Model>
    static Optimizer adam(const Module<Model> &model, double learning_rate)
    {
        sv_optimizer_options options{};
        options.kind = SV_OPTIMIZER_ADAM;
        options.learning_rate = learning_rate;
        return Optimizer(model, options);
    }
    template <class Model>
    static Optimizer adamw(const Module<Model> &model, double learning_rate, double weight_decay = 0.01)
    {
        return with_weight_decay(model, SV_OPTIMIZER_ADAMW, learning_rate, weight_decay);
    }
    template <class Model>
    static Optimizer lion(const Module<Model> &model, double learning_rate, double weight_decay = 0)
    {
        return with_weight_decay(model, SV_OPTIMIZER_LION, learning_rate, weight_decay);
    }
    template <class Model>
    static Optimizer adafactor(const Module<Model> &model, sv_adafactor_options options)
    {
        options.size = sizeof options;
        return detail::make<Optimizer>(sv_optimizer_create_adafactor, model.handle(), &options);
    }
    /// Other numbers are the defaults of `torch.optim.Adafactor`.
    template <class Model>
    static Optimizer adafactor(const Module<Model> &model, double learning_rate = 1e-2, double weight_decay = 0)
    {
        sv_adafactor_options options{};
        options.learning_rate = learning_rate;
        options.weight_decay = weight_decay;
        return adafactor(model, options);
    }
    /// A Muon of the matrices of a model and an AdamW of its other parameters, as one optimizer.
    template <class Model>
    static Optimizer muon(const Module<Model> &model, sv_muon_options options)
    {
        options.size = sizeof options;
        return detail::make<Optimizer>(sv_optimizer_create_muon, model.handle(), &options);
    }
    /// Other numbers are the defaults of `torch.optim.Muon` and `torch.optim.AdamW`.
    template <class Model>
    static Optimizer muon(const Module<Model> &model, double learning_rate, double adamw_learning_rate)
    {
        sv_muon_options options{};
        options.learning_rate = learning_rate;
        options.adamw_learning_rate = adamw_learning_rate;
        return muon(model, options);
    }

    void step() const { detail::call(sv_optimizer_step, handle()); }
    void zero_grad() const { detail::call(sv_optimizer_zero_grad, handle()); }
    void set_learning_rate(double learning_rate) const
    {
        detail::call(sv_optimizer_set_learning_rate, handle(), learning_rate);
    }
    /// Scales the gradients so that their norm together is at most `max_norm`. Returns the norm before.
    Tensor clip_grad_norm(double max_norm) const
    {
        return detail::make<Tensor>(sv_optimizer_clip_grad_norm, handle(), max_norm);
    }

    /// Writes the learning rate and the states to a safetensors file.
    void save(const std::string &path) const { detail::call(sv_optimizer_save, handle(), path.c_str()); }
    void load(const std::string &path) const { detail::call(sv_optimizer_load, handle(), path.c_str()); }

private:
    template <class Model>
    static Optimizer with_weight_decay(const Module<Model> &model, std::int32_t kind, double learning_rate, double weight_decay)
    {
        sv_optimizer_options options{};
        options.kind = kind;
        options.learning_rate = learning_rate;
        options.has_weight_decay = 1;
        options.weight_decay = weight_decay;
        return Optimizer(model, options);
    }
};

/// The learning rate of each step, for Optimizer::set_learning_rate().
class LearningRateSchedule {
public:
    /// Takes a shape, such as `SV_SCHEDULE_COSINE`, and its numbers. The size of the struct is set here.
    explicit LearningRateSchedule(sv_schedule schedule) : schedule_(schedule) { schedule_.size = sizeof schedule_; }

    /// The peak, times `gamma` after each `size` steps.
    static LearningRateSchedule step(double peak, std::uint64_t size, double gamma = 0.1)
    {
        sv_schedule schedule{};
        schedule.shape = SV_SCHEDULE_STEP;
        schedule.peak = peak;
        schedule.step_size = size;
        schedule.gamma = gamma;
        return LearningRateSchedule(schedule);
    }
    /// A warm-up from peak / 25 in the first 3 of 10 steps, and a cosine to peak / 25e4.
    static LearningRateSchedule one_cycle(double peak, std::uint64_t total_steps)
    {
        sv_schedule schedule{};
        schedule.shape = SV_SCHEDULE_ONE_CYCLE;
        schedule.peak = peak;
        schedule.minimum = peak / 25 / 1e4;
        schedule.warmup_steps = total_steps / 10 * 3 + total_steps % 10 * 3 / 10;
        schedule.total_steps = total_steps;
        return LearningRateSchedule(schedule);
    }

    /// Returns the rate of a step, counted from 0.
    double operator()(std::uint64_t step) const
    {
        return detail::get<double>(sv_schedule_learning_rate, &schedule_, step);
    }

private:
    sv_schedule schedule_;
};

/// Layers one after another, with their parameters. A copy is the same model.
class Sequential : public Module<Sequential> {
public:
    Sequential() noexcept = default;
    /// Makes a model without layers, whose parameters will be on a device and drawn from a generator with a seed.
    explicit Sequential(Device device, std::uint64_t seed = 0, DType dtype = DType::F32)
        : Module(detail::get<sv_model>(sv_model_create, static_cast<std::int32_t>(dtype), device.ordinal(), seed))
    {
    }

    Sequential &linear(std::size_t inputs, std::size_t outputs, bool bias = true)
    {
        return add(sv_model_add_linear, inputs, outputs, std::int32_t{bias});
    }
    Sequential &embedding(std::size_t rows, std::size_t width) { return add(sv_model_add_embedding, rows, width); }
    Sequential &layer_norm(const Shape &shape, double eps = 1e-5)
    {
        return add(sv_model_add_layer_norm, shape.data(), shape.size(), eps);
    }
    Sequential &dropout(double probability) { return add(sv_model_add_dropout, probability); }
    Sequential &activation(Activation activation)
    {
        return add(sv_model_add_activation, static_cast<std::int32_t>(activation));
    }

    /// Trains by one batch, and returns its loss.
    Tensor train_step(const Optimizer &optimizer, Loss loss, const Tensor &input, const Tensor &target) const
    {
        return detail::make<Tensor>(sv_model_train_step, handle(), optimizer.handle(), static_cast<std::int32_t>(loss),
                                    input.handle(), target.handle());
    }

private:
    template <class Function, class... Arguments>
    Sequential &add(Function function, Arguments... arguments)
    {
        detail::call(function, handle(), arguments...);
        return *this;
    }
};

} // namespace nn

SELVEDGE_END

#endif
