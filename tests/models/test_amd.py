"""Linear layers by oneDNN against PyTorch's own, on whatever processor has it."""

import pytest
import torch

from vlprobe.models import amd

needed = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_reorder_linear_weight"),
    reason="this PyTorch is built without oneDNN",
)


def tower() -> torch.nn.Module:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return torch.nn.Sequential(layer, torch.nn.Linear(32, 16, bias=False)).eval()


@needed
def test_layers_give_what_pytorch_gives_for_any_number_of_rows_and_after_training():
    model = tower()
    for rows in (1, 3, 0, 7):
        given = torch.randn(rows, 5, 32)
        with torch.inference_mode():
            expected = model(given)
            with amd.linear():
                found = model(given)
        torch.testing.assert_close(found, expected, rtol=0, atol=2e-6)
    with torch.no_grad():
        model[1].weight.mul_(3)
    with torch.inference_mode(), amd.linear():
        again = model(given)
    torch.testing.assert_close(again, 3 * expected, rtol=0, atol=6e-6)


@needed
def test_attention_is_as_it_was_afterwards_and_other_precisions_are_left_alone():
    before = torch.backends.mha.get_fastpath_enabled()
    model, given = tower().double(), torch.randn(2, 5, 32, dtype=torch.float64)
    with torch.inference_mode(), amd.linear():
        assert model(given).dtype == torch.float64
        assert not torch.backends.mha.get_fastpath_enabled()
    assert torch.backends.mha.get_fastpath_enabled() == before
