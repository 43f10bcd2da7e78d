// SPDX-License-Identifier: BSD-3-Clause
//
// Arithmetic in kernels, of which there are none here; the header of this name
// wants one more package.
#pragma once
