#include "device/detail/check.hpp"
#include "device/device.hpp"

namespace sifr {

std::unique_ptr<Device> make_cuda_device(int index, const Limits& /*limits*/) {
  throw DeviceError(
      fmt::format("GPU {} was asked for, but this sifr was built without CUDA: use the device "
                  "\"host\", or build sifr with CUDA",
                  index));
}

}  // namespace sifr
