"""Loss functions from the papers, which take embeddings or their similarities.

Inputs are float32 unit vectors or their cosines. Half precision rounds by more than some of these losses move a
cosine, so embed in autocast and normalize in float32. Each loss returns a mean with shape (), which does not depend on
the batch size. Batches must not be empty: the caller leaves out a loss without rows instead of counting it as 0.
"""

from typing import TYPE_CHECKING

import numpy as np

from vlprobe.metrics import pairwise

if TYPE_CHECKING:
    import torch

# "hybrid" is v2 on the close pairs and v1 on the rest
EQSIM_VARIANTS = ("hybrid", "v1", "v2", "v2-close", "v1+v2-close")
FIRST_FLIPS = 0.25  # the curriculum begins with this share of a batch's flips, the weakest ones
ALL_FLIPS_AT = 0.5  # share of the training after which all flips count


def contrastive(logits: "torch.Tensor") -> "torch.Tensor":
    """Compute the mean cross-entropy for picking the right text for each picture in the batch, and the right picture
    for each text.

    Args:
        logits: The logits for picture i and text j, shape (n, n): the model's scale times the cosine.
            Matches are on the diagonal; two rows with the same picture would count as mismatches.

    Source: CLIP; in the papers, the retrieval objective ("ITC") that the other losses are added to.
    """
    import torch
    from torch.nn.functional import cross_entropy

    matches = torch.arange(len(logits), device=logits.device)
    return (cross_entropy(logits, matches) + cross_entropy(logits.T, matches)) / 2


def sigmoid(logits: "torch.Tensor") -> "torch.Tensor":
    """Compute the loss for classifying every picture-text pair as a match or mismatch: -log sigmoid(+-logit).

    Args:
        logits: The model's scale times the cosine, plus its bias, shape (n, n). Without the bias, all
            pairs would start as a match.

    Returns:
        The sum over texts (1 match and n - 1 mismatches), averaged over pictures, as in the paper.

    Source: SigLIP.
    """
    import torch
    from torch.nn.functional import logsigmoid

    signs = 2 * torch.eye(len(logits), dtype=logits.dtype, device=logits.device) - 1
    return -logsigmoid(signs * logits).sum() / len(logits)


def close_pairs(scores: "torch.Tensor", k: int) -> "torch.Tensor":
    """Select the semantically close pairs in a batch: for each row, the k other rows that score highest with it.

    As in the released code, half of the k rows have the texts nearest to the row's picture, and half have
    the pictures nearest to its text. An odd k takes one more text. No gradient flows through the choice.

    Args:
        scores: The scores for picture i and text j, shape (n, n).
        k: A number from 0 to 2 * (n - 1); a larger number selects all pairs. The paper uses 8.

    Returns:
        A symmetric bool array with shape (n, n). A pair is close if either row chose the other. The
        diagonal is False.

    Source: EqBen, section 3 and appendix C.
    """
    import torch

    others = scores.detach().clone().fill_diagonal_(-torch.inf)
    close = torch.zeros_like(others, dtype=torch.bool)
    for side, count in ((others, (k + 1) // 2), (others.T, k // 2)):
        close.scatter_(1, side.topk(min(count, len(side) - 1), dim=1).indices, True)
    return close | close.T


def eqsim_v1(scores: "torch.Tensor", margin: float = 0.0) -> "torch.Tensor":
    """Compute how far the two mismatch scores differ, for each pair of picture-text pairs: [(s_12 - s_21)^2 - margin]+.

    Args:
        scores: The scores for picture i and text j, shape (n, n).
        margin: The paper's alpha, in squared units of the scores. It is subtracted for each pair of
            picture-text pairs, as in the formula. The released code subtracts it from the mean over a batch.

    Returns:
        A symmetric array with shape (n, n) and a diagonal of 0.

    Source: EqBen, equation 6.
    """
    return ((scores - scores.T) ** 2 - margin).clamp(min=0)


def eqsim_v2(scores: "torch.Tensor", margin: float = 0.0) -> "torch.Tensor":
    """Compute how unevenly the score drops when the text or the picture changes in either of two pairs.

    [((s_11 - s_12) - (s_22 - s_21))^2 - margin]+ + [((s_11 - s_21) - (s_22 - s_12))^2 - margin]+.
    Both terms are zero only if s_12 = s_21 and s_11 = s_22. This is stricter than v1, and too strict for
    pairs that have little in common.

    The arguments and the return value are the same as for `eqsim_v1`.

    Source: EqBen, equation 6.
    """
    matching, turned = scores.diagonal(), scores.T
    text = (matching[:, None] - scores) - (matching[None, :] - turned)
    image = (matching[:, None] - turned) - (matching[None, :] - scores)
    return (text**2 - margin).clamp(min=0) + (image**2 - margin).clamp(min=0)


def hard_negatives(logits: "torch.Tensor", k: int) -> "torch.Tensor":
    """Compute the contrastive loss over each pair and its k highest-scoring mismatches, in both directions.

    Args:
        logits: The logits for picture i and text j, shape (n, n): the model's scale times the cosine.
        k: A number of at least 0. Any k above n - 1 uses all mismatches, which equals `contrastive`.
            With 0 the loss is 0.

    Source: EqBen, table 6, lists "fine-tuning with hard negative sampling" (HardNeg) next to plain
        fine-tuning and gives no formula. It uses the same k as EqSim, because appendix C calls
        EqSim's close pairs hard negatives.
    """
    import torch
    from torch.nn.functional import cross_entropy

    matches = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    total = torch.zeros((), dtype=logits.dtype, device=logits.device)
    for side in (logits, logits.T):
        mismatches = side.masked_fill(
            torch.eye(len(side), dtype=torch.bool, device=side.device), -torch.inf
        )
        hardest = mismatches.topk(min(k, len(side) - 1), dim=1).values
        total = total + cross_entropy(
            torch.cat([side.diagonal()[:, None], hardest], dim=1), matches
        )
    return total / 2


def eqsim(
    scores: "torch.Tensor", k: int, margin: float = 0.0, variant: str = "hybrid"
) -> "torch.Tensor":
    """Compute the EqSim loss, which keeps similarity proportional to meaning: v2 on close pairs, v1 on all others.

    The loss is the sum of two means, one over the close pairs and one over the others. Its unit is the
    squared unit of the scores, so a margin or weight depends on the kind of score. Section 3 describes
    this rule, the variant "hybrid". The ablation (table 6) and appendix A.3 describe v1 on all pairs and
    v2 on the close ones, the variant "v1+v2-close".

    Args:
        scores: Scores with shape (n, n), where n is at least 2: cosines (section 3), or a softmax of the
            logits over the texts (appendix C).
        k: See `close_pairs`; 0 applies v1 to all pairs.
        margin: The paper's alpha: 0, .04 or .1, for softmax scores.
        variant: One of EQSIM_VARIANTS. "v1" and "v2" use all pairs, and "v2-close" uses only the close
            ones (the loss is 0 if k is 0).

    Source: EqBen, section 3, equation 6 and appendix C; table 6 for the variants.
    """
    import torch

    close = close_pairs(scores, k)
    every = ~torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    none = torch.zeros_like(every)
    v1_counts, v2_counts = {
        "hybrid": (every & ~close, close),
        "v1": (every, none),
        "v2": (none, every),
        "v2-close": (none, close),
        "v1+v2-close": (every, close),
    }[variant]
    total = torch.zeros((), dtype=scores.dtype, device=scores.device)
    for pairs, counted in (
        (eqsim_v2(scores, margin), v2_counts),
        (eqsim_v1(scores, margin), v1_counts),
    ):
        if counted.any():
            total = total + pairs[counted].mean()
    return total


def corrupted(
    altered: "torch.Tensor", images: "torch.Tensor", texts: "torch.Tensor"
) -> "torch.Tensor":
    """Compute the similarity between an altered caption (SC) or picture (VC) and the true picture and caption.

    (cos(altered, image) + cos(altered, text)) / 2, to be minimized. The loss has no margin, so a large
    weight hurts retrieval.

    Args:
        altered: Embeddings of the altered captions or pictures, shape (m, dim). Each must differ from
            its source.
        images: Embeddings of the source pictures, shape (m, dim).
        texts: Embeddings of the source captions, shape (m, dim).

    Source: RoCOCO, equation 2 (SC) and equation 3 (VC).
    """
    return ((altered * images).sum(dim=-1) + (altered * texts).sum(dim=-1)).mean() / 2


def consistency(
    images: "torch.Tensor", texts: "torch.Tensor", paraphrases: "torch.Tensor"
) -> "torch.Tensor":
    """Compute how far rewording a caption shifts its score: |s(I, c) - s(I, c')|, the invariance error.

    The loss is zero if the model embeds all captions alike, so combine it with a loss that separates
    captions.

    Args:
        images, texts, paraphrases: Embeddings with shape (m, dim), matched row by row.

    Source: LGIP, section 5, mentions an invariance loss without a formula; this one is equation 2.
    """
    return ((images * texts).sum(dim=-1) - (images * paraphrases).sum(dim=-1)).abs().mean()


def discrimination(
    images: "torch.Tensor",
    texts: "torch.Tensor",
    flips: "torch.Tensor",
    scale: "torch.Tensor",
    weight: "torch.Tensor",
) -> "torch.Tensor":
    """Compute the contrastive loss between each caption and its flip: log(1 + exp(-scale * gap)).

    The gap is s(I, c) - s(I, c_flip). A gap of 0 costs log 2.

    Args:
        images, texts, flips: Embeddings with shape (m, dim), matched row by row.
        scale: The model's logit scale, shape (); this loss does not train it.
        weight: A weight of at least 0 for each row, shape (m,), not all 0; see `curriculum`.

    Source: LGIP, section 5, mentions a discrimination loss without a formula.
    """
    from torch.nn.functional import softplus

    gap = (images * texts).sum(dim=-1) - (images * flips).sum(dim=-1)
    return (softplus(-scale.detach() * gap) * weight).sum() / weight.sum()


def strengths(kinds: np.ndarray, texts: "torch.Tensor", flips: "torch.Tensor") -> np.ndarray:
    """Compute how strongly each flip contradicts its caption according to the model in training, 0 to 1, shape (m,).

    Args:
        kinds: The kind of each flip ("color", "number" or "object"), shape (m,).
        texts, flips: Embeddings of the captions and of their flips, each with shape (m, dim).

    Source: LGIP, section 4.3, as implemented in `metrics.pairwise.strength`.
    """
    return pairwise.strength(kinds, (texts * flips).sum(dim=-1).detach().cpu().numpy())


def curriculum(strength: np.ndarray, done: float) -> np.ndarray:
    """Select the flips that count: the weakest quarter of a batch at first, and all flips after half of the training.

    Args:
        strength: The strengths of the flips in the batch, shape (m,), where m is at least 1.
        done: The share of the training that is done, 0 to 1.

    Returns:
        A float32 array with shape (m,) that holds 1 or 0, never all 0.

    Source: LGIP, section 5: a "curriculum that progressively increases semantic conflict". The paper
        gives no pace.
    """
    share = FIRST_FLIPS + (1 - FIRST_FLIPS) * min(done / ALL_FLIPS_AT, 1.0)
    return (strength <= np.quantile(strength, share)).astype(np.float32)
