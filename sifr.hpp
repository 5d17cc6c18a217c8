#pragma once

// The one include of sifr's users.
#include "./device/philox.hpp"
#include "./engine/engine.hpp"
#include "./sifr_error.hpp"
#include "./sifr_version.hpp"
