// The C++ layer without exceptions: the first failed call of an attempt is its error, and later ones do nothing. With the
// argument `fail`, a failed call outside of an attempt ends the program with its message.

#include <selvedge.hpp>

#include <cstring>

using namespace selvedge;

#define CHECK(...) \
    do { \
        if (!(__VA_ARGS__)) { \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, #__VA_ARGS__); \
            return 1; \
        } \
    } while (0)

int main(int count, char **arguments)
{
    const Tensor x = tensor({1.0f, 2.0f});
    if (count > 1 && std::strcmp(arguments[1], "fail") == 0) {
        x.squeeze(7);
        return 0;
    }
    CHECK(attempt([&] { return x + 1; })->to_vector<float>() == std::vector<float>{2, 3});
    bool went_on = false;
    std::size_t elements = 1;
    const Result<Tensor> failed = attempt([&] {
        const Tensor sum = x + tensor({1.0f, 2.0f, 3.0f});
        elements = (sum * 2).reshape({7}).to_vector<float>().size() + sum.text().size() + sum.shape().size();
        went_on = true;
        return sum;
    });
    CHECK(!failed && failed.error().status() == SV_ERROR_INVALID_ARGUMENT);
    CHECK(std::string(failed.error().what()).find("[2] and [3]") != std::string::npos);
    CHECK(went_on && elements == 0);
    // The next attempt begins anew, and one inside of another one ends there.
    const Result<std::size_t> nested = attempt([&] {
        const Result<Tensor> inner = attempt([&] { return x.squeeze(7); });
        return inner ? 0 : x.count();
    });
    CHECK(nested && *nested == 2);
    const Result<void> nothing = attempt([&] { x.matmul(Tensor()); });
    CHECK(!nothing && nothing.error().status() == SV_ERROR_INVALID_HANDLE);
    CHECK(attempt([] {}).has_value());
    CHECK(x.sum().item<float>() == 3);
    return 0;
}
