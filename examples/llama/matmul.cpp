#include "examples/llama/matmul.hpp"

#include "examples/llama/widened_product.hpp"

#include <dnnl.hpp>

#include <array>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

// Of libgomp, which oneDNN uses: declared here, since the header belongs to whichever OpenMP the
// compiler brings.
extern "C" void omp_set_num_threads(int threads);

namespace llama {
namespace {

using DataType = dnnl::memory::data_type;

struct Key {
  Product product;
  DataType in;
  DataType out;
  friend auto operator<=>(const Key&, const Key&) = default;
};

/// A compiled product; the pointers of its operands change from call to call.
struct Compiled {
  dnnl::matmul primitive;
  dnnl::memory a;
  dnnl::memory b;
  dnnl::memory c;
  dnnl::memory scratch;
  std::size_t scratch_bytes = 0;
};

dnnl::memory::desc matrix(std::int64_t rows,
                          std::int64_t columns,
                          DataType type,
                          bool is_transposed) {
  const dnnl::memory::dims strides =
      is_transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1};
  return {{rows, columns}, type, strides};
}

/// oneDNN's own scratch memory: grown to the largest product, then kept.
class Scratch {
 public:
  void* at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      bytes_ = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      memory_.reset(std::aligned_alloc(kAlignment, bytes_));
      if (!memory_) throw std::bad_alloc();
    }
    return memory_.get();
  }

 private:
  static constexpr std::size_t kAlignment = 4096;
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace

struct MatrixProducts::State {
  explicit State(int thread_count) : threads(thread_count) {}
  Compiled& compiled(const Key& key);
  void run(const Key& key, const void* a, const void* b, void* c);
  void run_widened(const Product& product,
                   const sifr::bfloat16* a,
                   const sifr::bfloat16* b,
                   const BlockSink& sink);

  int threads;
  dnnl::engine engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream = dnnl::stream(engine);
  std::map<Key, Compiled> products;
  Scratch scratch;
  WidenedProduct widened;
  bool has_bf16 = false;
};

namespace {

dnnl::matmul::primitive_desc description(const Key& key,
                                         const dnnl::engine& engine,
                                         bool may_be_missing) {
  const Product& p = key.product;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.adds) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::desc wanted(matrix(p.m, p.k, key.in, p.is_a_transposed),
                                  matrix(p.k, p.n, key.in, p.is_b_transposed),
                                  matrix(p.m, p.n, key.out, false));
  return {wanted, attributes, engine, may_be_missing};
}

Compiled compile(const Key& key, const dnnl::engine& engine) {
  const dnnl::matmul::primitive_desc found = description(key, engine, false);
  const auto empty = [&engine](const dnnl::memory::desc& shape) {
    return dnnl::memory(shape, engine, nullptr);
  };
  return {dnnl::matmul(found),
          empty(found.src_desc()),
          empty(found.weights_desc()),
          empty(found.dst_desc()),
          empty(found.scratchpad_desc()),
          found.scratchpad_desc().get_size()};
}

/// oneDNN's handles are not const; inputs are only read.
void point(dnnl::memory& memory, const void* data) {
  memory.set_data_handle(const_cast<void*>(data));
}

}  // namespace

Compiled& MatrixProducts::State::compiled(const Key& key) {
  const auto found = products.find(key);
  return found != products.end() ? found->second
                                 : products.emplace(key, compile(key, engine)).first->second;
}

void MatrixProducts::State::run(const Key& key, const void* a, const void* b, void* c) {
  omp_set_num_threads(threads);  // of this thread's parallel regions
  Compiled& product = compiled(key);
  point(product.a, a);
  point(product.b, b);
  point(product.c, c);
  point(product.scratch, scratch.at_least(product.scratch_bytes));
  const std::array<dnnl_exec_arg_t, 4> arguments = {{{DNNL_ARG_SRC, product.a.get()},
                                                     {DNNL_ARG_WEIGHTS, product.b.get()},
                                                     {DNNL_ARG_DST, product.c.get()},
                                                     {DNNL_ARG_SCRATCHPAD, product.scratch.get()}}};
  const dnnl_status_t status = dnnl_primitive_execute(
      product.primitive.get(), stream.get(), static_cast<int>(arguments.size()), arguments.data());
  if (status != dnnl_success) {
    throw std::runtime_error("oneDNN refused a matrix product of " + std::to_string(key.product.m) +
                             " x " + std::to_string(key.product.k) + " x " +
                             std::to_string(key.product.n) + ": status " + std::to_string(status));
  }
}

void MatrixProducts::State::run_widened(const Product& product,
                                        const sifr::bfloat16* a,
                                        const sifr::bfloat16* b,
                                        const BlockSink& sink) {
  const auto multiply = [this](const Product& block, const float* x, const float* y, float* z) {
    run({block, DataType::f32, DataType::f32}, x, y, z);
  };
  widened.run(product, a, b, multiply, sink);
}

MatrixProducts::MatrixProducts(int threads) : state_(std::make_unique<State>(threads)) {
  if (threads < 1)
    throw std::invalid_argument("matrix products need at least 1 thread, not " +
                                std::to_string(threads));
  const Key probe = {{.m = 64, .n = 64, .k = 64}, DataType::bf16, DataType::bf16};
  state_->has_bf16 = static_cast<bool>(description(probe, state_->engine, true));
}

MatrixProducts::~MatrixProducts() = default;

bool MatrixProducts::has_bf16() const noexcept {
  return state_->has_bf16;
}

void MatrixProducts::multiply(const Product& product, const float* a, const float* b, float* c) {
  state_->run({product, DataType::f32, DataType::f32}, a, b, c);
}

void MatrixProducts::multiply(const Product& product,
                              const sifr::bfloat16* a,
                              const sifr::bfloat16* b,
                              sifr::bfloat16* c) {
  if (state_->has_bf16) {
    state_->run({product, DataType::bf16, DataType::bf16}, a, b, c);
  } else {
    state_->run_widened(product, a, b, rounded_into(c, product.n));
  }
}

void MatrixProducts::multiply(const Product& product,
                              const sifr::bfloat16* a,
                              const sifr::bfloat16* b,
                              float* c) {
  if (state_->has_bf16) {
    state_->run({product, DataType::bf16, DataType::f32}, a, b, c);
  } else {
    state_->run_widened(
        product, a, b, product.adds ? added_into(c, product.n) : written_into(c, product.n));
  }
}

}  // namespace llama
