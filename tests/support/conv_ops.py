# SPDX-License-Identifier: MIT
"""A convolution of f16 with a window of 3x3 and padding, and its gradients."""

import cklang as ck

N, H, W, C, K = ck.dims("N H W C K")


@ck.op
def forward(x: ck.f16[N, H, W, C], w: ck.f16[K, 3, 3, C]) -> ck.f16[N, H, W, K]:
    return ck.conv(x, w, padding=1)


@ck.op
def input_gradient(dy: ck.f16[N, H, W, K], w: ck.f16[K, 3, 3, C]) -> ck.f16[N, H, W, C]:
    return ck.conv_grad_input(dy, w, padding=1)


@ck.op
def weight_gradient(x: ck.f16[N, H, W, C], dy: ck.f16[N, H, W, K]) -> ck.f16[K, 3, 3, C]:
    return ck.conv_grad_weight(x, dy, padding=1, size=(3, 3))
