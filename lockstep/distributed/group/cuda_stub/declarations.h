// SPDX-License-Identifier: BSD-3-Clause
//
// The types of cuBLAS, cuSPARSE and cuSOLVER that LibTorch's headers name.
// Nothing in Lockstep uses them, so their packages (half a gigabyte) are not
// needed to build it.
#pragma once

// NOLINTBEGIN(readability-identifier-naming,modernize-use-using): theirs
typedef struct cublasContext* cublasHandle_t;
typedef struct cublasLtContext* cublasLtHandle_t;
typedef struct cusolverDnContext* cusolverDnHandle_t;
typedef struct cusparseContext* cusparseHandle_t;
enum cublasStatus_t : int;
enum cusolverStatus_t : int;
enum cusparseStatus_t : int;
// NOLINTEND(readability-identifier-naming,modernize-use-using)
