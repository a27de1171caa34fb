// Sorted order, index expressions, writes by index, statistics and attention of the C++ layer.

#ifndef SELVEDGE_TESTS_CLASSES_INDEXING_HPP
#define SELVEDGE_TESTS_CLASSES_INDEXING_HPP

#include <cmath>

#include "classes_check.hpp"

namespace {

using Longs = List<std::int64_t>;

inline Longs longs(const Tensor &tensor) { return tensor.to_vector<std::int64_t>(); }
inline List<int> ints(const Tensor &tensor) { return tensor.to_vector<int>(); }

void attention()
{
    // A result is the mean of the values that a query reads.
    const Tensor x = Tensor::zeros<float>({1, 1, 4, 1});
    const Tensor values = tensor({1.0f, 2.0f, 6.0f, 7.0f}).reshape({1, 1, 4, 1});
    const auto of = [&](const AttentionOptions &options) {
        return scaled_dot_product_attention(x, x, values, options).to_vector<float>();
    };
    CHECK(scaled_dot_product_attention(x, x, values).to_vector<float>() == List<float>(4, 4.0f));
    AttentionOptions causal;
    causal.is_causal = true;
    causal.window_before = 1;
    CHECK(of(causal) == List<float>{1, 1.5f, 4, 6.5f});
    AttentionOptions packed;
    packed.query_offsets = {0, 1, 3};
    packed.key_offsets = {0, 2, 4};
    CHECK(of(packed) == List<float>{1.5f, 6.5f, 6.5f, 0});
    packed.key_offsets.pop_back();
    FAILS(SV_ERROR_LENGTH_MISMATCH, scaled_dot_product_attention(x, x, values, packed));
    AttentionOptions padded;
    const Tensor lengths = tensor({std::int64_t{2}});
    padded.key_lengths = &lengths;
    CHECK(of(padded) == List<float>(4, 1.5f));
    AttentionOptions drawn;
    drawn.dropout = 0.5;
    drawn.generator = Generator(7);
    const List<float> dropped = of(drawn);
    drawn.generator = Generator(7);
    CHECK(of(drawn) == dropped && dropped != List<float>(4, 4.0f));
    AttentionOptions steep;
    steep.scale = 1e4;
    CHECK(allclose(scaled_dot_product_attention(values, values, values, steep), x + 7.0f, 1e-5));
    steep.soft_cap = 1e-6;
    CHECK(allclose(scaled_dot_product_attention(values, values, values, steep), x + 4.0f, 1e-4));
    const Tensor mask = tensor({true, false, true, false});
    AttentionOptions masked;
    masked.mask = &mask;
    CHECK(of(masked) == List<float>(4, 3.5f));
    const Tensor none;
    masked.mask = &none;
    FAILS(SV_ERROR_INVALID_HANDLE, scaled_dot_product_attention(x, x, values, masked));
    FAILS(SV_ERROR_INVALID_ARGUMENT, scaled_dot_product_attention(x, x, values.reshape({4})));
}

void sorting_indexing_and_statistics(const std::string &folder)
{
    const Tensor x = tensor({3, 1, 3, 2});
    const auto [values, indices] = x.sort();
    CHECK(ints(values) == List<int>{1, 2, 3, 3} && longs(indices) == Longs{1, 3, 0, 2});
    CHECK(ints(x.sort(0, true).first) == List<int>{3, 3, 2, 1} && ints(x.sorted()) == List<int>{1, 2, 3, 3});
    CHECK(longs(x.argsort()) == longs(indices));
    CHECK(ints(x.topk(2).first) == List<int>{3, 3} && ints(x.topk(1, 0, false).first) == List<int>{1});
    CHECK(x.kthvalue(2).first.item<int>() == 2 && x.median().first.item<int>() == 2);
    CHECK(x.nanmedian().second.item<std::int64_t>() == 3 && x.mode().first.item<int>() == 3);
    CHECK(x.max_with_indices(0).second.item<std::int64_t>() == 0 && x.min_with_indices(0).first.item<int>() == 1);
    CHECK(ints(x.unique()) == List<int>{1, 2, 3} && ints(x.unique_consecutive()) == ints(x));
    const auto [distinct, inverse, counts] = x.unique_with_counts();
    CHECK(distinct.count() == 3 && longs(inverse) == Longs{2, 0, 2, 1} && longs(counts) == Longs{1, 1, 2});
    CHECK(x.isin(tensor({3})).to_vector<bool>() == List<bool>{true, false, true, false});
    CHECK(longs(values.searchsorted(tensor({3}))) == Longs{2} && longs(values.searchsorted(tensor({3}), true)) == Longs{4});
    CHECK(longs(x.bucketize(tensor({1, 2}))) == Longs{2, 0, 2, 1} && longs(x.bincount(5)) == Longs{0, 1, 1, 2, 0});
    const Tensor d = x.cast<double>();
    CHECK(d.quantile(0.5).item<double>() == 2.5 && d.nanquantile(0).item<double>() == 1);
    CHECK(d.histc(2).to_vector<double>() == List<double>{1, 3});
    CHECK(longs(d.histogram(tensor({0.0, 2.0, 4.0}))) == Longs{1, 3});
    CHECK(longs(x.eq(3).nonzero()) == Longs{0, 2} && ints(x.masked_select(x.lt(3))) == List<int>{1, 2});
    FAILS(SV_ERROR_INVALID_ARGUMENT, x.topk(9));

    const Tensor m = Tensor::arange(0, 12).reshape({3, 4});
    CHECK(ints(m.index({1, Index::slice(1, 3)})) == List<int>{5, 6} && m.index({Index::ellipsis(), -1}).count() == 3);
    CHECK(m.index({Index::new_axis(), Index::slice(open_end, open_end, 2)}).shape() == Shape(1, 2, 4));
    CHECK(ints(m.index({tensor({2, 0}), tensor({3, 1})})) == List<int>{11, 1} && ints(m.index({m.gt(9)})) == List<int>{10, 11});
    CHECK(ints(m.index_assign({0}, -1).index({0})) == List<int>{-1, -1, -1, -1});
    Tensor y = m;
    y.index_assign_in_place({m.gt(1), }, 0).index_add_in_place(0, tensor({2}), m.index({Index::slice(0, 1)}));
    CHECK(ints(y) == List<int>{0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3} && ints(m.index({0})) == List<int>{0, 1, 2, 3});
    FAILS(SV_ERROR_INVALID_HANDLE, m.index({Tensor()}));
    const Tensor places = tensor({0, 2, 0}), elements = tensor({5, 6, 7});
    CHECK(ints(x.scatter_add(0, places, elements)) == List<int>{15, 1, 9, 2} && ints(x.index_add(0, places, elements))[0] == 15);
    CHECK(ints(x.scatter_reduce(0, places, elements, ScatterReduction::Max)) == List<int>{7, 1, 6, 2});
    CHECK(ints(x.scatter_reduce(0, places, elements, ScatterReduction::Mean, false)) == List<int>{6, 1, 6, 2});
    CHECK(ints(x.index_fill(0, places, 9)) == List<int>{9, 1, 9, 2} && ints(x.index_put({places}, elements))[0] == 7);
    CHECK(ints(x.masked_scatter(x.eq(3), elements)) == List<int>{5, 1, 6, 2});
    CHECK(ints(elements.segment_reduce(tensor({2, 0, 1}), ScatterReduction::Prod, 4)) == List<int>{30, 4, 7});
    Tensor z = x;
    z.scatter_add_in_place(0, places, elements).scatter_reduce_in_place(0, places, elements, ScatterReduction::Min);
    CHECK(ints(z) == List<int>{5, 1, 6, 2});
    z.index_fill_in_place(0, tensor({1}), 8).index_put_in_place({tensor({1})}, tensor({1}), true);
    CHECK(ints(z.masked_scatter_in_place(z.eq(2), elements)) == List<int>{5, 9, 6, 5});

    CHECK(x.aminmax().first.item<int>() == 1 && x.aminmax().second.item<int>() == 3);
    CHECK(d.var_mean().second.item<double>() == 2.25 && d.std_mean(0, 0).second.item<double>() == 2.25);
    CHECK(allclose(d.std_mean().first.square(), d.var_mean().first));
    CHECK(ints(x.diff()) == List<int>{-2, 2, -1} && x.kron(x).count() == 16 && ints(x.diag().diag()) == ints(x));
    const Tensor rows = tensor({{1.0, 2.0, 3.0}, {3.0, 2.0, 1.0}});
    CHECK(rows.cov().to_vector<double>() == List<double>{1, -1, -1, 1} && allclose(rows.corrcoef(), rows.cov()));
    CHECK(allclose(rows.cdist(rows), tensor({{0.0, std::sqrt(8.0)}, {std::sqrt(8.0), 0.0}})));
    CHECK(rows.trace().item<double>() == 3 && rows.equal(rows) && !rows.equal(d));
    const Tensor gaps = tensor({1.0, std::nan("")});
    CHECK(gaps.nansum().item<double>() == 1 && gaps.nanmean(0, true).shape() == Shape(1));
    CHECK(gaps.nan_to_num(7).to_vector<double>() == List<double>{1, 7} && gaps.isclose(gaps).to_vector<bool>()[0]);

    CHECK(Tensor::empty({2, 3}, DType::F32).shape() == Shape(2, 3) && ints(x.full_like(4)) == List<int>{4, 4, 4, 4});
    CHECK(x.zeros_like().equal(x * 0) && x.ones_like().sum().item<std::int64_t>() == 4);
    CHECK(allclose(Tensor::logspace(0, 2, 3, 10, DType::F64), tensor({1.0, 10.0, 100.0})));
    CHECK(ints(meshgrid({tensor({1, 2}), tensor({3, 4})})[1]) == List<int>{3, 4, 3, 4});
    CHECK(m.ravel().shape() == Shape(12) && m.unflatten(1, {2, -1}).shape() == Shape(3, 2, 2));
    CHECK(d.view_dtype(DType::I32).shape() == Shape(8));
    CHECK(d.reshape({2, 2}).view_as_complex().view_as_real().equal(d.reshape({2, 2})));
    CHECK(longs(Generator(1).multinomial(tensor({0.0f, 1.0f}), 3, true)) == Longs{1, 1, 1});
    write_safetensors(folder + "/both.safetensors", {{"x", x}, {"d", d}});
    const NamedTensors read = read_safetensors(folder + "/both.safetensors");
    CHECK(read.size() == 2 && Tensor::read_safetensors(folder + "/both.safetensors", "d").equal(d));
    std::remove((folder + "/both.safetensors").c_str());
}

} // namespace

#endif
