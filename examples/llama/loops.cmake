# The sources whose loops are copied for every level of vectors, and how they are built: without contraction, so that
# all copies compute the same bits.
set(llama_loops attention_rows.cpp cross_entropy.cpp embedding.cpp matrix_vector.cpp residual.cpp rms_norm.cpp
  rotary.cpp swiglu.cpp widened_product.cpp)
list(TRANSFORM llama_loops PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
set(llama_loop_options -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off)
