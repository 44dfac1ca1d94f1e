// Linear algebra on small dense matrices, in double.
#pragma once

#include <cstddef>
#include <vector>

namespace onkel {

// Eigenvalues, and eigenvectors as rows of `vectors` (n x n), of the symmetric matrix A (n x n), in no order.
// Householder's reduction to three diagonals, then implicit QL.
void eigen(std::vector<double> A, std::size_t n, std::vector<double>& values, std::vector<double>& vectors);

}  // namespace onkel
