"""Attention for pytorch.py: scaled_dot_product_attention by cuDNN and by PyTorch's flash kernels, and its backward.

pytorch.rs puts this file before pytorch.py. Operands are queries, keys and values of (batch, heads, length, head dimension), and
for a backward the gradient of the result.
"""


def attention_name(backend):
    import torch

    version = torch.backends.cudnn.version()
    cudnn = f"cuDNN {version // 10000}.{version // 100 % 100}.{version % 100}"
    return f"{cudnn if backend == 'cuDNN' else backend} by PyTorch {torch.__version__}"


def attention_by(backend, is_causal):
    """scaled_dot_product_attention that may use one backend only: another one's kernels are an error."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    allowed = [SDPBackend.CUDNN_ATTENTION if backend == "cuDNN" else SDPBackend.FLASH_ATTENTION]

    def work(queries, keys, values):
        with sdpa_kernel(allowed):
            return torch.nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=is_causal)

    return work


def attention_forward(backend, is_causal):
    """The forward of inputs without gradients, so that no LSE is stored for a backward."""

    def make(operands, output, axes):
        attention = attention_by(backend, is_causal)
        return attention_name(backend), lambda: attention(*operands)

    return make


def attention_backward(backend, is_causal, is_deterministic):
    """The backward alone, of a graph that is recorded once."""

    def make(operands, output, axes):
        import torch.utils.deterministic

        *inputs, gradient = operands
        inputs = [x.detach().requires_grad_() for x in inputs]
        result = attention_by(backend, is_causal)(*inputs)

        def work():
            torch.autograd.grad(result, inputs, gradient, retain_graph=True)

        def deterministic():
            torch.use_deterministic_algorithms(True)
            try:
                work()
            finally:
                torch.use_deterministic_algorithms(False)

        if not is_deterministic:
            return attention_name(backend), work
        # By default each new array would be filled with NaN, in a kernel of its own.
        torch.utils.deterministic.fill_uninitialized_memory = False
        return attention_name(f"deterministic {backend}"), deterministic

    return make


def attention_operations():
    operations = {}
    for mask, is_causal in (("full", False), ("causal", True)):
        for backend in ("cuDNN", "flash"):
            operations[f"attention, {backend}, {mask}"] = attention_forward(backend, is_causal)
            operations[f"attention_backward, {backend}, {mask}"] = attention_backward(backend, is_causal, False)
        name = f"attention_backward, deterministic flash, {mask}"
        operations[name] = attention_backward("flash", is_causal, True)
    return operations
